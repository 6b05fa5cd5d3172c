//! The same in user space: what the programs should count and report, by `pping-common` alone.

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
};

use pping::source::{drain::Event, load::Settings};
use pping_common::{
    abi::{Counters, Endpoints, EventKind, FlowEvent, FlowEventKind, Hook, Lost, RttEvent, TriggeredBy},
    flow::{Address, Flow, FlowKey, Ipv4, Ipv6, Lifecycle, Reason, Side},
    parse::{Family, Frame, Kind, LinkType, Protocol, Segment, Untracked, Vlan},
};

/// The flows of an address family.
type Flows<A> = HashMap<FlowKey<A>, Flow>;

/// What the kernel programs are compared with.
pub(super) struct Twin {
    pub(super) settings: Settings,
    pub(super) link: LinkType,
    pub(super) place: u16,
    pub(super) local: HashSet<[u8; 16]>,
    pub(super) counters: Counters,
    pub(super) events: Vec<Event>,
    sweeps: u32,
    v4: Flows<Ipv4>,
    v6: Flows<Ipv6>,
}

/// A family that a twin keeps flows of.
trait Kept: Address + Eq + Hash {
    fn flows(twin: &mut Twin) -> &mut Flows<Self>;
}

impl Kept for Ipv4 {
    fn flows(twin: &mut Twin) -> &mut Flows<Self> {
        &mut twin.v4
    }
}

impl Kept for Ipv6 {
    fn flows(twin: &mut Twin) -> &mut Flows<Self> {
        &mut twin.v6
    }
}

impl Twin {
    pub(super) fn new(settings: Settings, link: LinkType, place: u16) -> Self {
        Self {
            settings,
            link,
            place,
            local: HashSet::new(),
            counters: Counters::ZERO,
            events: Vec::new(),
            sweeps: 0,
            v4: HashMap::new(),
            v6: HashMap::new(),
        }
    }

    /// Takes a packet, `now` in ns.
    pub(super) fn packet(&mut self, hook: Hook, octets: &[u8], now: u64) {
        let mut frame = Frame::EMPTY;
        let parsed = frame.parse(octets, self.link, Vlan::NONE);
        let (counters, protocol) = (&mut self.counters, frame.protocol as usize);
        counters.packets[hook as usize][protocol] += 1;
        counters.bytes[hook as usize][protocol] += octets.len() as u64;
        if frame.protocol != Protocol::NonIp {
            counters.ecn[hook as usize][usize::from(frame.traffic_class & 3)] += 1;
        }
        let tracked = parsed.and_then(|()| match frame.family {
            Family::V4 => self.track::<Ipv4>(hook, &frame, now),
            Family::V6 => self.track::<Ipv6>(hook, &frame, now),
        });
        if let Err(reason) = tracked {
            self.counters.untracked[reason as usize] += 1;
        }
    }

    /// Begins the next sweep.
    pub(super) fn sweep(&mut self, now: u64) {
        self.sweeps += 1;
        self.sweep_family::<Ipv4>(now);
        self.sweep_family::<Ipv6>(now);
    }

    fn track<A: Kept>(&mut self, hook: Hook, frame: &Frame, now: u64) -> Result<(), Untracked> {
        let transport = &frame.transport;
        let (key, from) = FlowKey::<A>::new(self.place, frame);
        if !A::flows(self).contains_key(&key) {
            transport.begins_flow()?;
            if A::flows(self).len() == self.settings.max_flows as usize {
                return Err(Untracked::MapFull);
            }
            let is_local = |address: A| {
                let address = address.to_address();
                u32::from(address.is_loopback() || self.local.contains(&address.to_octets()))
            };
            let local = is_local(key.low) | is_local(key.high) << 1;
            A::flows(self).insert(key, Flow { local, ..Flow::EMPTY });
            self.counters.entries_made[A::FAMILY as usize] += 1;
        }
        let (sweeps, rules) = (self.sweeps, self.settings.rules);
        let flow = A::flows(self).get_mut(&key).unwrap();
        flow.last_seen = sweeps;
        let direction = if from == Side::Low { &mut flow.low } else { &mut flow.high };
        direction.packets += 1;
        direction.bytes += u64::from(transport.payload());
        // Always, whereas the programs ask first whether the packet concerns the flow.
        let outcome = flow.step(from, transport, now, &rules);
        let (timed, other) = (*flow.direction(from.other()), *flow.direction(from));

        let endpoints = endpoints::<A>(self.place, frame);
        let (counters, changes) = (&mut self.counters, outcome.changes);
        if changes.opened {
            counters.opened[changes.opened_by as usize] += u64::from(changes.opened_first);
            self.events.push(flow_event(
                FlowEventKind::Opening,
                changes.opened_by,
                TriggeredBy::Destination,
                changes.opened_at,
                endpoints,
            ));
        }
        counters.slots_full += u64::from(outcome.measured.slots_full);
        if let Some(sample) = outcome.measured.sample() {
            counters.samples[hook as usize][sample.method as usize] += 1;
            self.events.push(Event::Rtt(RttEvent {
                kind: EventKind::Rtt as u8,
                method: sample.method as u8,
                hook: hook as u8,
                dscp: frame.traffic_class >> 2,
                identifier: sample.identifier,
                timestamp: now,
                endpoints,
                rtt: sample.rtt,
                min_rtt: timed.min_rtt,
                smoothed_rtt: timed.smoothed_rtt,
                sent_packets: timed.packets,
                sent_bytes: timed.bytes,
                rec_packets: other.packets,
                rec_bytes: other.bytes,
                vlan: frame.vlan,
            }));
        }
        counters.closed[changes.closed_by as usize] += u64::from(changes.closed_last);
        for (is_closed, by, endpoints) in [
            (changes.closed_forward, TriggeredBy::Destination, endpoints.reversed()),
            (changes.closed_reverse, TriggeredBy::Source, endpoints),
        ] {
            if is_closed {
                let event = flow_event(FlowEventKind::Closing, changes.closed_by, by, now, endpoints);
                self.events.push(event);
            }
        }
        match transport.begins_flow() {
            Err(Untracked::NoTimestamp) => Err(Untracked::NoTimestamp),
            _ => Ok(()),
        }
    }

    fn sweep_family<A: Kept>(&mut self, now: u64) {
        let sweeps = self.sweeps;
        let expired: Vec<(FlowKey<A>, Flow)> =
            A::flows(self).extract_if(|key, flow| flow.is_expired(key.protocol, sweeps)).collect();
        for (key, flow) in expired {
            self.counters.entries_deleted[A::FAMILY as usize] += 1;
            let open = [Side::Low, Side::High].map(|side| flow.direction(side).lifecycle == Lifecycle::Open);
            self.counters.closed[Reason::Timeout as usize] += u64::from(open.contains(&true));
            let low = Endpoints {
                source: key.high.to_address().to_octets(),
                destination: key.low.to_address().to_octets(),
                source_port: key.high_port,
                destination_port: key.low_port,
                interface: key.interface,
                protocol: protocol::<A>(key.protocol == Segment::NUMBER),
                reserved: 0,
            };
            for (is_open, endpoints) in [(open[0], low), (open[1], low.reversed())] {
                if is_open {
                    let by = TriggeredBy::GarbageCollection;
                    let event = flow_event(FlowEventKind::Closing, Reason::Timeout, by, now, endpoints);
                    self.events.push(event);
                }
            }
        }
    }

    /// Notes that the ring had no room for an event.
    pub(super) fn lose(&mut self, event: &Event) {
        let lost = match event {
            Event::Rtt(_) => Lost::Rtt,
            Event::Flow(_) => Lost::Flow,
        };
        self.counters.lost[lost as usize] += 1;
    }
}

fn protocol<A: Address>(is_tcp: bool) -> u8 {
    if is_tcp { Protocol::Tcp as u8 } else { A::ECHO as u8 }
}

/// The flow of a packet, whose sender is the one that replied.
fn endpoints<A: Address>(place: u16, frame: &Frame) -> Endpoints {
    let (source_port, destination_port) = frame.transport.ports();
    Endpoints {
        source: frame.source.to_octets(),
        destination: frame.destination.to_octets(),
        source_port,
        destination_port,
        interface: place,
        protocol: protocol::<A>(frame.transport.kind == Kind::Tcp),
        reserved: 0,
    }
}

fn flow_event(
    event: FlowEventKind,
    reason: Reason,
    triggered_by: TriggeredBy,
    timestamp: u64,
    endpoints: Endpoints,
) -> Event {
    Event::Flow(FlowEvent {
        kind: EventKind::Flow as u8,
        event: event as u8,
        reason: reason as u8,
        triggered_by: triggered_by as u8,
        reserved: 0,
        timestamp,
        endpoints,
    })
}

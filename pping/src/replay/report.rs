//! What is counted and reported of packets: the same as by the kernel programs.

use std::sync::Arc;

use pping_common::{
    abi::{
        Counters, Direction, Emit, EndEvent, Endpoints, EventKind, FlowEvent, FlowEventKind, RttEvent,
        SeriesKey, SeriesRef, TriggeredBy,
    },
    flow::{Address, Changes, Endpoint, Flow, FlowKey, Lifecycle, Reason},
    parse::{Datagram, Frame, Protocol, Segment},
    rtt::{Rules, Sample},
};

use super::{
    series::{Belonging, Series},
    tracker::Settings,
};
use crate::event::Event;

/// What is known of a packet beside its bytes.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub(super) direction: Option<Direction>,
    pub(super) interface_id: u16,
    /// Its time and 1 more: to a flow, 0 is no time.
    pub(super) now: u64,
    /// The count that flows are idle by.
    pub(super) second: u32,
}

impl Seen {
    /// The number of its direction, or of none.
    pub(super) fn direction_number(self) -> u8 {
        self.direction.map_or(SeriesKey::NO_DIRECTION, |direction| direction as u8)
    }
}

/// What has been counted and reported.
pub struct Report {
    /// What was counted, over all interfaces. Packets of which nobody knows which way they went count as coming in.
    pub counters: Counters,
    /// What is to be told, with times as those of the packets. Whoever takes an event removes it.
    pub events: Vec<Event>,
    pub(super) series: Series,
    emit: Emit,
    rules: Rules,
}

impl Report {
    pub(super) fn new(settings: &Settings) -> Self {
        let Settings { grouping, labels, max_groups, emit, rules, .. } = settings;
        Self {
            counters: Counters::ZERO,
            events: Vec::new(),
            series: Series::new(*grouping, Arc::clone(labels), *max_groups),
            emit: *emit,
            rules: *rules,
        }
    }

    /// What a packet opened and closed, in the order of time: a sample belongs between [`Report::opened`] and this.
    pub(super) fn closed(&mut self, changes: &Changes, endpoints: Endpoints, now: u64) {
        self.counters.closed[changes.closed_by as usize] += u64::from(changes.closed_last);
        for (is_closed, by, endpoints) in [
            (changes.closed_forward, TriggeredBy::Destination, endpoints.reversed()),
            (changes.closed_reverse, TriggeredBy::Source, endpoints),
        ] {
            if is_closed {
                self.flow(FlowEventKind::Closing, changes.closed_by, by, now, endpoints);
            }
        }
    }

    /// The direction that a packet opened by answering.
    pub(super) fn opened(&mut self, changes: &Changes, endpoints: Endpoints) {
        if changes.opened {
            self.counters.opened[changes.opened_by as usize] += u64::from(changes.opened_first);
            let (by, at) = (TriggeredBy::Destination, changes.opened_at);
            self.flow(FlowEventKind::Opening, changes.opened_by, by, at, endpoints);
        }
    }

    /// A sample of a packet that `from` sent.
    pub(super) fn sample(
        &mut self,
        sample: &Sample,
        (flow, from): (&mut Flow, Endpoint),
        frame: &Frame,
        seen: Seen,
        endpoints: Endpoints,
    ) {
        let cached = match from.other() {
            Endpoint::Low => &mut flow.low.series,
            Endpoint::High => &mut flow.high.series,
        };
        let series = self.count(sample, cached, frame, seen);
        let (timed, other) = (flow.direction(from.other()), flow.direction(from));
        let event = of_sample(sample, frame, seen, endpoints, series);
        self.tell(RttEvent {
            min_rtt: timed.rtt.min,
            smoothed_rtt: timed.rtt.smoothed,
            sent_packets: timed.packets,
            sent_bytes: timed.bytes,
            rec_packets: other.packets,
            rec_bytes: other.bytes,
            ..event
        });
    }

    /// A sample of a packet that belongs to no flow.
    pub(super) fn sample_without_flow(
        &mut self,
        sample: &Sample,
        frame: &Frame,
        seen: Seen,
        endpoints: Endpoints,
    ) {
        let mut none = SeriesRef::NONE;
        let series = self.count(sample, &mut none, frame, seen);
        self.tell(of_sample(sample, frame, seen, endpoints, series));
    }

    /// Adds a sample to its series, and returns the place of that.
    fn count(&mut self, sample: &Sample, cached: &mut SeriesRef, frame: &Frame, seen: Seen) -> Option<u32> {
        let direction = seen.direction.unwrap_or(Direction::Ingress);
        self.counters.samples[direction as usize][sample.method as usize] += 1;
        let belonging = Belonging {
            interface: seen.interface_id,
            method: sample.method,
            direction: seen.direction_number(),
            dscp: frame.traffic_class >> 2,
            source: frame.source,
            destination: frame.destination,
        };
        self.series.sample(cached, &belonging, sample.rtt, &mut self.counters)
    }

    fn tell(&mut self, event: RttEvent) {
        if self.emit.has(Emit::SAMPLES) {
            self.events.push(Event::Rtt(event));
        }
    }

    /// Adds what a flow has sent to the series it belongs to.
    pub(super) fn fold<A: Address>(&mut self, key: &FlowKey<A>, flow: &mut Flow) {
        self.series.fold(key, flow, &self.rules, &mut self.counters);
    }

    /// A flow that has been idle too long, and is forgotten; its newest packet came at `newest`.
    pub(super) fn expired<A: Address>(&mut self, key: &FlowKey<A>, flow: &mut Flow, newest: u64, now: u64) {
        self.fold(key, flow);
        self.counters.entries_deleted[A::FAMILY as usize] += 1;
        let open = [Endpoint::Low, Endpoint::High]
            .map(|endpoint| flow.direction(endpoint).lifecycle == Lifecycle::Open);
        self.counters.closed[Reason::Timeout as usize] += u64::from(open.contains(&true));
        let low = endpoints_of_low(key);
        for (is_open, endpoints) in open.into_iter().zip([low, low.reversed()]) {
            if is_open {
                let by = TriggeredBy::GarbageCollection;
                self.flow(FlowEventKind::Closing, Reason::Timeout, by, now, endpoints);
            }
        }
        self.end(key, flow, newest, Reason::Timeout as u8);
    }

    /// A flow that goes on, but nothing more is seen of it.
    pub(super) fn cut_off<A: Address>(&mut self, key: &FlowKey<A>, flow: &mut Flow, newest: u64) {
        self.fold(key, flow);
        self.end(key, flow, newest, EndEvent::STILL_OPEN);
    }

    /// The end of a flow, which is due to `reason` unless it closed before.
    fn end<A: Address>(&mut self, key: &FlowKey<A>, flow: &Flow, newest: u64, reason: u8) {
        if !self.emit.has(Emit::ENDS) {
            return;
        }
        let (reason, ended) = match flow.closed_at {
            0 => (reason, newest),
            closed_at => (flow.closed_by as u8, closed_at),
        };
        let (beginner, began) = flow.beginning();
        let low = endpoints_of_low(key);
        self.events.push(Event::End(EndEvent {
            kind: EventKind::End as u8,
            reason,
            reserved: [0; 6],
            began: began.saturating_sub(1),
            ended: ended.saturating_sub(1),
            endpoints: match beginner {
                Endpoint::Low => low,
                Endpoint::High => low.reversed(),
            },
            sent: flow.direction(beginner).into(),
            received: flow.direction(beginner.other()).into(),
        }));
    }

    fn flow(
        &mut self,
        event: FlowEventKind,
        reason: Reason,
        triggered_by: TriggeredBy,
        at: u64,
        endpoints: Endpoints,
    ) {
        if !self.emit.has(Emit::FLOWS) {
            return;
        }
        self.events.push(Event::Flow(FlowEvent {
            kind: EventKind::Flow as u8,
            event: event as u8,
            reason: reason as u8,
            triggered_by: triggered_by as u8,
            reserved: 0,
            timestamp: at.saturating_sub(1),
            endpoints,
        }));
    }
}

/// The event of a sample of which no more is known than what its packet says.
fn of_sample(
    sample: &Sample,
    frame: &Frame,
    seen: Seen,
    endpoints: Endpoints,
    series: Option<u32>,
) -> RttEvent {
    RttEvent {
        kind: EventKind::Rtt as u8,
        method: sample.method as u8,
        direction: seen.direction_number(),
        dscp: frame.traffic_class >> 2,
        identifier: sample.identifier,
        timestamp: seen.now - 1,
        endpoints,
        rtt: sample.rtt,
        min_rtt: sample.rtt,
        smoothed_rtt: sample.rtt,
        sent_packets: 0,
        sent_bytes: 0,
        rec_packets: 0,
        rec_bytes: 0,
        vlan: frame.vlan,
        series: series.unwrap_or(RttEvent::NO_SERIES),
        reserved: 0,
        side_rtt: sample.side_rtt,
    }
}

/// The flow of a packet, whose sender is the one that replied.
pub(super) fn endpoints<A: Address>(interface_id: u16, frame: &Frame) -> Endpoints {
    let (source_port, destination_port) = frame.transport.ports();
    Endpoints {
        source: frame.source.to_bytes(),
        destination: frame.destination.to_bytes(),
        source_port,
        destination_port,
        interface: interface_id,
        protocol: protocol::<A>(frame.transport.number()),
        reserved: 0,
    }
}

/// A flow, whose lower end is the one that is timed.
fn endpoints_of_low<A: Address>(key: &FlowKey<A>) -> Endpoints {
    Endpoints {
        source: key.high.to_address().to_bytes(),
        destination: key.low.to_address().to_bytes(),
        source_port: key.high_port,
        destination_port: key.low_port,
        interface: key.interface,
        protocol: protocol::<A>(key.protocol),
        reserved: 0,
    }
}

/// What a flow's protocol number stands for in events.
fn protocol<A: Address>(number: u8) -> u8 {
    match number {
        Segment::NUMBER => Protocol::Tcp as u8,
        Datagram::NUMBER => Protocol::Udp as u8,
        _ => A::ECHO as u8,
    }
}

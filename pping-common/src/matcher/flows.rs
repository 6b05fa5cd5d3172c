//! Flows and pending DNS queries, and the way of a packet to them: what the kernel programs do, in user space.

use std::{collections::HashSet, hash::Hash};

use super::{
    observer::{DnsMessage, Observer},
    packet::{Packet, PacketMetadata},
    queries::{Elapsed, Queries},
    settings::Settings,
    table::{Entry, Table},
};
use crate::{
    arm::Arm,
    copies,
    dns::QueryKey,
    flow::{Endpoint, Facts, Flow, FlowKey},
    method::Method,
    parse::{Address, Direction, Family, Frame, IpAddress, Ipv4, Ipv6, Kind, Scope, Untracked, Vlan},
    rings,
    rtt::{PossibleChange, Progress, Sample},
};

/// The flows and the pending DNS queries of both families. Each call gives the time, and tells an [`Observer`] what happens.
pub struct Flows {
    settings: Settings,
    scope: Scope,
    local: HashSet<[u8; 16]>,
    frame: Frame,
    v4: Both<Ipv4>,
    v6: Both<Ipv6>,
    elapsed: Elapsed,
    /// The latest packets, if copies are left out.
    recent: Option<copies::Recent>,
}

/// The flows and the queries of a family.
struct Both<A> {
    flows: Table<A>,
    queries: Queries<QueryKey<A>>,
}

impl<A> Default for Both<A> {
    fn default() -> Self {
        Self { flows: Table::default(), queries: Queries::default() }
    }
}

impl Flows {
    /// Creates it without flows.
    pub fn new(settings: Settings) -> Self {
        let recent = (settings.copies_within != 0).then(|| copies::Recent::new(settings.copies_key()));
        Self {
            scope: Scope { methods: settings.rules.methods, dns_ports: settings.dns_ports },
            settings,
            local: HashSet::new(),
            frame: Frame::EMPTY,
            v4: Both::default(),
            v6: Both::default(),
            elapsed: Elapsed::default(),
            recent,
        }
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Says whether each host of a flow that begins from now on is on another side of its interface.
    pub fn set_two_arms(&mut self, has_two_arms: bool) {
        self.settings.has_two_arms = has_two_arms;
    }

    /// Treats an address as one of this host. Loopback addresses always are.
    pub fn add_local(&mut self, address: [u8; 16]) {
        self.local.insert(address);
    }

    /// The number of flows.
    #[inline]
    pub fn flows(&self) -> usize {
        self.v4.flows.len() + self.v6.flows.len()
    }

    /// The number of pending DNS queries.
    pub fn queries(&self) -> usize {
        self.v4.queries.pending() + self.v6.queries.pending()
    }

    /// The numbers of DNS queries without a response so far: see [`Queries::left`].
    pub fn queries_left(&self) -> (u64, u64) {
        let (v4, v6) = (self.v4.queries.left(self.elapsed), self.v6.queries.left(self.elapsed));
        (v4.0 + v6.0, v4.1 + v6.1)
    }

    /// The clock of pending queries.
    #[inline]
    pub fn elapsed(&self) -> Elapsed {
        self.elapsed
    }

    /// The frame that was parsed last.
    #[inline]
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// Parses a packet. An error says why it is not measured.
    #[inline]
    pub fn parse(&mut self, packet: &Packet<'_>) -> Result<(), Untracked> {
        self.elapsed.advance(packet.time);
        self.frame.parse(&packet.bytes, packet.link, Vlan::NONE, self.settings.decap, &self.scope)?;
        let within = self.settings.copies_within;
        if let Some(recent) = &mut self.recent
            && recent.is_copy(&self.frame, &packet.bytes, packet.interface, packet.time, within)
        {
            return Err(Untracked::Duplicate);
        }
        Ok(())
    }

    /// Tracks the packet that was parsed last. `second` is the present second of the count by which idle time is measured. An error
    /// says why the packet is not measured.
    #[inline]
    pub fn track(
        &mut self,
        packet: &Packet<'_>,
        second: u64,
        observer: &mut impl Observer,
    ) -> Result<(), Untracked> {
        let metadata = PacketMetadata {
            direction: packet.direction,
            interface_id: packet.interface,
            now: packet.time.saturating_add(1),
            second,
        };
        let Self { settings, local, frame, v4, v6, elapsed, .. } = self;
        let is_dns = frame.transport.kind == Kind::Dns;
        let family = frame.family;
        let mut parsed = Parsed { frame, metadata, settings, local, observer };
        match family {
            Family::V4 if is_dns => parsed.message(&mut v4.queries, *elapsed),
            Family::V6 if is_dns => parsed.message(&mut v6.queries, *elapsed),
            Family::V4 => parsed.track(&mut v4.flows),
            Family::V6 => parsed.track(&mut v6.flows),
        }
    }

    /// The ring for what the source of the last packet begins, and its places if all rings have room for `newcomers`.
    pub fn ring<A: Address>(&self, packet: &Packet<'_>, newcomers: u32) -> (u32, u32) {
        let arm = arm(packet.direction, packet.interface, self.settings.has_two_arms);
        ring::<A>(&self.settings, &self.frame, arm, newcomers)
    }

    /// Removes the flows that have been idle too long by this second, as of `time`. Removes the queries that have waited too long
    /// by then, and returns their number.
    pub fn sweep(&mut self, time: u64, second: u64, observer: &mut impl Observer) -> u64 {
        let now = time.saturating_add(1);
        self.v4.flows.sweep(now, second, observer);
        self.v6.flows.sweep(now, second, observer);
        self.elapsed.advance(time);
        self.expire_queries()
    }

    /// Removes the queries that have waited too long, and returns their number.
    pub fn expire_queries(&mut self) -> u64 {
        self.v4.queries.expire(self.elapsed) + self.v6.queries.expire(self.elapsed)
    }

    /// Calls [`Observer::flush`] for all flows.
    pub fn flush(&mut self, observer: &mut impl Observer) {
        self.v4.flows.flush(observer);
        self.v6.flows.flush(observer);
    }

    /// Removes all flows: there are no more packets.
    pub fn finish(&mut self, observer: &mut impl Observer) {
        self.v4.flows.finish(observer);
        self.v6.flows.finish(observer);
    }
}

/// The arm from which a packet comes, if the interface has two, or one. Without a direction nobody can tell.
fn arm(direction: Option<Direction>, interface: u16, has_two_arms: bool) -> Arm {
    Arm::new(interface, direction.unwrap_or(Direction::Ingress) as u8, has_two_arms && direction.is_some())
}

fn ring<A: Address>(settings: &Settings, frame: &Frame, arm: Arm, newcomers: u32) -> (u32, u32) {
    (rings::of(A::of(frame.source), arm, &settings.ring_keys), rings::places(newcomers))
}

/// A packet on its way to its flow.
struct Parsed<'a, O> {
    frame: &'a Frame,
    metadata: PacketMetadata,
    settings: &'a Settings,
    local: &'a HashSet<[u8; 16]>,
    observer: &'a mut O,
}

impl<O: Observer> Parsed<'_, O> {
    /// Counts the packet for its flow, matches it and records it. An error says why it is not measured.
    #[inline]
    fn track<A: Address + Eq + Hash>(&mut self, table: &mut Table<A>) -> Result<(), Untracked> {
        let transport = &self.frame.transport;
        let PacketMetadata { now, second, .. } = self.metadata;
        let (key, from) = FlowKey::<A>::new(self.metadata.interface_id, self.frame);
        let index = match table.lookup(&key, now, second, self.observer) {
            Some(index) => index,
            None => self.begin(table, key)?,
        };
        let entry = table.get(index).ok_or(Untracked::MapFull)?;
        entry.touch(key.protocol, now, second);
        let flow = &mut entry.flow;
        let rules = &self.settings.rules;
        let is_without_method = flow.hot.snapshot(from).is_without_method(from, transport, rules);
        let counted = flow.count(from, transport, self.frame.traffic_class, self.metadata.direction_number());
        if let Some(reason) = counted.progress.untracked() {
            // That there are copies is kept.
            flow.step(from, transport, counted.progress, now, rules);
            return Err(reason);
        }
        entry.has_counted[from as usize] = true;
        self.observer.counted(counted, self.metadata);
        if flow.is_flush_due() {
            self.observer.flush(&key, flow);
        }
        if flow.possible_change(from, transport, counted, rules) != PossibleChange::Nothing {
            self.step::<A>(flow, from, counted.progress);
        }
        // Asked for last, so that RST and FIN of a flow that lost its timestamps still close it.
        match transport.begins_flow(rules.methods) {
            Err(Untracked::NoTimestamp) => Err(Untracked::NoTimestamp),
            _ if is_without_method => Err(Untracked::UnusableTimestamp),
            _ => Ok(()),
        }
    }

    /// Handles the rare packet that may match, record, open or close.
    #[inline(never)]
    fn step<A: Address>(&mut self, flow: &mut Flow, from: Endpoint, progress: Progress) {
        let (frame, rules) = (self.frame, &self.settings.rules);
        let outcome = flow.step(from, &frame.transport, progress, self.metadata.now, rules);
        self.observer.stepped::<A>(&outcome, (flow, from), frame, self.metadata);
    }

    /// Inserts a flow, if it is not excluded, a flow can begin with this packet and there is room.
    fn begin<A: Address + Eq + Hash>(
        &mut self,
        table: &mut Table<A>,
        key: FlowKey<A>,
    ) -> Result<usize, Untracked> {
        if self.observer.is_excluded(self.frame) {
            return Err(Untracked::Excluded);
        }
        self.frame.transport.begins_flow(self.settings.rules.methods)?;
        let PacketMetadata { now, second, .. } = self.metadata;
        let facts = Facts::of_ends(self.is_local(key.low.to_address()), self.is_local(key.high.to_address()));
        let mut entry = Entry::new(facts, now, second);
        entry.flow.has_two_arms = self.settings.has_two_arms;
        let max_flows = self.settings.max_flows as usize;
        table.insert(key, entry, max_flows, (now, second), self.observer).ok_or(Untracked::MapFull)?;
        self.observer.began::<A>();
        table.enter_ring(key, self.ring::<A>(self.settings.max_unproved), self.observer);
        table.index(&key).ok_or(Untracked::MapFull)
    }

    /// Records a query or matches a response. An error says why it is not measured.
    fn message<A: Address + Eq + Hash>(
        &mut self,
        queries: &mut Queries<QueryKey<A>>,
        elapsed: Elapsed,
    ) -> Result<(), Untracked> {
        if self.observer.is_excluded(self.frame) {
            return Err(Untracked::Excluded);
        }
        let (dns, now) = (self.frame.transport.datagram.dns, self.metadata.now);
        let key = QueryKey::<A>::new(self.arm(self.settings.has_two_arms), self.frame);
        // An interface may have shown meanwhile how many arms it has.
        let former = || QueryKey::<A>::new(self.arm(!self.settings.has_two_arms), self.frame);
        let message = if !dns.is_response {
            let rules = &self.settings.rules;
            if rules.include_local || !self.is_local(self.frame.destination) {
                let ring = self.ring::<A>(self.settings.max_queries);
                DnsMessage::Query(queries.insert(key, ring, (now, rules.copy_within), elapsed))
            } else {
                DnsMessage::QueryToThisHost
            }
        } else if let Some((query, is_late)) =
            queries.take(&key, elapsed).or_else(|| queries.take(&former(), elapsed))
        {
            let sample =
                |rtt| Sample { method: Method::Dns, identifier: u32::from(dns.id), rtt, side_rtt: 0 };
            if is_late {
                DnsMessage::Late
            } else {
                DnsMessage::Response { rcode: dns.rcode, sample: query.rtt(now).map(sample) }
            }
        } else {
            let is_forged = key.opposite() != key && queries.has(&key.opposite());
            return if is_forged { Err(Untracked::SameHook) } else { Ok(()) };
        };
        self.observer.dns::<A>(message, self.frame, self.metadata);
        Ok(())
    }

    fn arm(&self, has_two_arms: bool) -> Arm {
        arm(self.metadata.direction, self.metadata.interface_id, has_two_arms)
    }

    fn ring<A: Address>(&self, newcomers: u32) -> (u32, u32) {
        ring::<A>(self.settings, self.frame, self.arm(self.settings.has_two_arms), newcomers)
    }

    fn is_local(&self, address: IpAddress) -> bool {
        address.is_loopback() || self.local.contains(&address.to_bytes())
    }
}

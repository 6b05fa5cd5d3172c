//! Does in user space what the kernel programs do with a packet, with the parsing and matching of `pping-common` and the same
//! counters and events.

use std::{collections::HashSet, hash::Hash};

use pping_common::{
    abi::{Contender, Direction, Endpoints, SeriesKey, Tally},
    arm::Arm,
    dns::QueryKey,
    flow::{Address, Endpoint, Facts, Flow, FlowKey, Noted},
    limits::MAX_QUERIES,
    parse::{Decap, Family, Frame, IpAddress, Kind, Scope, Untracked, Vlan},
    rings,
    rtt::{Effect, Method, Sample},
};

use super::{
    queries::{Asked, BothAsked, EchoKey, Elapsed, Queries},
    report::{PacketMetadata, QueriesLeft, Report, UnopenedTunnels},
    settings::Settings,
    survey::Survey,
    table::{Entry, Table, Tables},
};
use crate::{capture::Packet, groups::Lookup};

/// Tracks flows and DNS queries. Each call gives it the time.
pub struct Tracker {
    /// Its counters and reports.
    pub report: Report,
    settings: Settings,
    scope: Scope,
    local: HashSet<[u8; 16]>,
    excluded: Lookup,
    frame: Frame,
    tables: Tables,
    asked: BothAsked,
    /// What the first packets show.
    pub survey: Survey,
    /// Packets of tunnels that were not entered.
    pub unopened_tunnels: UnopenedTunnels,
}

impl Tracker {
    /// Creates a tracker without flows.
    pub fn new(settings: Settings) -> Self {
        Self {
            report: Report::new(&settings),
            excluded: Lookup::new(settings.exclude.iter().map(|&prefix| (prefix, 1))),
            scope: Scope { methods: settings.rules.methods, dns_ports: settings.dns_ports },
            settings,
            local: HashSet::new(),
            frame: Frame::EMPTY,
            tables: Tables::default(),
            asked: BothAsked::default(),
            survey: Survey::default(),
            unopened_tunnels: UnopenedTunnels::default(),
        }
    }

    /// Says whether each host of a flow that begins from now on is on another side of its interface.
    pub fn set_two_arms(&mut self, has_two_arms: bool) {
        self.settings.has_two_arms = has_two_arms;
    }

    /// Whether it does.
    pub(super) fn has_two_arms(&self) -> bool {
        self.settings.has_two_arms
    }

    /// Treats an address as one of the host that captured. Loopback addresses always are; a capture does not tell the others.
    pub fn add_local(&mut self, address: [u8; 16]) {
        self.local.insert(address);
    }

    /// The number of flows.
    pub fn flows(&self) -> usize {
        self.tables.v4.len() + self.tables.v6.len()
    }

    /// Tracks a packet. `second` is the present second of the count by which idle time is measured.
    #[inline]
    pub fn packet(&mut self, packet: &Packet<'_>, second: u64) {
        let Self { report, settings, scope, local, excluded, frame, tables, asked, .. } = self;
        asked.elapsed.advance(packet.time);
        let parsed = frame.parse(&packet.bytes, packet.link, Vlan::NONE, settings.decap, scope);
        let (direction, protocol) = (packet.direction.unwrap_or(Direction::Ingress), frame.protocol as usize);
        report.counters.packet(direction, protocol, packet.bytes.frame_len, frame.traffic_class);
        let is_parsed = parsed.is_ok();
        let metadata = PacketMetadata {
            direction: packet.direction,
            interface_id: packet.interface,
            now: packet.time.saturating_add(1),
            second,
        };
        let family = frame.family;
        let mut to_track = Tracked { frame, metadata, settings, local, excluded, report };
        let is_dns = to_track.frame.transport.kind == Kind::Dns;
        let tracked = parsed.and_then(|()| match family {
            Family::V4 if is_dns => to_track.message(&mut asked.v4.dns, asked.elapsed),
            Family::V6 if is_dns => to_track.message(&mut asked.v6.dns, asked.elapsed),
            Family::V4 => to_track.track(&mut tables.v4, (&mut asked.v4, asked.elapsed)),
            Family::V6 => to_track.track(&mut tables.v6, (&mut asked.v6, asked.elapsed)),
        });
        let mut has_method = is_parsed;
        if let Err(reason) = tracked {
            self.report.counters.untracked[reason as usize] += 1;
            if matches!(reason, Untracked::Unsupported | Untracked::NoFlow) {
                let is_tunnel = self.count_tunnel(packet.bytes.bytes, reason);
                // The outer packets of a VXLAN are of one direction each, whatever passes inside.
                has_method &= reason == Untracked::NoFlow && !is_tunnel;
            }
        }
        if has_method {
            self.survey.packet(packet, &self.frame);
        }
    }

    /// Counts a packet that is not measured for this reason, if it belongs to a tunnel that could be entered. Returns whether
    /// it does.
    fn count_tunnel(&mut self, bytes: &[u8], reason: Untracked) -> bool {
        let kind = self.frame.unopened_tunnel(bytes, self.settings.decap);
        let index = kind.and_then(|kind| Decap::EACH.iter().position(|&it| it == kind));
        let Some(packets) = index.and_then(|index| self.unopened_tunnels.by_kind.get_mut(index)) else {
            return false;
        };
        *packets += 1;
        self.unopened_tunnels.by_reason[reason as usize] += 1;
        true
    }

    /// Removes the flows that have been idle too long by this second, and reports them as of `time`. Removes the queries that have
    /// waited too long by then.
    pub fn sweep(&mut self, time: u64, second: u64) {
        let now = time.saturating_add(1);
        self.tables.v4.sweep(now, second, &mut self.report);
        self.tables.v6.sweep(now, second, &mut self.report);
        self.asked.elapsed.advance(time);
        self.expire_asked();
    }

    /// Adds the traffic of all flows since the last call to their series.
    pub fn fold(&mut self) {
        self.tables.v4.fold(&mut self.report);
        self.tables.v6.fold(&mut self.report);
    }

    /// Removes all flows, since the capture is over, and reports their end.
    pub fn finish(&mut self) {
        self.expire_asked();
        let (unanswered, undecided) = self.asked.echoes_left();
        self.report.echoes.unanswered += unanswered;
        self.report.echoes.undecided += undecided;
        let (unanswered, undecided) = self.asked.queries_left();
        self.report.queries_left = QueriesLeft { unanswered, undecided };
        self.tables.v4.finish(&mut self.report);
        self.tables.v6.finish(&mut self.report);
    }

    fn expire_asked(&mut self) {
        let (queries, requests) = self.asked.expire();
        self.report.counters.dns_unanswered += queries;
        self.report.echoes.unanswered += requests;
    }

    /// The series that are not empty, in the order in which they began.
    pub fn series(&self) -> impl Iterator<Item = (&SeriesKey, &Tally)> {
        self.report.series.iter()
    }

    /// Takes what was added to the series since the last call, at `now`. A series to which nothing was added for `timeout` ns is
    /// removed, and makes room for others.
    pub fn take_series(&mut self, now: u64, timeout: u64) -> Vec<(SeriesKey, Tally)> {
        self.report.series.take(now, timeout)
    }

    /// Takes the worst of the flow directions whose traffic was added since the last call, each with its series.
    pub fn take_worst(&mut self) -> Vec<(Contender, Option<SeriesKey>)> {
        self.report.take_worst()
    }

    /// The series with the index in an event.
    pub fn series_at(&self, index: u32) -> Option<&SeriesKey> {
        self.report.series.key(index)
    }
}

/// A packet on its way to its flow.
struct Tracked<'a> {
    frame: &'a Frame,
    metadata: PacketMetadata,
    settings: &'a Settings,
    local: &'a HashSet<[u8; 16]>,
    excluded: &'a Lookup,
    report: &'a mut Report,
}

impl Tracked<'_> {
    /// Counts the packet for its flow, matches it and records it. An error says why it is not measured.
    #[inline]
    fn track<A: Address + Eq + Hash>(
        &mut self,
        table: &mut Table<A>,
        asked: (&mut Asked<A>, Elapsed),
    ) -> Result<(), Untracked> {
        let transport = &self.frame.transport;
        let PacketMetadata { now, second, .. } = self.metadata;
        let (key, from) = FlowKey::<A>::new(self.metadata.interface_id, self.frame);
        let index = match table.lookup(&key, now, second, self.report) {
            Some(index) => index,
            None => self.begin(table, key)?,
        };
        let entry = table.get(index).ok_or(Untracked::MapFull)?;
        entry.touch(key.protocol, now, second);
        let flow = &mut entry.flow;
        let rules = &self.settings.rules;
        let is_without_method = flow.hot.glance(from).is_without_method(from, transport, rules);
        let noted = flow.count(from, transport, self.frame.traffic_class, self.metadata.direction_number());
        if let Some(reason) = noted.progress.untracked() {
            // A first copy is noted.
            flow.step(from, transport, noted.progress, now, rules);
            return Err(reason);
        }
        entry.has_counted[from as usize] = true;
        self.report.noted(noted, self.metadata);
        if transport.kind == Kind::Echo {
            self.echo((key, from), asked);
        }
        if flow.is_fold_due() {
            self.report.fold(&key, flow);
        }
        if flow.effect(from, transport, noted.progress, &self.settings.rules) != Effect::Nothing {
            self.step::<A>(flow, from, noted);
        }
        // Asked for last, so that RST and FIN of a flow that lost its timestamps still close it.
        match transport.begins_flow(self.settings.rules.methods) {
            Err(Untracked::NoTimestamp) => Err(Untracked::NoTimestamp),
            _ if is_without_method => Err(Untracked::UnusableTimestamp),
            _ => Ok(()),
        }
    }

    /// Inserts a flow, if it is not excluded, a flow can begin with this packet and there is room.
    fn begin<A: Address + Eq + Hash>(
        &mut self,
        table: &mut Table<A>,
        key: FlowKey<A>,
    ) -> Result<usize, Untracked> {
        if self.is_excluded() {
            return Err(Untracked::Excluded);
        }
        self.frame.transport.begins_flow(self.settings.rules.methods)?;
        let PacketMetadata { now, second, .. } = self.metadata;
        let facts = Facts::of_ends(self.is_local(key.low.to_address()), self.is_local(key.high.to_address()));
        let mut entry = Entry::new(facts, now, second);
        entry.flow.has_two_arms = self.settings.has_two_arms;
        let max_flows = self.settings.max_flows as usize;
        table.insert(key, entry, max_flows, (now, second), self.report).ok_or(Untracked::MapFull)?;
        self.report.counters.entries_made[A::FAMILY as usize] += 1;
        table.enter_ring(key, self.ring::<A>(self.settings.max_unproved), self.report);
        table.index(&key).ok_or(Untracked::MapFull)
    }

    /// Counts a DNS message, and records a query or matches a response. An error says why it is not measured.
    fn message<A: Address + Eq + Hash>(
        &mut self,
        queries: &mut Queries<QueryKey<A>>,
        elapsed: Elapsed,
    ) -> Result<(), Untracked> {
        if self.is_excluded() {
            return Err(Untracked::Excluded);
        }
        let (frame, PacketMetadata { direction, now, .. }) = (self.frame, self.metadata);
        let dns = frame.transport.datagram.dns;
        let key = QueryKey::<A>::new(self.arm(self.settings.has_two_arms), frame);
        if !dns.is_response {
            self.report.counters.dns_queries[direction.unwrap_or(Direction::Ingress) as usize] += 1;
            if self.settings.rules.include_local || !self.is_local(frame.destination) {
                let ring = self.ring::<A>(self.settings.max_queries);
                let others = queries.insert(key, ring, (now, self.settings.rules.copy_within), elapsed);
                self.report.counters.dns_unanswered += others.unanswered;
                self.report.counters.dns_given_up += others.given_up;
            } else {
                self.report.counters.to_this_host += 1;
            }
            return Ok(());
        }
        // As in the kernel: an interface may have shown meanwhile how many arms it has.
        let former = || QueryKey::<A>::new(self.arm(!self.settings.has_two_arms), frame);
        let Some((query, is_late)) = queries.take(&key, elapsed).or_else(|| queries.take(&former(), elapsed))
        else {
            let is_forged = self.settings.has_two_arms && queries.has(&key.opposite());
            return if is_forged { Err(Untracked::SameHook) } else { Ok(()) };
        };
        let counters = &mut self.report.counters;
        if is_late {
            counters.dns_unanswered += 1;
            return Ok(());
        }
        counters.dns_responses[usize::from(dns.rcode)] += 1;
        if let Some(rtt) = query.rtt(now) {
            let sample = Sample { method: Method::Dns, identifier: u32::from(dns.id), rtt, side_rtt: 0 };
            self.report.sample_without_flow::<A>(&sample, frame, self.metadata);
        }
        Ok(())
    }

    /// Counts an echo request, and whether it has a reply.
    fn echo<A: Address + Eq + Hash>(
        &mut self,
        (key, from): (FlowKey<A>, Endpoint),
        (asked, elapsed): (&mut Asked<A>, Elapsed),
    ) {
        let (echo, ring) = (self.frame.transport.echo, self.ring::<A>(MAX_QUERIES));
        let count = &mut self.report.echoes;
        if echo.is_reply {
            let request: EchoKey<A> = (key, from.other() as u8, (echo.sequence, echo.data));
            let is_late = asked.echoes.take(&request, elapsed).is_some_and(|(_, is_late)| is_late);
            count.unanswered += u64::from(is_late);
        } else {
            let request: EchoKey<A> = (key, from as u8, (echo.sequence, echo.data));
            count.requests += 1;
            let now = (self.metadata.now, self.settings.rules.copy_within);
            let others = asked.echoes.insert(request, ring, now, elapsed);
            count.unanswered += others.unanswered;
            count.given_up += others.given_up;
        }
    }

    /// The ring for what the packet's source begins, and its places if all rings have room for `newcomers`.
    fn ring<A: Address>(&self, newcomers: u32) -> (u32, u32) {
        let source = A::of(self.frame.source);
        (
            rings::of(source, self.arm(self.settings.has_two_arms), &self.settings.ring_keys),
            rings::places(newcomers),
        )
    }

    /// The arm from which the packet comes, if the interface has two, or one.
    fn arm(&self, has_two_arms: bool) -> Arm {
        let direction = self.metadata.direction.unwrap_or(Direction::Ingress);
        Arm::new(self.metadata.interface_id, direction as u8, has_two_arms)
    }

    fn is_excluded(&self) -> bool {
        [self.frame.source, self.frame.destination].into_iter().any(|end| self.excluded.contains(end))
    }

    fn is_local(&self, address: IpAddress) -> bool {
        address.is_loopback() || self.local.contains(&address.to_bytes())
    }

    /// Handles the rare packet that may match, record, open or close.
    fn step<A: Address>(&mut self, flow: &mut Flow, from: Endpoint, noted: Noted) {
        let (frame, now) = (self.frame, self.metadata.now);
        let outcome = flow.step(from, &frame.transport, noted.progress, now, &self.settings.rules);
        self.report.counters.untracked[Untracked::OutOfWindow as usize] += u64::from(outcome.is_refused);
        let endpoints = Endpoints::of_packet::<A>(self.metadata.interface_id, frame);
        self.report.opened(&outcome.changes, endpoints);
        let is_to_this_host = outcome.measured.to_this_host || outcome.second.to_this_host;
        self.report.counters.to_this_host += u64::from(is_to_this_host);
        for measured in [outcome.measured, outcome.second] {
            let counters = &mut self.report.counters;
            counters.pending_full += u64::from(measured.pending_full);
            counters.gave_way += u64::from(measured.gave_way);
            counters.echo_requests += u64::from(measured.asked);
            counters.echo_replies += u64::from(measured.answered);
            counters.echo_not_awaited += u64::from(measured.not_awaited);
            if let Some(sample) = measured.sample() {
                self.report.sample::<A>(&sample, (flow, from), frame, self.metadata);
            }
        }
        self.report.closed(&outcome.changes, endpoints, now);
    }
}

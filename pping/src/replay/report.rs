//! Counts and reports packets as the kernel programs do.

use ipnet::IpNet;
use pping_common::{
    abi::{
        Candidate, Counters, Emit, EndEvent, Endpoints, FlowEvent, FlowReporter, FlowState, RttEvent,
        SeriesSelector, Volume,
    },
    flow::{Behind, Changes, Counted, Endpoint, Flow, FlowKey, Outcome, Reason, has_still_timestamps},
    matcher::{DnsMessage, Observer, PacketMetadata},
    method::Method,
    parse::{Address, Decap, Direction, Frame, Segment, Untracked},
    rtt::{RttSummary, Rules, Sample},
    series::{SeriesKey, SeriesRef, Traffic},
};

use super::{series::Series, settings::Settings};
use crate::{event::Event, groups::Lookup, worst::Ranking};

/// The TCP flows that have ended, and how many of them gave no sample for which reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFlows {
    /// All of them.
    pub all: u64,
    /// Those that gave a sample.
    pub measured: u64,
    /// Those with segments of one endpoint only, and more than a SYN.
    pub one_way: u64,
    /// Those of which nobody answered the SYN.
    pub unanswered: u64,
    /// Those whose timestamps did not move.
    pub still: u64,
    /// Those that sequence numbers measure since their timestamps stopped, stood still or went back.
    pub switched: u64,
}

/// The echo requests of the capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Echoes {
    /// All of them.
    pub requests: u64,
    /// Those without a reply within 10 s, or until the capture ended.
    pub unanswered: u64,
    /// Those of the last second that had no reply before the capture ended.
    pub undecided: u64,
    /// Those that were given up because too many were pending.
    pub given_up: u64,
}

/// The DNS queries of the last 10 s that had no response before the capture ended. No counter has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueriesLeft {
    /// Those that had waited for a second or longer.
    pub unanswered: u64,
    /// The others.
    pub undecided: u64,
}

/// Packets of tunnels that were not entered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnopenedTunnels {
    /// By the index of their kind in [`Decap::EACH`].
    pub by_kind: [u64; Decap::EACH.len()],
    /// By the reason for which the outer packet counts as not measured.
    pub by_reason: [u64; Untracked::ALL.len()],
}

/// The counters and reports so far.
pub struct Report {
    /// The counters, over all interfaces. Packets whose direction is unknown count as coming in.
    pub counters: Counters,
    /// The events so far, with the times of the packets. The reader removes them.
    pub events: Vec<Event>,
    /// The TCP flows that have ended.
    pub tcp_flows: TcpFlows,
    /// The echo requests.
    pub echoes: Echoes,
    /// The DNS queries without a response, once the capture has ended.
    pub queries_left: QueriesLeft,
    pub(super) series: Series,
    /// The worst flow directions since they were last taken, and how many packets each end must have sent to be ranked.
    worst: Option<(Ranking<Candidate>, u64)>,
    emit: Emit,
    rules: Rules,
    /// Networks whose flows are not measured.
    excluded: Lookup,
}

impl Report {
    pub(super) fn new(settings: &Settings) -> Self {
        let Settings { emit, rules, worst, .. } = settings;
        Self {
            counters: Counters::ZERO,
            events: Vec::new(),
            tcp_flows: TcpFlows::default(),
            echoes: Echoes::default(),
            queries_left: QueriesLeft::default(),
            series: Series::new(settings, listed(&settings.inside)),
            worst: worst.map(|(limit, packets)| (Ranking::new(limit), packets)),
            emit: *emit,
            rules: *rules,
            excluded: listed(&settings.exclude),
        }
    }

    /// Reports the flow directions that a packet closed. To keep the order of time, its sample is reported before this and after
    /// [`Report::opened`].
    fn closed(&mut self, changes: &Changes, endpoints: Endpoints, now: u64) {
        self.counters.closed[changes.closed_by as usize] += u64::from(changes.closed_last);
        FlowEvent::closings(changes, || endpoints, now, self);
    }

    /// Reports the flow direction that a packet opened by answering.
    fn opened(&mut self, changes: &Changes, endpoints: Endpoints) {
        if changes.opened {
            self.counters.opened[changes.opened_by as usize] += u64::from(changes.opened_first);
            FlowReporter::report(self, || FlowEvent::opening(changes, endpoints));
        }
    }

    /// Reports a sample of a packet that `from` sent.
    fn sample<A: Address>(
        &mut self,
        sample: &Sample,
        (flow, from): (&mut Flow, Endpoint),
        frame: &Frame,
        metadata: PacketMetadata,
    ) {
        let timed = from.other();
        let is_proved = flow.hot.is_proved(frame.transport.number());
        let reference = &mut flow.totals[timed as usize].series;
        let series = self.count(sample, (reference, is_proved), frame, metadata);
        let state = FlowState::of(flow.locked.rtts(timed), flow.sent(timed), flow.sent(from));
        self.rtt::<A>(sample, &state, frame, metadata, series);
    }

    /// Reports a sample of a packet that belongs to no flow.
    fn sample_without_flow<A: Address>(&mut self, sample: &Sample, frame: &Frame, metadata: PacketMetadata) {
        let series = self.count(sample, (&mut { SeriesRef::NONE }, true), frame, metadata);
        self.rtt::<A>(sample, &FlowState::without_flow(sample.rtt), frame, metadata, series);
    }

    /// Adds a sample to its series, and returns the index of the series.
    fn count(
        &mut self,
        sample: &Sample,
        (reference, is_proved): (&mut SeriesRef, bool),
        frame: &Frame,
        metadata: PacketMetadata,
    ) -> Option<u32> {
        let direction = metadata.direction.unwrap_or(Direction::Ingress);
        self.counters.samples[direction as usize][sample.method as usize] += 1;
        let selector = SeriesSelector::of_sample(
            metadata.interface_id,
            sample.method,
            metadata.direction_number(),
            frame,
            is_proved,
        );
        self.series.sample(reference, &selector, sample.rtt, &mut self.counters)
    }

    fn rtt<A: Address>(
        &mut self,
        sample: &Sample,
        state: &FlowState,
        frame: &Frame,
        metadata: PacketMetadata,
        series: Option<u32>,
    ) {
        if self.emit.has(Emit::SAMPLES) {
            let packet = (metadata.interface_id, metadata.direction_number(), frame);
            let series = series.unwrap_or(RttEvent::NO_SERIES);
            self.events.push(Event::Rtt(RttEvent::new::<A>(packet, metadata.now - 1, sample, state, series)));
        }
    }

    /// Takes the worst flow directions since the last call, each with its series.
    pub(super) fn take_worst(&mut self) -> Vec<(Candidate, Option<SeriesKey>)> {
        let Some((ranking, _)) = &mut self.worst else { return Vec::new() };
        let series = |candidate: &Candidate| self.series.key(candidate.series.index()).copied();
        let taken = ranking.all().map(|candidate| (*candidate, series(candidate))).collect();
        ranking.clear();
        taken
    }

    /// Counts a flow that has ended.
    fn count_ended<A: Address>(&mut self, key: &FlowKey<A>, flow: &Flow) {
        if key.protocol != Segment::NUMBER {
            return;
        }
        let endpoints = [Endpoint::Low, Endpoint::High];
        let have_sent = endpoints.map(|endpoint| flow.sent(endpoint).packets > 0);
        let is_one_way = flow.hot.is_one_way(key.protocol, have_sent);
        let is_measured =
            endpoints.iter().any(|&endpoint| flow.locked.rtts(endpoint).0 != RttSummary::NO_RTT);
        let is_unanswered = have_sent[0] != have_sent[1] && !is_one_way;
        self.counters.one_way_flows += u64::from(is_one_way);
        self.tcp_flows.all += 1;
        self.tcp_flows.measured += u64::from(is_measured);
        self.tcp_flows.one_way += u64::from(is_one_way);
        self.tcp_flows.unanswered += u64::from(is_unanswered);
        let methods = self.rules.methods;
        let may_switch = methods.has(Method::TcpTs) && methods.has(Method::TcpSeq) && !methods.has_both();
        let has_unusable = |&endpoint: &Endpoint| flow.hot.protocol_state.has_unusable(endpoint);
        let packets = endpoints.map(|endpoint| flow.sent(endpoint).packets);
        let is_still = has_still_timestamps(&flow.hot, &flow.locked, packets, &self.rules);
        self.counters.still_timestamps += u64::from(is_still);
        self.tcp_flows.still += u64::from(is_still && !is_measured);
        self.tcp_flows.switched += u64::from(may_switch && endpoints.iter().any(has_unusable));
    }

    /// Reports the end of a flow, due to `reason` unless it closed before.
    fn end<A: Address>(&mut self, key: &FlowKey<A>, flow: &Flow, newest: u64, reason: u8) {
        if self.emit.has(Emit::ENDS) {
            let has_segments = key.protocol == Segment::NUMBER;
            let volumes = [Endpoint::Low, Endpoint::High].map(|endpoint| {
                Volume::new(flow.sent(endpoint), &flow.events[endpoint as usize], has_segments)
            });
            let mut event = EndEvent::new(key, &flow.locked, &volumes, newest, reason);
            event.began = event.began.saturating_sub(1);
            event.ended = event.ended.saturating_sub(1);
            self.events.push(Event::End(event));
        }
    }
}

impl Observer for Report {
    fn is_excluded(&self, frame: &Frame) -> bool {
        [frame.source, frame.destination].into_iter().any(|end| self.excluded.contains(end))
    }

    fn began<A: Address>(&mut self) {
        self.counters.entries_made[A::FAMILY as usize] += 1;
    }

    fn evicted<A: Address>(&mut self) {
        self.counters.entries_deleted[A::FAMILY as usize] += 1;
        self.counters.evicted += 1;
    }

    /// Counts a segment that was retransmitted or reordered.
    #[inline]
    fn counted(&mut self, counted: Counted, metadata: PacketMetadata) {
        let direction = metadata.direction.unwrap_or(Direction::Ingress) as usize;
        let counters = &mut self.counters;
        counters.retransmissions[direction] += u64::from(counted.behind == Some(Behind::Retransmitted));
        counters.reordered[direction] += u64::from(counted.behind == Some(Behind::Reordered));
    }

    /// Adds the traffic of a flow since the last call to its series, and ranks its directions.
    fn flush<A: Address>(&mut self, key: &FlowKey<A>, flow: &mut Flow) {
        let Self { series, worst, rules, counters, .. } = self;
        series.flush(key, flow, rules, counters, |flow, timed, selector, since| {
            if let Some((ranking, packets)) = worst
                && let Some(candidate) = candidate((key, timed), flow, selector, since, *packets)
            {
                ranking.add(&candidate);
            }
        });
    }

    /// Reports what a packet matched, opened and closed.
    #[inline]
    fn stepped<A: Address>(
        &mut self,
        outcome: &Outcome,
        (flow, from): (&mut Flow, Endpoint),
        frame: &Frame,
        metadata: PacketMetadata,
    ) {
        self.counters.untracked[Untracked::OutOfWindow as usize] += u64::from(outcome.is_refused);
        let endpoints = Endpoints::of_packet::<A>(metadata.interface_id, frame);
        self.opened(&outcome.changes, endpoints);
        let is_to_this_host = outcome.measured.to_this_host || outcome.second.to_this_host;
        self.counters.to_this_host += u64::from(is_to_this_host);
        for measured in [&outcome.measured, &outcome.second] {
            let counters = &mut self.counters;
            counters.pending_full += u64::from(measured.pending_full);
            counters.gave_way += u64::from(measured.gave_way);
            counters.echo_requests += u64::from(measured.asked);
            counters.echo_replies += u64::from(measured.answered);
            counters.echo_not_awaited += u64::from(measured.not_awaited);
            if let Some(sample) = measured.sample() {
                self.sample::<A>(&sample, (flow, from), frame, metadata);
            }
        }
        self.closed(&outcome.changes, endpoints, metadata.now);
    }

    fn dns<A: Address>(&mut self, message: DnsMessage, frame: &Frame, metadata: PacketMetadata) {
        let direction = metadata.direction.unwrap_or(Direction::Ingress) as usize;
        let counters = &mut self.counters;
        match message {
            DnsMessage::Query(others) => {
                counters.dns_queries[direction] += 1;
                counters.dns_unanswered += others.unanswered;
                counters.dns_given_up += others.given_up;
            }
            DnsMessage::QueryToThisHost => {
                counters.dns_queries[direction] += 1;
                counters.to_this_host += 1;
            }
            DnsMessage::Late => counters.dns_unanswered += 1,
            DnsMessage::Response { rcode, sample } => {
                counters.dns_responses[usize::from(rcode)] += 1;
                if let Some(sample) = sample {
                    self.sample_without_flow::<A>(&sample, frame, metadata);
                }
            }
        }
    }

    /// Reports a flow that is removed because it has been idle too long. Its newest packet came at `newest`.
    fn expired<A: Address>(&mut self, key: &FlowKey<A>, flow: &mut Flow, newest: u64, now: u64) {
        self.flush(key, flow);
        self.count_ended(key, flow);
        self.counters.entries_deleted[A::FAMILY as usize] += 1;
        self.counters.closed[Reason::Timeout as usize] += u64::from(flow.hot.is_open());
        FlowEvent::timeouts(key, &flow.hot, now, self);
        self.end(key, flow, newest, Reason::Timeout as u8);
    }

    /// Reports a flow that is still open at the end of the capture.
    fn still_open<A: Address>(&mut self, key: &FlowKey<A>, flow: &mut Flow, newest: u64) {
        self.flush(key, flow);
        self.count_ended(key, flow);
        self.end(key, flow, newest, EndEvent::STILL_OPEN);
    }
}

/// Finds the addresses that any of these networks contains.
fn listed(networks: &[IpNet]) -> Lookup {
    Lookup::new(networks.iter().map(|&network| (network, 1)))
}

/// Makes a candidate of a flow direction, if each end has sent `packets` packets.
fn candidate<A: Address>(
    (key, timed): (&FlowKey<A>, Endpoint),
    flow: &Flow,
    selector: &SeriesSelector,
    since: &Traffic,
    packets: u64,
) -> Option<Candidate> {
    let sent = flow.sent(timed).packets;
    if sent < packets || flow.sent(timed.other()).packets < packets {
        return None;
    }
    let has_segments = key.protocol == Segment::NUMBER;
    let retransmissions = if has_segments { flow.events[timed as usize].retransmissions } else { 0 };
    let rtts = flow.locked.rtts(timed);
    let figures = Candidate::figures(selector.method, rtts, (sent, retransmissions), since);
    let series = flow.totals[timed as usize].series;
    Some(Candidate::new((key, timed), figures, rtts.0, sent, series, selector))
}

impl FlowReporter for Report {
    fn report(&mut self, event: impl FnOnce() -> FlowEvent) {
        if self.emit.has(Emit::FLOWS) {
            let event = event();
            self.events
                .push(Event::Flow(FlowEvent { timestamp: event.timestamp.saturating_sub(1), ..event }));
        }
    }
}

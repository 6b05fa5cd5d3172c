//! Does in user space what the kernel programs do with a packet, with the matcher of `pping-common` and the same counters and
//! events.

use std::hash::Hash;

use pping_common::{
    abi::Candidate,
    flow::FlowKey,
    limits::MAX_QUERIES,
    matcher::{Flows, Queries},
    parse::{Address, Decap, Direction, Family, Ipv4, Ipv6, Kind, Untracked},
    series::{SeriesCounts, SeriesKey},
};

use super::{
    report::{Echoes, QueriesLeft, Report, UnopenedTunnels},
    settings::Settings,
    survey::Survey,
};
use crate::capture::Packet;

/// An echo request: its flow, the endpoint that sent it, its sequence number and the digest of its data.
type EchoKey<A> = (FlowKey<A>, u8, (u16, u16));

/// The pending echo requests of an address family. The matcher has its own; these are kept for as long as DNS queries.
type Requests<A> = Queries<EchoKey<A>>;

/// Tracks flows and DNS queries. Each call gives it the time.
pub struct Tracker {
    /// Its counters and reports.
    pub report: Report,
    flows: Flows,
    echoes_v4: Requests<Ipv4>,
    echoes_v6: Requests<Ipv6>,
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
            flows: Flows::new(settings.into_matcher()),
            echoes_v4: Queries::default(),
            echoes_v6: Queries::default(),
            survey: Survey::default(),
            unopened_tunnels: UnopenedTunnels::default(),
        }
    }

    /// Says whether each host of a flow that begins from now on is on another side of its interface.
    pub fn set_two_arms(&mut self, has_two_arms: bool) {
        self.flows.set_two_arms(has_two_arms);
    }

    /// Whether it does.
    pub(super) fn has_two_arms(&self) -> bool {
        self.flows.settings().has_two_arms
    }

    /// Treats an address as one of the host that captured. Loopback addresses always are; a capture does not tell the others.
    pub fn add_local(&mut self, address: [u8; 16]) {
        self.flows.add_local(address);
    }

    /// The number of flows.
    pub fn flows(&self) -> usize {
        self.flows.flows()
    }

    /// Tracks a packet. `second` is the present second of the count by which idle time is measured.
    #[inline]
    pub fn packet(&mut self, packet: &Packet<'_>, second: u64) {
        let parsed = self.flows.parse(packet);
        let frame = self.flows.frame();
        let (direction, protocol) = (packet.direction.unwrap_or(Direction::Ingress), frame.protocol as usize);
        self.report.counters.packet(direction, protocol, packet.bytes.frame_len, frame.traffic_class);
        let mut has_method = parsed.is_ok();
        match parsed.and_then(|()| self.flows.track(packet, second, &mut self.report)) {
            Ok(()) => self.echo(packet),
            Err(reason) => {
                self.report.counters.untracked[reason as usize] += 1;
                if matches!(reason, Untracked::Unsupported | Untracked::NoFlow) {
                    let is_tunnel = self.count_tunnel(packet.bytes.bytes, reason);
                    // The outer packets of a VXLAN are of one direction each, whatever passes inside.
                    has_method &= reason == Untracked::NoFlow && !is_tunnel;
                }
            }
        }
        if has_method {
            self.survey.packet(packet, self.flows.frame());
        }
    }

    /// Counts the packet if it is an echo request or a reply to one.
    #[inline]
    fn echo(&mut self, packet: &Packet<'_>) {
        let Self { report, flows, echoes_v4, echoes_v6, .. } = self;
        let frame = flows.frame();
        if frame.transport.kind == Kind::Echo {
            match frame.family {
                Family::V4 => echo(packet, flows, echoes_v4, &mut report.echoes),
                Family::V6 => echo(packet, flows, echoes_v6, &mut report.echoes),
            }
        }
    }

    /// Counts a packet that is not measured for this reason, if it belongs to a tunnel that could be entered. Returns whether
    /// it does.
    fn count_tunnel(&mut self, bytes: &[u8], reason: Untracked) -> bool {
        let kind = self.flows.frame().unopened_tunnel(bytes, self.flows.settings().decap);
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
        self.report.counters.dns_unanswered += self.flows.sweep(time, second, &mut self.report);
        self.expire_echoes();
    }

    /// Adds the traffic of all flows since the last call to their series.
    pub fn flush(&mut self) {
        self.flows.flush(&mut self.report);
    }

    /// Removes all flows, since the capture is over, and reports their end.
    pub fn finish(&mut self) {
        self.report.counters.dns_unanswered += self.flows.expire_queries();
        self.expire_echoes();
        let elapsed = self.flows.elapsed();
        for (unanswered, undecided) in [self.echoes_v4.left(elapsed), self.echoes_v6.left(elapsed)] {
            self.report.echoes.unanswered += unanswered;
            self.report.echoes.undecided += undecided;
        }
        let (unanswered, undecided) = self.flows.queries_left();
        self.report.queries_left = QueriesLeft { unanswered, undecided };
        self.flows.finish(&mut self.report);
    }

    fn expire_echoes(&mut self) {
        let elapsed = self.flows.elapsed();
        self.report.echoes.unanswered += self.echoes_v4.expire(elapsed) + self.echoes_v6.expire(elapsed);
    }

    /// The series that are not empty, in the order in which they began.
    pub fn series(&self) -> impl Iterator<Item = (&SeriesKey, &SeriesCounts)> {
        self.report.series.iter()
    }

    /// Takes what was added to the series since the last call, at `now`. A series to which nothing was added for `timeout` ns is
    /// removed, and makes room for others.
    pub fn take_series(&mut self, now: u64, timeout: u64) -> Vec<(SeriesKey, SeriesCounts)> {
        self.report.series.take(now, timeout)
    }

    /// Takes the worst of the flow directions whose traffic was added since the last call, each with its series.
    pub fn take_worst(&mut self) -> Vec<(Candidate, Option<SeriesKey>)> {
        self.report.take_worst()
    }

    /// The series with the index in an event.
    pub fn series_at(&self, index: u32) -> Option<&SeriesKey> {
        self.report.series.key(index)
    }
}

/// Counts an echo request, and whether it has a reply.
fn echo<A: Address + Eq + Hash>(
    packet: &Packet<'_>,
    flows: &Flows,
    requests: &mut Requests<A>,
    count: &mut Echoes,
) {
    let (key, from) = FlowKey::<A>::new(packet.interface, flows.frame());
    let (echo, elapsed) = (flows.frame().transport.echo, flows.elapsed());
    if echo.is_reply {
        let request: EchoKey<A> = (key, from.other() as u8, (echo.sequence, echo.data));
        let is_late = requests.take(&request, elapsed).is_some_and(|(_, is_late)| is_late);
        count.unanswered += u64::from(is_late);
    } else {
        let request: EchoKey<A> = (key, from as u8, (echo.sequence, echo.data));
        count.requests += 1;
        let now = (packet.time.saturating_add(1), flows.settings().rules.copy_within);
        let others = requests.insert(request, flows.ring::<A>(packet, MAX_QUERIES), now, elapsed);
        count.unanswered += others.unanswered;
        count.given_up += others.given_up;
    }
}

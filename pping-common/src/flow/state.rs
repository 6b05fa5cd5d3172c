//! The state of a flow.

use super::{
    cold::{Events, Facts, Locked, SpinTimes, Totals, fold},
    count::{self, Behind, DirectionCounts},
    hot::{DirectionState, Hot, Latest},
    key::Endpoint,
    locked::{LockedFlow, quic_recorded_at},
    traffic::Sent,
    transitions,
};
use crate::{
    method::{Method, Methods},
    parse::{Datagram, Segment, Transport},
    rtt::{Pending, PendingEntry, Progress, RttSummary, Rules, TimestampOption},
    series::Traffic,
};

/// A flow, all in one place: replay's. The kernel programs have its parts in maps of their own: what most packets touch
/// ([`super::HotEntry`]), what others do ([`super::Cold`]), and what is pending in a pool.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// What most packets look at.
    pub hot: Hot,
    /// The totals, by [`Endpoint`].
    pub totals: [Totals; 2],
    /// What seldom happens, by [`Endpoint`].
    pub events: [Events; 2],
    /// The times of the spin bit, by [`Endpoint`].
    pub spin: [SpinTimes; 2],
    /// What changes with the lock only.
    pub locked: Locked,
    /// What is pending.
    pub pending: PendingEntry,
}

impl Flow {
    /// A flow of which nothing is known yet.
    pub const EMPTY: Self = Self {
        hot: Hot::EMPTY,
        totals: [Totals::EMPTY; 2],
        events: [Events::EMPTY; 2],
        spin: [SpinTimes::UNSEEN; 2],
        locked: Locked::EMPTY,
        pending: PendingEntry::EMPTY,
    };

    /// The same, of which some ends are addresses of this host.
    pub fn new(facts: Facts) -> Self {
        let mut flow = Self::EMPTY;
        flow.locked.facts = facts;
        flow
    }

    /// What a packet with the lock has of it.
    #[inline(always)]
    pub fn lock(&mut self) -> LockedFlow<'_, &mut PendingEntry> {
        LockedFlow {
            hot: &mut self.hot,
            spin: &mut self.spin,
            locked: &mut self.locked,
            pending: &mut self.pending,
        }
    }

    /// Counts a packet that `from` sent.
    #[inline]
    pub fn count(
        &mut self,
        from: Endpoint,
        transport: &Transport,
        traffic_class: u8,
        direction: u8,
    ) -> Noted {
        let glance = self.hot.glance(from);
        let mut counted = Counted { flow: self, from, behind: None };
        let progress = count::count(&mut counted, &glance, transport, traffic_class, direction);
        Noted { progress, behind: counted.behind }
    }

    /// All that an endpoint sent.
    pub fn sent(&self, endpoint: Endpoint) -> Sent {
        self.totals[endpoint as usize].sent().with(self.hot.traffic[endpoint as usize])
    }

    /// The traffic of both endpoints since the last call. `has_segments` says whether they send TCP segments.
    pub fn fold(&mut self, has_segments: bool) -> [Traffic; 2] {
        [0, 1].map(|endpoint| {
            let (totals, events) = (&mut self.totals[endpoint], &mut self.events[endpoint]);
            let traffic = fold(totals, events, self.hot.traffic[endpoint], has_segments);
            totals.packets = totals.packets.wrapping_add(traffic.packets);
            totals.bytes = totals.bytes.wrapping_add(traffic.bytes);
            events.folded_retransmissions = events.retransmissions;
            events.folded_ce_packets = events.ce_packets;
            traffic
        })
    }

    /// Whether so much was sent that [`Flow::fold`] is due.
    pub fn is_fold_due(&self) -> bool {
        self.totals.iter().zip(self.hot.traffic).any(|(totals, traffic)| totals.sent().is_far_behind(traffic))
    }

    /// The lowest and the smoothed RTT of what an endpoint sends, ns, and when it last recorded.
    pub fn rtt(&self, endpoint: Endpoint) -> RttSummary {
        let (min, smoothed) = self.locked.rtts(endpoint);
        RttSummary { recorded_at: self.pending.recorded_at[endpoint as usize], min, smoothed }
    }

    /// What is pending of an endpoint.
    pub fn pending(&self, endpoint: Endpoint) -> &Pending {
        &self.pending.directions[endpoint as usize]
    }
}

/// What counting a packet showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// How the packet advanced its direction.
    pub progress: Progress,
    /// What it is if it did not.
    pub behind: Option<Behind>,
}

/// A direction of a flow that nothing else counts.
struct Counted<'a> {
    flow: &'a mut Flow,
    from: Endpoint,
    behind: Option<Behind>,
}

impl DirectionCounts for Counted<'_> {
    #[inline]
    fn add_traffic(&mut self, more: u64) {
        let traffic = &mut self.flow.hot.traffic[self.from as usize];
        *traffic = traffic.wrapping_add(more);
    }

    #[inline]
    fn set_latest(&mut self, latest: Latest) {
        self.flow.hot.latest[self.from as usize] = latest;
    }

    #[inline]
    fn set_sequence_end(&mut self, end: u32) {
        self.flow.hot.direction_mut(self.from).sequence_end = end;
    }

    fn add_behind(&mut self, behind: Behind) {
        let events = self.from.of_mut(&mut self.flow.events);
        match behind {
            Behind::Retransmitted => events.retransmissions = events.retransmissions.wrapping_add(1),
            Behind::Reordered => events.reordered = events.reordered.wrapping_add(1),
            Behind::KeepAlive => {}
        }
        self.behind = Some(behind);
    }

    fn add_ce(&mut self) {
        let events = self.from.of_mut(&mut self.flow.events);
        events.ce_packets = events.ce_packets.wrapping_add(1);
    }
}

impl Hot {
    /// The method of most samples of the flow, in whose series its traffic is counted. `number` is its IP protocol number.
    #[inline(always)]
    pub fn method(&self, number: u8, methods: Methods) -> Method {
        match number {
            Segment::NUMBER
                if methods.has(Method::TcpTs) && self.mode.timestamps() != TimestampOption::ABSENT =>
            {
                Method::TcpTs
            }
            Segment::NUMBER if methods.has(Method::TcpSeq) => Method::TcpSeq,
            Segment::NUMBER => Method::TcpHandshake,
            Datagram::NUMBER if methods.has(Method::QuicSpin) => Method::QuicSpin,
            Datagram::NUMBER => Method::QuicHandshake,
            _ => Method::IcmpEcho,
        }
    }

    /// As of [`is_expired`].
    #[inline(always)]
    pub fn is_expired(&self, number: u8, idle: u32) -> bool {
        is_expired(self.state(Endpoint::Low), self.state(Endpoint::High), number, idle)
    }

    /// Whether any identifier of the flow is pending.
    #[inline(always)]
    pub fn is_waiting(&self) -> bool {
        self.state(Endpoint::Low).is_waiting() || self.state(Endpoint::High).is_waiting()
    }
}

/// Whether a flow with these directions has been idle too long: for more than so many seconds. `number` is its IP protocol number.
#[inline(always)]
pub fn is_expired(low: DirectionState, high: DirectionState, number: u8, idle: u32) -> bool {
    idle > transitions::idle_limit(low, high, number)
}

/// The latest time at which a packet of a flow is known to have come, ns: most packets need no clock. `number` is its IP protocol
/// number, `recorded_at` that of its [`PendingEntry`], if it has one.
#[inline(always)]
pub fn last_known(hot: &Hot, locked: &Locked, number: u8, recorded_at: [u64; 2]) -> u64 {
    let [low, high] = if number == Datagram::NUMBER {
        [quic_recorded_at(hot, Endpoint::Low), quic_recorded_at(hot, Endpoint::High)]
    } else {
        recorded_at
    };
    locked.last_opened_at().max(low).max(high)
}

/// Whether a flow can do without its entry of the pool at `now`, ns: nothing is pending, and recording is limited no more. Of the entry it
/// takes when both directions last recorded.
#[inline(always)]
pub fn is_pending_idle(hot: &Hot, locked: &Locked, [low, high]: [u64; 2], rules: &Rules, now: u64) -> bool {
    let is_free = |endpoint: Endpoint, recorded_at| {
        let (min, smoothed) = locked.rtts(endpoint);
        // A leg that ends gives the first RTT, by which recording may be limited.
        !hot.state(endpoint).is_leg_pending() && rules.allow(&RttSummary { recorded_at, min, smoothed }, now)
    };
    !hot.is_waiting() && is_free(Endpoint::Low, low) && is_free(Endpoint::High, high)
}

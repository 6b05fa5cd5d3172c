//! The state of a flow.

use crate::{
    flow::{
        key::Endpoint,
        memory::{
            cold::{Events, Facts, Locked, SpinTimes, Totals, flush},
            direction_state::DirectionState,
            hot::Hot,
            latest::Latest,
            locked::{LockedFlow, quic_recorded_at},
            traffic::Sent,
        },
        packet::{
            count::{self, Behind, DirectionCounts},
            step::Outcome,
            transitions,
        },
    },
    method::{Method, Methods},
    parse::{Datagram, Kind, Segment, Transport},
    rtt::{Pending, PendingEntry, PossibleChange, Progress, RttSummary, Rules, TimestampOption},
    series::{SeriesKey, Traffic},
};

/// A whole flow, as replay has it. The kernel programs have its parts in separate maps: what most packets touch
/// ([`super::HotEntry`]), what the others touch ([`super::Cold`]), and a pool of pending timestamps.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// The part that most packets read.
    pub hot: Hot,
    /// The totals, by [`Endpoint`].
    pub totals: [Totals; 2],
    /// The rare events, by [`Endpoint`].
    pub events: [Events; 2],
    /// The times of the spin bit, by [`Endpoint`].
    pub spin: [SpinTimes; 2],
    /// The part that changes only under the lock.
    pub locked: Locked,
    /// The pending timestamps.
    pub pending: PendingEntry,
    /// Whether the latest packet of each endpoint says in which direction it passed. A capture may leave that out.
    pub has_direction: [bool; 2],
    /// Whether each host is at another side of the interface.
    pub has_two_arms: bool,
}

impl Flow {
    /// A flow that has had no packet.
    pub const EMPTY: Self = Self {
        hot: Hot::EMPTY,
        totals: [Totals::EMPTY; 2],
        events: [Events::EMPTY; 2],
        spin: [SpinTimes::UNSEEN; 2],
        locked: Locked::EMPTY,
        pending: PendingEntry::EMPTY,
        has_direction: [false; 2],
        has_two_arms: false,
    };

    /// Creates a flow with these facts.
    pub fn new(facts: Facts) -> Self {
        let mut flow = Self::EMPTY;
        flow.locked.facts = facts;
        flow
    }

    /// Locks the flow for a packet.
    #[inline(always)]
    pub fn lock(&mut self) -> LockedFlow<'_, &mut PendingEntry> {
        LockedFlow {
            hot: &mut self.hot,
            spin: &mut self.spin,
            locked: &mut self.locked,
            pending: &mut self.pending,
        }
    }

    /// Counts a packet that `from` sent. `direction` may be [`SeriesKey::NO_DIRECTION`].
    #[inline]
    pub fn count(
        &mut self,
        from: Endpoint,
        transport: &Transport,
        traffic_class: u8,
        direction: u8,
    ) -> Counted {
        let is_known = direction != SeriesKey::NO_DIRECTION;
        let was_known = core::mem::replace(from.of_mut(&mut self.has_direction), is_known);
        let direction = if is_known { direction } else { self.hot.latest(from).direction() };
        if is_known && !was_known {
            *from.of_mut(&mut self.hot.latest) = Latest::new(direction, traffic_class);
        }
        let snapshot = self.hot.snapshot(from);
        let mut counted = FlowCounts { flow: self, from, behind: None };
        let is_expected = transport.kind == Kind::Tcp && snapshot.is_expected(&transport.segment);
        let progress =
            count::count(&mut counted, &snapshot, transport, traffic_class, direction, is_expected);
        Counted { progress, behind: counted.behind, is_expected }
    }

    /// All that an endpoint sent.
    pub fn sent(&self, endpoint: Endpoint) -> Sent {
        self.totals[endpoint as usize].sent().with(self.hot.traffic[endpoint as usize])
    }

    /// Returns the traffic of both endpoints since the last call. `has_segments` says whether they send TCP segments.
    pub fn flush(&mut self, has_segments: bool) -> [Traffic; 2] {
        [0, 1].map(|endpoint| {
            let (totals, events) = (&mut self.totals[endpoint], &mut self.events[endpoint]);
            let traffic = flush(totals, events, self.hot.traffic[endpoint], has_segments);
            totals.packets = totals.packets.wrapping_add(traffic.packets);
            totals.bytes = totals.bytes.wrapping_add(traffic.bytes);
            events.flushed_retransmissions = events.retransmissions;
            events.flushed_ce_packets = events.ce_packets;
            traffic
        })
    }

    /// Whether enough was sent that [`Flow::flush`] is due.
    pub fn is_flush_due(&self) -> bool {
        self.totals.iter().zip(self.hot.traffic).any(|(totals, traffic)| totals.sent().is_far_behind(traffic))
    }

    /// The RTTs of what an endpoint sends, and when it last recorded.
    pub fn rtt(&self, endpoint: Endpoint) -> RttSummary {
        let (min, smoothed) = self.locked.rtts(endpoint);
        RttSummary { recorded_at: self.pending.recorded_at[endpoint as usize], min, smoothed }
    }

    /// The pending timestamps of an endpoint.
    pub fn pending(&self, endpoint: Endpoint) -> &Pending {
        &self.pending.directions[endpoint as usize]
    }
}

impl Flow {
    /// Returns what [`Flow::step`] could change.
    #[inline]
    pub fn possible_change(
        &self,
        from: Endpoint,
        transport: &Transport,
        counted: Counted,
        rules: &Rules,
    ) -> PossibleChange {
        let outside_end = from.other().of(&self.events).outside_end;
        self.hot.snapshot(from).possible_change(
            from,
            transport,
            counted.progress,
            rules,
            |endpoint| Some(self.pending(endpoint)),
            || outside_end,
            counted.is_expected,
        )
    }

    /// Runs [`LockedFlow::step`] for this flow.
    #[inline]
    pub fn step(
        &mut self,
        from: Endpoint,
        transport: &Transport,
        progress: Progress,
        now: u64,
        rules: &Rules,
    ) -> Outcome {
        if progress == Progress::Elsewhere {
            self.hot.direction_mut(from).state.set_forwarded();
        }
        if progress.untracked().is_some() {
            return Outcome { is_refused: progress == Progress::Refused, ..Outcome::NOTHING };
        }
        let outside_end = from.other().of(&self.events).outside_end;
        self.lock().step(from, transport, progress, outside_end, now, rules)
    }

    /// Invalidates all times because the clock was set back. `number` is the flow's IP protocol number.
    pub fn set_clock_back(&mut self, number: u8) {
        let is_udp = number == Datagram::NUMBER;
        let mut locked = self.lock();
        locked.invalidate(is_udp);
        for endpoint in [Endpoint::Low, Endpoint::High] {
            if is_udp {
                locked.set_quic_recorded_at(endpoint, 0);
            } else {
                locked.set_recorded_at(endpoint, 0);
            }
        }
    }
}

/// What was learned by counting a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// How the packet advanced its flow direction.
    pub progress: Progress,
    /// What the packet is if it did not advance it.
    pub behind: Option<Behind>,
    /// What [`super::FlowSnapshot::is_expected`] says of a segment.
    pub is_expected: bool,
}

/// A flow direction whose counts no other CPU changes.
struct FlowCounts<'a> {
    flow: &'a mut Flow,
    from: Endpoint,
    behind: Option<Behind>,
}

impl DirectionCounts for FlowCounts<'_> {
    #[inline]
    fn has_counted(&self) -> bool {
        self.flow.hot.traffic[self.from as usize] != 0
    }

    #[inline]
    fn has_other_counted(&self) -> bool {
        self.flow.hot.traffic[self.from.other() as usize] != 0
    }

    #[inline]
    fn has_two_arms(&self) -> bool {
        self.flow.has_two_arms && self.flow.has_direction == [true; 2]
    }

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

    fn set_outside_end(&mut self, end: u32) {
        self.from.of_mut(&mut self.flow.events).outside_end = end;
    }

    fn other_outside_end(&self) -> u32 {
        self.from.other().of(&self.flow.events).outside_end
    }
}

impl Hot {
    /// The method of most samples of the flow; its traffic is counted in the series of that method. `number` is the IP
    /// protocol number.
    #[inline(always)]
    pub fn method(&self, number: u8, methods: Methods) -> Method {
        match number {
            Segment::NUMBER => {
                let options = self.protocol_state.timestamps();
                if methods.has(Method::TcpTs) && !options.is_without() {
                    Method::TcpTs
                } else if methods.has(Method::TcpSeq) {
                    Method::TcpSeq
                } else if methods.has(Method::TcpTs) && options == TimestampOption::UNUSABLE {
                    Method::TcpTs
                } else {
                    Method::TcpHandshake
                }
            }
            Datagram::NUMBER if methods.has(Method::QuicSpin) => Method::QuicSpin,
            Datagram::NUMBER => Method::QuicHandshake,
            _ => Method::IcmpEcho,
        }
    }

    /// Calls [`is_expired`] with the states of this flow.
    #[inline(always)]
    pub fn is_expired(&self, number: u8, idle: u32) -> bool {
        is_expired(self.state(Endpoint::Low), self.state(Endpoint::High), number, idle)
    }

    /// Whether anything of the flow is pending.
    #[inline(always)]
    pub fn has_pending(&self) -> bool {
        self.state(Endpoint::Low).has_pending() || self.state(Endpoint::High).has_pending()
    }
}

/// Whether a flow with these directions has been idle too long. `idle` is in seconds, `number` is the IP protocol number.
#[inline(always)]
pub fn is_expired(low: DirectionState, high: DirectionState, number: u8, idle: u32) -> bool {
    idle > transitions::idle_limit(low, high, number)
}

/// Returns the latest time at which the flow is known to have had a packet, ns. Its last packet may be later, because
/// most packets read no clock. `number` is the IP protocol number, `recorded_at` that of the flow's [`PendingEntry`], if
/// it has one.
#[inline(always)]
pub fn last_known(hot: &Hot, locked: &Locked, number: u8, recorded_at: [u64; 2]) -> u64 {
    let [low, high] = if number == Datagram::NUMBER {
        [quic_recorded_at(hot, Endpoint::Low), quic_recorded_at(hot, Endpoint::High)]
    } else {
        recorded_at
    };
    locked.last_opened_at().max(low).max(high)
}

/// Whether a flow can do without its entry of the pool at `now`, ns: nothing is pending, and no limit depends on the last
/// recordings any more. The array has the entry's `recorded_at`.
#[inline(always)]
pub fn is_pending_idle(hot: &Hot, locked: &Locked, [low, high]: [u64; 2], rules: &Rules, now: u64) -> bool {
    let is_free = |endpoint: Endpoint, recorded_at| {
        let (min, smoothed) = locked.rtts(endpoint);
        // A leg that completes gives the first RTT, which may limit recording.
        !hot.state(endpoint).is_leg_pending() && rules.allow(&RttSummary { recorded_at, min, smoothed }, now)
    };
    !hot.has_pending() && is_free(Endpoint::Low, low) && is_free(Endpoint::High, high)
}

//! The part of a flow that most packets touch: one cache line, with the key of a flow over IPv4.

use super::{
    key::{Endpoint, FlowKey},
    lifecycle::Lifecycle,
};
use crate::{
    layout::layout,
    parse::Direction,
    rtt::{Connection, TimestampOption, TsvalState},
    series::SeriesKey,
};

/// The direction and the class of service of the latest packet that an endpoint sent, in one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Latest(pub u8);

layout!(Latest { 0 });

impl Latest {
    /// Nothing was sent yet.
    pub const NONE: Self = Self(0);

    const DIRECTION: u8 = 3;
    const UNKNOWN: u8 = 3;

    /// That of a packet of this traffic class byte, which passed in `direction`: the number of a [`Direction`], or
    /// [`SeriesKey::NO_DIRECTION`].
    #[inline(always)]
    pub fn new(direction: u8, traffic_class: u8) -> Self {
        Self(traffic_class & !Self::DIRECTION | direction & Self::DIRECTION)
    }

    /// The direction that [`Latest::new`] was given.
    #[inline(always)]
    pub fn direction(self) -> u8 {
        match self.0 & Self::DIRECTION {
            Self::UNKNOWN => SeriesKey::NO_DIRECTION,
            direction => direction,
        }
    }

    /// The differentiated services codepoint (RFC 2474).
    #[inline(always)]
    pub fn dscp(self) -> u8 {
        self.0 >> 2
    }
}

/// The state of a flow direction that packets look at without the lock, and change only with it. One word, so that it is read and
/// written at once: flags, and above them the time of the last recording in units of 2^20 ns, as far as there is room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct DirectionState(u32);

layout!(DirectionState { 0 });

impl DirectionState {
    /// Nothing was sent yet.
    pub const EMPTY: Self = Self(0);

    const LIFECYCLE: u32 = 3;
    const LEG_IS_PENDING: u32 = 1 << 2;
    const TSVAL_SHIFT: u32 = 3;
    const HAS_SEQUENCE: u32 = 1 << 5;
    const WAITING: u32 = 1 << 6;
    const ESTABLISHED: u32 = 1 << 7;
    /// The flags of the spin bit, which a flow of QUIC has in place of the four above.
    const SPIN_SHIFT: u32 = 3;
    const SPIN: u32 = 31;
    const RECORDED_SHIFT: u32 = 8;

    #[inline(always)]
    fn has(self, flag: u32) -> bool {
        self.0 & flag != 0
    }

    #[inline(always)]
    fn set(&mut self, mask: u32, value: u32) {
        self.0 = self.0 & !mask | value & mask;
    }

    /// Whether it is open.
    #[inline(always)]
    pub fn lifecycle(self) -> Lifecycle {
        Lifecycle((self.0 & Self::LIFECYCLE) as u8)
    }

    #[inline(always)]
    pub(super) fn set_lifecycle(&mut self, lifecycle: Lifecycle) {
        self.set(Self::LIFECYCLE, lifecycle.0.into());
    }

    /// Whether it was ever answered, or closed.
    #[inline(always)]
    pub fn is_begun(self) -> bool {
        matches!(self.lifecycle(), Lifecycle::OPEN | Lifecycle::CLOSED)
    }

    /// Whether a segment other than SYN was sent: from then on a SYN begins another connection.
    #[inline(always)]
    pub fn is_established(self) -> bool {
        self.has(Self::ESTABLISHED)
    }

    #[inline(always)]
    pub(super) fn set_established(&mut self, is_established: bool) {
        self.set(Self::ESTABLISHED, u32::from(is_established) << Self::ESTABLISHED.trailing_zeros());
    }

    /// Whether its leg of a handshake waits for the reply.
    #[inline(always)]
    pub(super) fn is_leg_pending(self) -> bool {
        self.has(Self::LEG_IS_PENDING)
    }

    #[inline(always)]
    pub(super) fn set_leg_pending(&mut self, is_pending: bool) {
        self.set(Self::LEG_IS_PENDING, u32::from(is_pending) << Self::LEG_IS_PENDING.trailing_zeros());
    }

    /// The state of the newest `TSval`.
    #[inline(always)]
    pub fn tsval_state(self) -> TsvalState {
        TsvalState((self.0 >> Self::TSVAL_SHIFT & 3) as u8)
    }

    #[inline(always)]
    pub(super) fn set_tsval_state(&mut self, state: TsvalState) {
        self.set(3 << Self::TSVAL_SHIFT, u32::from(state.0) << Self::TSVAL_SHIFT);
    }

    /// Whether the highest sequence number is known.
    #[inline(always)]
    pub(super) fn has_sequence(self) -> bool {
        self.has(Self::HAS_SEQUENCE)
    }

    #[inline(always)]
    pub(super) fn set_has_sequence(&mut self) {
        self.set(Self::HAS_SEQUENCE, Self::HAS_SEQUENCE);
    }

    /// Whether any identifier of this direction is pending.
    #[inline(always)]
    pub fn is_waiting(self) -> bool {
        self.has(Self::WAITING)
    }

    #[inline(always)]
    pub(super) fn set_waiting(&mut self, is_waiting: bool) {
        self.set(Self::WAITING, u32::from(is_waiting) << Self::WAITING.trailing_zeros());
    }

    /// The flags of the spin bit, of a flow of QUIC.
    #[inline(always)]
    pub(super) fn spin(self) -> u8 {
        (self.0 >> Self::SPIN_SHIFT & Self::SPIN) as u8
    }

    #[inline(always)]
    pub(super) fn set_spin(&mut self, flags: u8) {
        self.set(Self::SPIN << Self::SPIN_SHIFT, u32::from(flags) << Self::SPIN_SHIFT);
    }

    /// Notes when the direction recorded last, ns; 0 for never.
    #[inline(always)]
    pub(super) fn set_recorded_at(&mut self, recorded_at: u64) {
        self.set(!0 << Self::RECORDED_SHIFT, units(recorded_at) << Self::RECORDED_SHIFT);
    }

    /// Whether the direction certainly recorded less than `limit` ns before `now`.
    ///
    /// Certainly: the last recording counts as of the beginning of its unit, and `now` as of the end. If it is a multiple of
    /// 2^44 ns (five hours) ago, it may be taken for a new one; then the next segment that could be recorded is.
    #[inline(always)]
    pub(super) fn has_recorded_within(self, limit: u64, now: u64) -> bool {
        let recorded = self.0 >> Self::RECORDED_SHIFT;
        let since =
            units(now).wrapping_sub(recorded).wrapping_add(1) << Self::RECORDED_SHIFT >> Self::RECORDED_SHIFT;
        limit != 0 && recorded != 0 && u64::from(since) << UNIT_SHIFT <= limit
    }
}

/// How many bits of a time in ns are below a unit of [`DirectionState::set_recorded_at`].
const UNIT_SHIFT: u32 = 20;

#[inline(always)]
fn units(time: u64) -> u32 {
    (time >> UNIT_SHIFT) as u32
}

/// Of TCP whether segments carry timestamps, and how many did not while that was not known; of UDP whether the flow is QUIC, and how far
/// its spin bits are trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Mode(pub u8);

layout!(Mode { 0 });

impl Mode {
    /// Neither is known yet.
    pub const UNKNOWN: Self = Self(0);

    /// Whether the segments of the flow carry timestamps.
    #[inline(always)]
    pub fn timestamps(self) -> TimestampOption {
        TimestampOption(self.0 & 3)
    }

    #[inline(always)]
    pub(super) fn set_timestamps(&mut self, option: TimestampOption) {
        self.0 = option.0;
    }

    /// Counts a segment without timestamps, while it is not known whether the flow has them, and says how many there were.
    #[inline(always)]
    pub(super) fn count_without_timestamps(&mut self) -> u8 {
        self.0 = self.0.wrapping_add(1 << 2);
        self.0 >> 2
    }

    /// Whether the flow is QUIC, and how far its spin bits are trusted.
    #[inline(always)]
    pub fn connection(self) -> Connection {
        Connection(self.0)
    }

    #[inline(always)]
    pub(super) fn set_connection(&mut self, connection: Connection) {
        self.0 = connection.0;
    }
}

/// What a packet looks at without the lock, as it was at one time or another since the packet came.
#[derive(Clone, Copy, Debug)]
pub struct Glance {
    /// The direction that the packet is of.
    pub forward: HotDirection,
    /// The state of the other one.
    pub reverse: DirectionState,
    /// The latest packet of the direction.
    pub latest: Latest,
    /// Not 0 if a packet was missed.
    pub contended: u8,
    /// The kind of TCP or UDP.
    pub mode: Mode,
}

/// What most packets look at of the direction that an endpoint sends in.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HotDirection {
    /// The newest `TSval` seen, where the state says that there is one. Of QUIC the lower half of the time of the last recording.
    pub newest_tsval: u32,
    /// The highest [`Segment::sequence_end`](crate::parse::Segment::sequence_end) seen, where the state says that there is one.
    /// Written without the lock. Of QUIC the higher half of the time of the last recording.
    pub sequence_end: u32,
    /// The rest.
    pub state: DirectionState,
}

layout!(HotDirection { newest_tsval, sequence_end, state });

impl HotDirection {
    /// Nothing was sent yet.
    pub const EMPTY: Self = Self { newest_tsval: 0, sequence_end: 0, state: DirectionState::EMPTY };
}

/// What most packets look at of a flow.
///
/// Several CPUs may do so at once. `latest`, `contended`, `traffic`, `sequence_end` of TCP, and `newest_tsval` by
/// compare-and-exchange, change without the lock; all else only with it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Hot {
    /// The lock of the flow. Belongs to the kernel programs.
    pub busy: u32,
    /// The latest packets, by [`Endpoint`].
    pub latest: [Latest; 2],
    /// Not 0 if a packet was missed, since another CPU had the lock.
    pub contended: u8,
    /// The kind of TCP or UDP.
    pub mode: Mode,
    /// What each endpoint sent, as [`super::Sent`] counts it.
    pub traffic: [u64; 2],
    /// Both directions, by [`Endpoint`].
    pub directions: [HotDirection; 2],
}

layout!(Hot { busy, latest, contended, mode, traffic, directions });

impl Hot {
    /// A flow of which nothing is known yet.
    pub const EMPTY: Self = Self {
        busy: 0,
        latest: [Latest::NONE; 2],
        contended: 0,
        mode: Mode::UNKNOWN,
        traffic: [0; 2],
        directions: [HotDirection::EMPTY; 2],
    };

    /// The direction that an endpoint sends in.
    #[inline(always)]
    pub fn direction(&self, endpoint: Endpoint) -> &HotDirection {
        endpoint.of(&self.directions)
    }

    /// The same, mutable.
    #[inline(always)]
    pub fn direction_mut(&mut self, endpoint: Endpoint) -> &mut HotDirection {
        endpoint.of_mut(&mut self.directions)
    }

    /// The state of a direction.
    #[inline(always)]
    pub fn state(&self, endpoint: Endpoint) -> DirectionState {
        self.direction(endpoint).state
    }

    /// The latest packet of an endpoint.
    #[inline(always)]
    pub fn latest(&self, endpoint: Endpoint) -> Latest {
        *endpoint.of(&self.latest)
    }

    /// What a packet of `from` looks at.
    #[inline(always)]
    pub fn glance(&self, from: Endpoint) -> Glance {
        Glance {
            forward: *self.direction(from),
            reverse: self.state(from.other()),
            latest: self.latest(from),
            contended: self.contended,
            mode: self.mode,
        }
    }

    /// Whether a direction is open.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.directions.iter().any(|direction| direction.state.lifecycle() == Lifecycle::OPEN)
    }

    /// Whether the flow is unanswered: such flows are evicted when there are too many.
    #[inline(always)]
    pub fn is_unanswered(&self) -> bool {
        !self.directions.iter().any(|direction| direction.state.is_begun())
    }

    /// The number of the [`Direction`] in which samples of `timed` are matched: the one in which the packets of the other
    /// pass, or will when there are any; `has_reply` says whether there were.
    #[inline(always)]
    pub fn matched_at(&self, timed: Endpoint, has_reply: bool) -> u8 {
        if has_reply {
            return self.latest(timed.other()).direction();
        }
        match self.latest(timed).direction() {
            SeriesKey::NO_DIRECTION => SeriesKey::NO_DIRECTION,
            direction if direction == Direction::Ingress as u8 => Direction::Egress as u8,
            _ => Direction::Ingress as u8,
        }
    }
}

/// An entry of the table: the key, and what most packets look at. Aligned so that one of IPv4 is in one cache line, and one of IPv6 in
/// two.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub struct HotEntry<A> {
    /// The name of the flow.
    pub key: FlowKey<A>,
    /// What most packets look at.
    pub hot: Hot,
}

layout!(HotEntry<A> { key, hot });

const _: () = {
    assert!(size_of::<Hot>() == 48);
    assert!(core::mem::offset_of!(Hot, traffic) == 8);
    assert!(core::mem::offset_of!(Hot, directions) == 24);
    assert!(size_of::<HotEntry<crate::parse::Ipv4>>() == 64);
    assert!(size_of::<HotEntry<crate::parse::Ipv6>>() == 96);
};

//! The part of a flow that most packets touch. In an IPv4 flow it fits into one cache line, together with the key.

use crate::{
    flow::{
        key::{Endpoint, FlowKey},
        memory::{latest::Latest, lifecycle::Lifecycle},
    },
    layout::layout,
    parse::{Direction, Segment},
    rtt::{SpinTrust, TimestampOption, TsvalState},
};

/// The state of a flow direction that packets read without the lock, and change only under it. It is one word, so that it
/// is read and written at once: flags, the window scale, and above them the low bits of the time of the last recording, in
/// units of 2^20 ns.
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
    const HAS_PENDING: u32 = 1 << 6;
    const ESTABLISHED: u32 = 1 << 7;
    /// The flags of the spin bit. A QUIC flow has them in place of the four above.
    const SPIN_SHIFT: u32 = 3;
    const SPIN: u32 = 31;
    const SCALE_SHIFT: u32 = 8;
    const SCALE: u32 = 15;
    const IS_FORWARDED: u32 = 1 << 12;
    const IS_CONFIRMED: u32 = 1 << 13;
    const RECORDED_SHIFT: u32 = 14;

    #[inline(always)]
    fn has(self, flag: u32) -> bool {
        self.0 & flag != 0
    }

    #[inline(always)]
    fn set(&mut self, mask: u32, value: u32) {
        self.0 = self.0 & !mask | value & mask;
    }

    /// The stage of the direction's life.
    #[inline(always)]
    pub fn lifecycle(self) -> Lifecycle {
        Lifecycle((self.0 & Self::LIFECYCLE) as u8)
    }

    #[inline(always)]
    pub(in crate::flow) fn set_lifecycle(&mut self, lifecycle: Lifecycle) {
        self.set(Self::LIFECYCLE, lifecycle.0.into());
    }

    /// Whether the direction was ever answered or closed.
    #[inline(always)]
    pub fn is_begun(self) -> bool {
        matches!(self.lifecycle(), Lifecycle::OPEN | Lifecycle::CLOSED)
    }

    /// Whether a segment other than a SYN was sent. From then on, a SYN begins another connection.
    #[inline(always)]
    pub fn is_established(self) -> bool {
        self.has(Self::ESTABLISHED)
    }

    #[inline(always)]
    pub(in crate::flow) fn set_established(&mut self) {
        self.set(Self::ESTABLISHED, Self::ESTABLISHED);
    }

    #[inline(always)]
    pub(in crate::flow) fn unset_established(&mut self) {
        self.set(Self::ESTABLISHED, 0);
    }

    /// Whether the direction's leg of the handshake is pending.
    #[inline(always)]
    pub fn is_leg_pending(self) -> bool {
        self.has(Self::LEG_IS_PENDING)
    }

    #[inline(always)]
    pub(in crate::flow) fn set_leg_pending(&mut self, is_pending: bool) {
        self.set(Self::LEG_IS_PENDING, u32::from(is_pending) << Self::LEG_IS_PENDING.trailing_zeros());
    }

    /// The state of the newest `TSval`.
    #[inline(always)]
    pub fn tsval_state(self) -> TsvalState {
        TsvalState((self.0 >> Self::TSVAL_SHIFT & 3) as u8)
    }

    #[inline(always)]
    pub(in crate::flow) fn set_tsval_state(&mut self, state: TsvalState) {
        self.set(3 << Self::TSVAL_SHIFT, u32::from(state.0) << Self::TSVAL_SHIFT);
    }

    /// Whether the highest sequence number is known.
    #[inline(always)]
    pub(in crate::flow) fn has_sequence(self) -> bool {
        self.has(Self::HAS_SEQUENCE)
    }

    /// The same as a number, 1 or 0.
    #[inline(always)]
    pub(in crate::flow) fn has_sequence_bit(self) -> u32 {
        self.0 >> Self::HAS_SEQUENCE.trailing_zeros() & 1
    }

    /// Returns 1 if anything was sent, else 0.
    #[inline(always)]
    pub(in crate::flow) fn is_seen(self) -> u32 {
        (self.0 | self.0 >> 1) & 1
    }

    #[inline(always)]
    pub(in crate::flow) fn set_has_sequence(&mut self) {
        self.set(Self::HAS_SEQUENCE, Self::HAS_SEQUENCE);
    }

    #[inline(always)]
    pub(in crate::flow) fn unset_has_sequence(&mut self) {
        self.set(Self::HAS_SEQUENCE, 0);
    }

    /// The window scale that the sender's SYN offered: see [`Segment::window_scale`].
    #[inline(always)]
    pub(in crate::flow) fn window_scale(self) -> u32 {
        self.0 >> Self::SCALE_SHIFT & Self::SCALE
    }

    #[inline(always)]
    pub(in crate::flow) fn set_window_scale(&mut self, scale: u8) {
        self.set(Self::SCALE << Self::SCALE_SHIFT, u32::from(scale) << Self::SCALE_SHIFT);
    }

    /// Whether packets of this direction were seen at the other hook, too: the interface forwards them to itself.
    #[inline(always)]
    pub fn is_forwarded(self) -> bool {
        self.has(Self::IS_FORWARDED)
    }

    /// Notes that packets of this direction were seen at the other hook.
    #[inline(always)]
    pub fn set_forwarded(&mut self) {
        self.set(Self::IS_FORWARDED, Self::IS_FORWARDED);
    }

    /// Whether an acknowledgement has shown that the ends know each other's numbers. Both directions have the same.
    #[inline(always)]
    pub(in crate::flow) fn is_confirmed(self) -> bool {
        self.has(Self::IS_CONFIRMED)
    }

    #[inline(always)]
    pub(in crate::flow) fn set_confirmed(&mut self, is_confirmed: bool) {
        self.set(Self::IS_CONFIRMED, u32::from(is_confirmed) << Self::IS_CONFIRMED.trailing_zeros());
    }

    /// Forgets which numbers a TCP direction has sent.
    #[inline(always)]
    pub fn forget_numbers(&mut self) {
        self.set_confirmed(false);
        self.unset_has_sequence();
        self.set_window_scale(0);
        self.set_tsval_state(TsvalState::UNKNOWN);
    }

    /// Whether anything of this direction is pending.
    #[inline(always)]
    pub fn has_pending(self) -> bool {
        self.has(Self::HAS_PENDING)
    }

    #[inline(always)]
    pub(in crate::flow) fn set_has_pending(&mut self, has_pending: bool) {
        self.set(Self::HAS_PENDING, u32::from(has_pending) << Self::HAS_PENDING.trailing_zeros());
    }

    /// The flags of the spin bit, in a QUIC flow.
    #[inline(always)]
    pub(in crate::flow) fn spin(self) -> u8 {
        (self.0 >> Self::SPIN_SHIFT & Self::SPIN) as u8
    }

    #[inline(always)]
    pub(in crate::flow) fn set_spin(&mut self, flags: u8) {
        self.set(Self::SPIN << Self::SPIN_SHIFT, u32::from(flags) << Self::SPIN_SHIFT);
    }

    /// Notes when the direction last recorded, ns; 0 for never.
    #[inline(always)]
    pub(in crate::flow) fn set_recorded_at(&mut self, recorded_at: u64) {
        self.set(!0 << Self::RECORDED_SHIFT, units(recorded_at) << Self::RECORDED_SHIFT);
    }

    /// Whether the direction has recorded anything: false once in four minutes although it has.
    #[inline(always)]
    pub(in crate::flow) fn has_recorded(self) -> bool {
        self.0 >> Self::RECORDED_SHIFT != 0
    }

    /// True if the direction certainly recorded less than `limit` ns before `now`.
    ///
    /// To be certain, the last recording counts as of the beginning of its unit, and `now` as of the end of its unit. A
    /// recording a multiple of [`WRAPS_AFTER`] ago may look recent; then recording resumes within `limit`.
    #[inline(always)]
    pub(in crate::flow) fn has_recorded_within(self, limit: u64, now: u64) -> bool {
        let recorded = self.0 >> Self::RECORDED_SHIFT;
        let since =
            units(now).wrapping_sub(recorded).wrapping_add(1) << Self::RECORDED_SHIFT >> Self::RECORDED_SHIFT;
        limit != 0 && limit < WRAPS_AFTER && recorded != 0 && u64::from(since) << UNIT_SHIFT <= limit
    }
}

/// The bits of a time in ns that lie below a unit of [`DirectionState::set_recorded_at`].
const UNIT_SHIFT: u32 = 20;

/// The nanoseconds after which these units wrap: four and a half minutes.
const WRAPS_AFTER: u64 = 1 << (UNIT_SHIFT + u32::BITS - DirectionState::RECORDED_SHIFT);

#[inline(always)]
fn units(time: u64) -> u32 {
    (time >> UNIT_SHIFT) as u32
}

/// What is known of a flow's protocol. TCP: whether segments carry timestamps that can be used, and what speaks against it.
/// UDP: whether the flow is QUIC, and how far its spin bits are trusted.
///
/// The two lowest bits of TCP are the [`TimestampOption`]. While it is unknown, the others count segments without
/// timestamps. Then each endpoint has a count of segments in a row without a usable timestamp (two bits), and a bit that
/// says whether its clock was seen to move. Once timestamps are given up, that bit says whether the endpoint's are at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct ProtocolState(pub u8);

layout!(ProtocolState { 0 });

impl ProtocolState {
    /// Nothing is known yet.
    pub const UNKNOWN: Self = Self(0);

    /// Whether the segments of the flow carry timestamps that can be used.
    #[inline(always)]
    pub fn timestamps(self) -> TimestampOption {
        TimestampOption(self.0 & 3)
    }

    const LACKING_SHIFT: u8 = 2;
    const LACKING: u8 = 3;
    const CLOCK_SHIFT: u8 = 6;

    /// Replaces the first, and clears all else.
    #[inline(always)]
    pub(in crate::flow) fn set_timestamps(&mut self, option: TimestampOption) {
        self.0 = option.0;
    }

    /// Gives timestamps up: those of `endpoint` cannot be used.
    #[inline(always)]
    pub(in crate::flow) fn give_up_timestamps(&mut self, endpoint: Endpoint) {
        self.0 = TimestampOption::UNUSABLE.0 | Self::clock(endpoint);
    }

    #[inline(always)]
    fn clock(endpoint: Endpoint) -> u8 {
        1 << Self::CLOCK_SHIFT << endpoint as u8
    }

    /// Whether timestamps were given up because of this endpoint's.
    #[inline(always)]
    pub fn has_unusable(self, endpoint: Endpoint) -> bool {
        self.timestamps() == TimestampOption::UNUSABLE && self.0 & Self::clock(endpoint) != 0
    }

    /// Whether nothing speaks against the timestamps of an endpoint of a flow with timestamps.
    #[inline(always)]
    pub(in crate::flow) fn is_settled(self, endpoint: Endpoint) -> bool {
        self.has_moved(endpoint) && self.lacking(endpoint) == 0
    }

    /// Whether the clock of an endpoint of a flow with timestamps was seen to move.
    #[inline(always)]
    pub(in crate::flow) fn has_moved(self, endpoint: Endpoint) -> bool {
        self.0 & Self::clock(endpoint) != 0
    }

    #[inline(always)]
    pub(in crate::flow) fn set_moved(&mut self, endpoint: Endpoint, has_moved: bool) {
        self.0 = self.0 & !Self::clock(endpoint) | if has_moved { Self::clock(endpoint) } else { 0 };
    }

    /// How many segments in a row of an endpoint lacked a usable timestamp, in a flow with timestamps.
    #[inline(always)]
    pub(in crate::flow) fn lacking(self, endpoint: Endpoint) -> u8 {
        self.0 >> (Self::LACKING_SHIFT + 2 * endpoint as u8) & Self::LACKING
    }

    #[inline(always)]
    pub(in crate::flow) fn set_lacking(&mut self, endpoint: Endpoint, segments: u8) {
        let shift = Self::LACKING_SHIFT + 2 * endpoint as u8;
        self.0 = self.0 & !(Self::LACKING << shift) | segments << shift;
    }

    /// Counts a segment without timestamps while it is unknown whether the flow has them. Returns the number of such
    /// segments.
    #[inline(always)]
    pub(in crate::flow) fn count_without_timestamps(&mut self) -> u8 {
        self.0 = self.0.wrapping_add(1 << 2);
        self.0 >> 2
    }

    /// Whether the flow is QUIC, and how far its spin bits are trusted.
    #[inline(always)]
    pub fn spin_trust(self) -> SpinTrust {
        SpinTrust(self.0)
    }

    #[inline(always)]
    pub(in crate::flow) fn set_spin_trust(&mut self, trust: SpinTrust) {
        self.0 = trust.0;
    }
}

/// What a packet reads without the lock. Each field was current at some time since the packet came.
#[derive(Clone, Copy, Debug)]
pub struct FlowSnapshot {
    /// The flow direction of the packet.
    pub forward: HotDirection,
    /// The state of the other direction.
    pub reverse: DirectionState,
    /// The highest sequence number of the other direction.
    pub reverse_end: u32,
    /// The latest packet of the packet's direction.
    pub latest: Latest,
    /// The latest packet of the other direction.
    pub reverse_latest: Latest,
    /// Not 0 if a packet was missed.
    pub contended: u8,
    /// What is known of TCP or UDP.
    pub protocol_state: ProtocolState,
}

/// The part of a flow direction that most packets read.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HotDirection {
    /// The newest `TSval` seen, if the state says that there is one. In a QUIC flow, the lower half of the time of the
    /// last recording.
    pub newest_tsval: u32,
    /// The highest [`Segment::sequence_end`](crate::parse::Segment::sequence_end) seen, if the state says that there is
    /// one. Written without the lock. In a QUIC flow, the higher half of the time of the last recording.
    pub sequence_end: u32,
    /// The state.
    pub state: DirectionState,
}

layout!(HotDirection { newest_tsval, sequence_end, state });

impl HotDirection {
    /// Nothing was sent yet.
    pub const EMPTY: Self = Self { newest_tsval: 0, sequence_end: 0, state: DirectionState::EMPTY };
}

/// The part of a flow that most packets read.
///
/// Several CPUs may use it at once. `latest`, `contended`, `traffic`, TCP's `sequence_end`, and (by compare-and-exchange)
/// `newest_tsval` change without the lock. All else changes only under it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Hot {
    /// The lock of the flow. Only the kernel programs use it.
    pub busy: u32,
    /// The latest packets, by [`Endpoint`].
    pub latest: [Latest; 2],
    /// Not 0 if a packet was missed because another CPU had the lock.
    pub contended: u8,
    /// What is known of TCP or UDP.
    pub protocol_state: ProtocolState,
    /// What each endpoint sent, in the units of [`crate::flow::Sent`].
    pub traffic: [u64; 2],
    /// Both directions, by [`Endpoint`].
    pub directions: [HotDirection; 2],
}

layout!(Hot { busy, latest, contended, protocol_state, traffic, directions });

impl Hot {
    /// A flow that has had no packet.
    pub const EMPTY: Self = Self {
        busy: 0,
        latest: [Latest::NONE; 2],
        contended: 0,
        protocol_state: ProtocolState::UNKNOWN,
        traffic: [0; 2],
        directions: [HotDirection::EMPTY; 2],
    };

    /// The direction in which an endpoint sends.
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

    /// Returns what a packet of `from` reads.
    #[inline(always)]
    pub fn snapshot(&self, from: Endpoint) -> FlowSnapshot {
        FlowSnapshot {
            forward: *self.direction(from),
            reverse: self.state(from.other()),
            reverse_end: self.direction(from.other()).sequence_end,
            latest: self.latest(from),
            reverse_latest: self.latest(from.other()),
            contended: self.contended,
            protocol_state: self.protocol_state,
        }
    }

    /// Whether any direction is open.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.directions.iter().any(|direction| direction.state.lifecycle() == Lifecycle::OPEN)
    }

    /// Calls [`is_proved`] with the states of this flow.
    #[inline(always)]
    pub fn is_proved(&self, number: u8) -> bool {
        is_proved(self.state(Endpoint::Low), self.state(Endpoint::High), number)
    }

    /// Whether only one endpoint of a TCP flow sent segments, and more than a SYN: the other direction passes elsewhere.
    /// `number` is the flow's IP protocol number, `have_sent` says which endpoints have sent.
    #[inline(always)]
    pub fn is_one_way(&self, number: u8, have_sent: [bool; 2]) -> bool {
        let [low, high] = have_sent;
        let is_established = self.directions.iter().any(|direction| direction.state.is_established());
        number == Segment::NUMBER && low != high && is_established
    }

    /// Notes a sweep of a flow, which is of TCP if it `has_segments`. `have_counted` says of which endpoints packets counted since
    /// the one before.
    pub fn sweep_hooks(&mut self, has_segments: bool, have_counted: [bool; 2]) {
        let moves;
        (self.latest, moves) =
            Latest::sweep(self.latest, have_counted, self.traffic.map(|traffic| traffic != 0));
        if moves {
            // Packets that would have counted were left out before, and those that counted may be forged.
            self.contended = 1;
            if has_segments {
                self.directions.iter_mut().for_each(|direction| direction.state.forget_numbers());
            }
        }
    }

    /// Returns the number of the [`Direction`] in which samples of `timed` match: the direction in which packets of the
    /// other endpoint pass. If that has sent none yet (`has_reply` is false), they will pass in the direction opposite to
    /// `timed`'s packets.
    #[inline(always)]
    pub fn matching_direction(&self, timed: Endpoint, has_reply: bool) -> u8 {
        if has_reply {
            return self.latest(timed.other()).direction();
        }
        if self.latest(timed).direction() == Direction::Ingress as u8 {
            Direction::Egress as u8
        } else {
            Direction::Ingress as u8
        }
    }
}

/// Whether a flow with these directions is proved. Flows that are not are evicted if there are too many. `number` is the IP
/// protocol number.
///
/// A TCP flow is proved once both ends have sent a segment after their SYN, so it does not matter whether the handshake was
/// seen. An answered SYN is not enough: a SYN and a SYN-ACK take no more to forge than a SYN. Other protocols have nothing
/// that tells more than an answer.
#[inline(always)]
pub fn is_proved(low: DirectionState, high: DirectionState, number: u8) -> bool {
    if number == Segment::NUMBER {
        low.is_established() && high.is_established()
    } else {
        low.is_begun() || high.is_begun()
    }
}

/// An entry of the table: the key, and the part that most packets read. It is aligned so that an IPv4 entry fits into one
/// cache line and an IPv6 entry into two.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub struct HotEntry<A> {
    /// The key of the flow.
    pub key: FlowKey<A>,
    /// The part that most packets read.
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

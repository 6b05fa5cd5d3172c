//! The state of a flow direction in one word.

use crate::{flow::memory::lifecycle::Lifecycle, layout::layout, rtt::TsvalState};

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

//! Which numbers a segment may have.
//!
//! Anybody can send a segment between two ends whose addresses and ports he knows. The numbers are known only to the ends and
//! to who is on the path. So a segment changes its flow only if its sequence number is near what its sender has sent, and its
//! acknowledgement near what the other end has sent: within a window (RFC 9293, 3.10.7.4; RFC 5961, 5). pping knows how large
//! a window can be if it has seen the handshake.
//!
//! Who sends first in the names of the ends must not decide which numbers fit. So this holds once the flow is confirmed: the
//! acknowledgement of a segment was near what the other end had sent, so its sender knows that. Then the numbers of both ends
//! are known. Before, a segment that lies far from what its sender has sent replaces that.
//!
//! pping may miss more than that, for instance while packets take another path. Or somebody has guessed numbers that fit, and
//! a direction seems to have sent more than it has. Then all its segments lie outside, and where the latest of them ended is
//! kept. Once the other end acknowledges about as much, in a segment that comes next in its own direction, the direction
//! continues there, or at the acknowledgement if it is more than a window before: then what was sent before is forged.

use crate::{
    flow::{
        key::Endpoint,
        memory::{
            direction_state::DirectionState,
            hot::{FlowSnapshot, Hot, HotDirection},
            locked::{LockedFlow, PendingLookup},
        },
    },
    limits::{AHEAD, AHEAD_ALONE, LARGEST_WINDOW, UNDER_WAY, UNKNOWN_WINDOW},
    parse::{Segment, Timestamps},
    rtt::{TimestampOption, TsvalState, is_newer, tcp_ts},
};

/// How far a number may be ahead of the highest that is known, and how far behind.
#[derive(Clone, Copy)]
struct Window {
    ahead: u32,
    behind: u32,
}

impl Window {
    /// The smallest window that an end can offer with the window scale option, rounded up.
    const SMALLEST: Self = Self { ahead: 1 << 16, behind: 1 << 16 };

    /// How near an acknowledgement must be to what lies outside.
    const OUTSIDE: Self = Self { ahead: AHEAD_ALONE, behind: LARGEST_WINDOW };

    /// Where the numbers of an end may be that alone has sent something: gaps and retransmissions are within.
    const ALONE: Self = Self { ahead: AHEAD_ALONE, behind: AHEAD_ALONE };

    /// How near an acknowledgement must be to confirm a flow.
    const CONFIRMING: Self = Self { ahead: Self::SMALLEST.ahead, behind: UNDER_WAY };

    /// The largest window that a receiver with this window scale may offer.
    #[inline(always)]
    fn of_scale(receiver: u32) -> Self {
        let largest: u32 = 1 << bits(receiver);
        Self { ahead: if largest < AHEAD { largest } else { AHEAD }, behind: largest }
    }

    /// Returns 1 if a number is outside, else 0.
    #[inline(always)]
    fn excludes(self, highest: u32, number: u32) -> u32 {
        let distance = u64::from(number.wrapping_sub(highest).wrapping_add(self.behind));
        (u64::from(self.ahead + self.behind).wrapping_sub(distance) >> 63) as u32
    }
}

/// How the numbers of a segment fit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::flow) enum Fit {
    /// It belongs to the connection.
    Taken,
    /// It contradicts what its sender has sent, and nobody has confirmed that.
    Replaces,
    /// It does not belong to the connection.
    Refused,
}

// Conditions are numbers, 1 or 0: with a branch for each, the verifier would follow all that comes after once for each of
// them.
impl FlowSnapshot {
    /// Returns how a segment fits into the connection. `outside_end` returns where the latest segment of the other direction
    /// ended that lies outside.
    #[inline(always)]
    pub(in crate::flow) fn fit(&self, segment: &Segment, outside_end: impl FnOnce() -> u32) -> Fit {
        let (own, sequence) = (self.forward.sequence_end, segment.sequence);
        let acknowledgement = segment.acknowledgement;
        if segment.is_of_no_connection() {
            return Fit::Refused;
        }
        let is_far = Window::SMALLEST.excludes(own, sequence);
        // A SYN and a RST have their own rules. If the other end is not seen, nobody could confirm what is missed.
        let flags = u32::from(segment.flags.0);
        let is_syn_or_rst = flags >> 1 | flags >> 2;
        let is_checked = !is_syn_or_rst & self.reverse.is_seen();
        if !self.forward.state.is_confirmed() {
            let is_contradicted = is_far & self.reverse.is_seen() | Window::ALONE.excludes(own, sequence);
            let replaces = !is_syn_or_rst & is_contradicted & self.forward.state.has_sequence_bit() != 0;
            return if replaces { Fit::Replaces } else { Fit::Taken };
        }
        let is_outside = Window::of_scale(self.reverse.window_scale()).excludes(own, sequence);
        let acknowledges_outside = self.acknowledges_outside(acknowledgement);
        if is_checked & (is_outside | acknowledges_outside) == 0 {
            return Fit::Taken;
        }
        let is_confirmed = self.comes_next(sequence) && confirms(outside_end(), acknowledgement);
        if is_confirmed { Fit::Taken } else { Fit::Refused }
    }

    /// Whether a segment of a flow that is not confirmed yet confirms it.
    #[inline(always)]
    pub(in crate::flow) fn may_confirm(&self, segment: &Segment) -> bool {
        !self.forward.state.is_confirmed() && shows_knowledge(self.reverse, self.reverse_end, segment)
    }

    /// Whether a sequence number is about the next one of its sender. Without an attacker it is, unless packets of both
    /// directions were missed. To guess it takes some 32,000 segments.
    #[inline(always)]
    fn comes_next(&self, sequence: u32) -> bool {
        Window::SMALLEST.excludes(self.forward.sequence_end, sequence) == 0
    }

    /// Whether a segment that fits confirms what the other end sent outside of the window. `outside_end` returns
    /// where the latest of that ended.
    #[inline(always)]
    pub(in crate::flow) fn confirms_outside(
        &self,
        segment: &Segment,
        outside_end: impl FnOnce() -> u32,
    ) -> bool {
        self.may_confirm_outside(segment) && confirms(outside_end(), segment.acknowledgement)
    }

    /// Whether a segment acknowledges what the other end has not sent within the window, in a confirmed flow.
    #[inline(always)]
    pub(in crate::flow) fn may_confirm_outside(&self, segment: &Segment) -> bool {
        let is_ack = u32::from(segment.flags.0) >> 4;
        let is_confirmed = u32::from(self.forward.state.is_confirmed());
        let is_newer = u32::from(is_newer(segment.acknowledgement, self.reverse_end));
        let is_elsewhere = is_newer | self.acknowledges_outside(segment.acknowledgement);
        is_elsewhere & is_ack & is_confirmed != 0
    }

    /// Returns 1 if an acknowledgement lies outside of the window of what the other end has sent, else 0.
    #[inline(always)]
    fn acknowledges_outside(&self, acknowledgement: u32) -> u32 {
        Window::of_scale(self.forward.state.window_scale()).excludes(self.reverse_end, acknowledgement)
    }

    /// Whether a segment certainly fits, and says nothing of the connection that is not known. Nearly all do: their numbers are
    /// what was expected, or behind.
    #[inline(always)]
    pub fn is_expected(&self, segment: &Segment) -> bool {
        let behind = self.forward.sequence_end.wrapping_sub(segment.sequence);
        let acknowledged_behind = self.reverse_end.wrapping_sub(segment.acknowledgement);
        if !self.forward.state.is_confirmed() {
            let is_alone = self.reverse.is_seen() | self.reverse.has_sequence_bit() == 0;
            return is_alone && segment.flags.ack() && behind < Window::SMALLEST.behind;
        }
        let is_outside = behind >> bits(self.reverse.window_scale())
            | acknowledged_behind >> bits(self.forward.state.window_scale());
        segment.flags.ack() && is_outside == 0
    }
}

/// Returns how many bits a number has that is less than the largest window of a receiver with this window scale, from
/// [`Segment::window_scale`].
#[inline(always)]
fn bits(scale: u32) -> u32 {
    /// Of a window that is not known.
    const UNKNOWN: u32 = UNKNOWN_WINDOW.trailing_zeros();
    // 1 if it is not known. A number, as above.
    let is_unknown = scale.wrapping_sub(1) >> 31;
    u16::BITS - 1 + scale + is_unknown * (UNKNOWN + 1 - u16::BITS)
}

/// Notes that a flow is confirmed, if a segment shows that its sender knows what the other end has sent. Timestamps that do
/// not go with those of the segment were forged, and are forgotten.
#[inline(always)]
pub(in crate::flow) fn note_knowledge<P: PendingLookup>(
    flow: &mut LockedFlow<'_, P>,
    from: Endpoint,
    segment: &Segment,
) {
    let (own, other) = (*flow.hot.direction(from), *flow.hot.direction(from.other()));
    if own.state.is_confirmed() || !shows_knowledge(other.state, other.sequence_end, segment) {
        return;
    }
    if let Some(Timestamps { tsval, tsecr }) = segment.timestamps() {
        let differs = |known: HotDirection, tsval: u32| {
            known.state.tsval_state() != TsvalState::UNKNOWN && !tcp_ts::is_about(known.newest_tsval, tsval)
        };
        let is_unusable = flow.hot.protocol_state.timestamps() == TimestampOption::UNUSABLE;
        if differs(own, tsval) || differs(other, tsecr) || is_unusable {
            flow.forget_timestamps();
        }
    }
    Endpoint::each(|endpoint| flow.hot.direction_mut(endpoint).state.set_confirmed(true));
}

/// Whether a segment acknowledges about what the other end has sent, whose state and highest number these are.
#[inline(always)]
fn shows_knowledge(other: DirectionState, other_end: u32, segment: &Segment) -> bool {
    let flags = u32::from(segment.flags.0);
    let is_far = Window::CONFIRMING.excludes(other_end, segment.acknowledgement);
    !is_far & flags >> 4 & !(flags >> 2) & other.has_sequence_bit() & 1 != 0
}

/// Lets the other direction continue outside of the window, if a segment confirms it. Then packets were missed.
#[inline(always)]
pub(in crate::flow) fn confirm(hot: &mut Hot, from: Endpoint, segment: &Segment, outside_end: u32) {
    if segment.flags.syn()
        || segment.flags.rst()
        || !hot.snapshot(from).confirms_outside(segment, || outside_end)
    {
        return;
    }
    hot.contended = 1;
    // As much may be under way. What is further ahead was forged.
    let window = Window::of_scale(hot.state(from).window_scale()).behind;
    let is_under_way = outside_end.wrapping_sub(segment.acknowledgement) <= window;
    let other = hot.direction_mut(from.other());
    other.sequence_end = if is_under_way { outside_end } else { segment.acknowledgement };
}

/// Whether an acknowledgement is about as far as the latest segment outside.
#[inline(always)]
fn confirms(outside_end: u32, acknowledgement: u32) -> bool {
    outside_end != 0 && Window::OUTSIDE.excludes(outside_end, acknowledgement) == 0
}

//! Which numbers a segment may have.
//!
//! Anybody can send a segment between two ends whose addresses and ports he knows. The numbers are known only to the ends and
//! to who is on the path. So a segment changes its flow only if its sequence number is near what its sender has sent, and its
//! acknowledgement near what the other end has sent: within a window (RFC 9293, 3.10.7.4; RFC 5961, 5). pping knows how large
//! a window can be if it has seen the handshake.
//!
//! Who sends first in the names of the ends must not decide which numbers fit. So this holds once the flow is confirmed: the
//! acknowledgement of a segment was near what the other end had sent, so its sender knows that. Before, a segment that lies
//! far from what its sender has sent replaces that.
//!
//! pping may miss more than that, for instance while packets take another path. Or somebody has guessed numbers that fit, and
//! a direction seems to have sent more than it has. Then all its segments lie outside, and where the latest of them ended is
//! noted. Once the other end acknowledges about as much, in a segment that comes next in its own direction, the direction
//! continues at the acknowledgement: what was noted may be forged.

use super::{
    hot::{DirectionState, Glance, Hot, HotDirection},
    key::Endpoint,
    locked::{LockedFlow, PendingLookup},
};
use crate::{
    limits::{AHEAD, AHEAD_ALONE, BEHIND_WITHOUT_WINDOW, LARGEST_WINDOW, UNDER_WAY},
    parse::{Segment, Timestamps},
    rtt::{TimestampOption, TsvalState, tcp_ts},
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

    /// The largest window that the receiver may offer. The arguments are the window scales of the sender and the receiver:
    /// neither scales if the other does not (RFC 7323, 2.2).
    #[inline(always)]
    fn of_scales(sender: u32, receiver: u32) -> Self {
        // 1 if neither is 0.
        let is_known = (sender + 15) >> 4 & (receiver + 15) >> 4;
        let largest: u32 = 1 << (u16::BITS - 1 + receiver);
        // 1 if the largest is less than `AHEAD`.
        let is_small = (receiver + 13) >> 4 ^ 1;
        let either =
            |condition: u32, then: u32, other: u32| other.wrapping_add(condition * then.wrapping_sub(other));
        Self {
            ahead: either(is_known & is_small, largest, AHEAD),
            behind: either(is_known, largest, BEHIND_WITHOUT_WINDOW),
        }
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
pub(super) enum Fit {
    /// It belongs to the connection.
    Taken,
    /// It contradicts what its sender has sent, and nobody has confirmed that.
    Replaces,
    /// It does not belong to the connection.
    Refused,
}

// Conditions are numbers, 1 or 0: with a branch for each, the verifier would follow all that comes after once for each of
// them.
impl Glance {
    /// Returns how a segment fits into the connection. `outside_end` returns where the latest segment of the other direction
    /// ended that lies outside.
    #[inline(always)]
    pub(super) fn fit(&self, segment: &Segment, outside_end: impl FnOnce() -> u32) -> Fit {
        let (own, other) = (self.forward.sequence_end, self.reverse_end);
        let (sequence, acknowledgement) = (segment.sequence, segment.acknowledgement);
        let has_no_connection = u32::from(segment.is_of_no_connection());
        // So it is for nearly all segments.
        let is_far = Window::SMALLEST.excludes(own, sequence);
        if is_far | Window::SMALLEST.excludes(other, acknowledgement) | has_no_connection == 0 {
            return Fit::Taken;
        }
        if has_no_connection != 0 {
            return Fit::Refused;
        }
        // A SYN and a RST have rules of their own. If the other end is not seen, nobody could confirm what is missed.
        let flags = u32::from(segment.flags.0);
        let is_syn_or_rst = flags >> 1 | flags >> 2;
        let is_checked = !is_syn_or_rst & self.reverse.is_seen();
        if !self.forward.state.is_confirmed() {
            let is_contradicted = is_far & self.reverse.is_seen() | Window::ALONE.excludes(own, sequence);
            let replaces = !is_syn_or_rst & is_contradicted & self.forward.state.has_sequence_bit() != 0;
            return if replaces { Fit::Replaces } else { Fit::Taken };
        }
        let (own_scale, other_scale) = (self.forward.state.window_scale(), self.reverse.window_scale());
        let is_outside = Window::of_scales(own_scale, other_scale).excludes(own, sequence)
            & self.forward.state.has_sequence_bit();
        // A segment that is checked has ACK. The compiler makes 13 instructions more of it if that is not asked.
        let acknowledges_outside = Window::of_scales(other_scale, own_scale).excludes(other, acknowledgement)
            & self.reverse.has_sequence_bit()
            & flags >> 4;
        if is_checked & (is_outside | acknowledges_outside) == 0 {
            return Fit::Taken;
        }
        let is_confirmed = self.comes_next(sequence) && confirms(outside_end(), acknowledgement);
        if is_confirmed { Fit::Taken } else { Fit::Refused }
    }

    /// Whether a segment of a flow that is not confirmed yet confirms it.
    #[inline(always)]
    pub(super) fn may_confirm(&self, segment: &Segment) -> bool {
        !self.forward.state.is_confirmed() && shows_knowledge(self.reverse, self.reverse_end, segment)
    }

    /// Whether a sequence number is about the next one of its sender. Without an attacker it is, unless packets of both
    /// directions were missed. To guess it takes some 32,000 segments.
    #[inline(always)]
    fn comes_next(&self, sequence: u32) -> bool {
        let is_far = Window::SMALLEST.excludes(self.forward.sequence_end, sequence);
        is_far & self.forward.state.has_sequence_bit() == 0
    }

    /// Whether a segment that fits confirms what the other end sent outside of the window. `outside_end` returns
    /// where the latest of that ended.
    #[inline(always)]
    pub(super) fn confirms_outside(&self, segment: &Segment, outside_end: impl FnOnce() -> u32) -> bool {
        // Newer, or far behind. Few segments are, so the window is left for these.
        let more = u64::from(segment.acknowledgement.wrapping_sub(self.reverse_end).wrapping_sub(1));
        let may_be_elsewhere =
            (more.wrapping_sub(u64::from(u32::MAX - Window::SMALLEST.behind)) >> 63) as u32;
        let is_ack = u32::from(segment.flags.0) >> 4;
        let is_confirmed = u32::from(self.forward.state.is_confirmed());
        may_be_elsewhere & is_ack & is_confirmed & self.reverse.has_sequence_bit() != 0
            && (more < (1 << 31) - 1 || self.is_far_behind(segment.acknowledgement))
            && confirms(outside_end(), segment.acknowledgement)
    }

    /// Whether an acknowledgement lies outside of the window of the other end, although the segment fits.
    #[inline(always)]
    fn is_far_behind(&self, acknowledgement: u32) -> bool {
        let (own, other) = (self.forward.state.window_scale(), self.reverse.window_scale());
        Window::of_scales(other, own).excludes(self.reverse_end, acknowledgement) != 0
    }
}

/// Notes that a flow is confirmed, if a segment shows that its sender knows what the other end has sent. Timestamps that do
/// not go with those of the segment were forged, and are forgotten.
#[inline(always)]
pub(super) fn note_knowledge<P: PendingLookup>(
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
pub(super) fn confirm(hot: &mut Hot, from: Endpoint, segment: &Segment, outside_end: u32) {
    if segment.flags.syn()
        || segment.flags.rst()
        || !hot.glance(from).confirms_outside(segment, || outside_end)
    {
        return;
    }
    hot.contended = 1;
    hot.direction_mut(from.other()).sequence_end = segment.acknowledgement;
}

/// Whether an acknowledgement is about as far as the latest segment outside.
#[inline(always)]
fn confirms(outside_end: u32, acknowledgement: u32) -> bool {
    outside_end != 0 && Window::OUTSIDE.excludes(outside_end, acknowledgement) == 0
}

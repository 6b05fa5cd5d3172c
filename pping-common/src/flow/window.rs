//! Which numbers a segment may have.
//!
//! Anybody can send a segment between two ends whose addresses and ports he knows. The numbers are known only to the ends and
//! to who is on the path. So a segment changes its flow only if its sequence number is near what its sender has sent, and its
//! acknowledgement near what the other end has sent: within a window (RFC 9293, 3.10.7.4; RFC 5961, 5). pping knows how large
//! a window can be if it has seen the handshake.
//!
//! pping may miss more than a window, for instance while packets take another path. Then all segments of a direction lie
//! outside, and where the latest of them ended is noted. Once the other end acknowledges about as much, in a segment that
//! comes next in its own direction, the direction continues at the acknowledgement: what was noted may be forged.

use super::{
    hot::{Glance, Hot},
    key::Endpoint,
};
use crate::{
    limits::{AHEAD_WITHOUT_WINDOW, BEHIND_WITHOUT_WINDOW},
    parse::Segment,
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

    const UNKNOWN: Self = Self { ahead: AHEAD_WITHOUT_WINDOW, behind: BEHIND_WITHOUT_WINDOW };

    /// The largest window that the receiver may offer. The arguments are the window scales of the sender and the receiver:
    /// neither scales if the other does not (RFC 7323, 2.2).
    #[inline(always)]
    fn of_scales(sender: u32, receiver: u32) -> Self {
        // 1 if neither is 0.
        let is_known = (sender + 15) >> 4 & (receiver + 15) >> 4;
        let largest = 1 << (u16::BITS - 1 + receiver);
        let either = |known: u32, unknown: u32| unknown.wrapping_add(is_known * known.wrapping_sub(unknown));
        Self { ahead: either(largest, Self::UNKNOWN.ahead), behind: either(largest, Self::UNKNOWN.behind) }
    }

    /// Returns 1 if a number is outside, else 0.
    #[inline(always)]
    fn excludes(self, highest: u32, number: u32) -> u32 {
        let distance = u64::from(number.wrapping_sub(highest).wrapping_add(self.behind));
        (u64::from(self.ahead + self.behind).wrapping_sub(distance) >> 63) as u32
    }
}

// Conditions are numbers, 1 or 0: with a branch for each, the verifier would follow all that comes after once for each of
// them.
impl Glance {
    /// Whether a segment may belong to the connection. `outside_end` returns where the latest segment of the other direction
    /// ended that lies outside.
    #[inline(always)]
    pub(super) fn takes(&self, segment: &Segment, outside_end: impl FnOnce() -> u32) -> bool {
        let (own, other) = (self.forward.sequence_end, self.reverse_end);
        let (sequence, acknowledgement) = (segment.sequence, segment.acknowledgement);
        // So it is for nearly all segments.
        if Window::SMALLEST.excludes(own, sequence) | Window::SMALLEST.excludes(other, acknowledgement) == 0 {
            return true;
        }
        // A SYN and a RST have rules of their own. If the other end is not seen, nobody could confirm what is missed.
        let flags = u32::from(segment.flags.0);
        let is_checked = !(flags >> 1 | flags >> 2) & self.reverse.is_seen();
        let (own_scale, other_scale) = (self.forward.state.window_scale(), self.reverse.window_scale());
        let is_outside = Window::of_scales(own_scale, other_scale).excludes(own, sequence)
            & self.forward.state.has_sequence_bit();
        let acknowledges_outside = Window::of_scales(other_scale, own_scale).excludes(other, acknowledgement)
            & self.reverse.has_sequence_bit()
            & flags >> 4;
        if is_checked & (is_outside | acknowledges_outside) == 0 {
            return true;
        }
        self.comes_next(sequence) && confirms(outside_end(), acknowledgement)
    }

    /// Whether a sequence number is about the next one of its sender. Without an attacker it is, unless packets of both
    /// directions were missed. To guess it takes some 32,000 segments.
    #[inline(always)]
    fn comes_next(&self, sequence: u32) -> bool {
        let is_far = Window::SMALLEST.excludes(self.forward.sequence_end, sequence);
        is_far & self.forward.state.has_sequence_bit() == 0
    }

    /// Whether a segment that [`Glance::takes`] confirms what the other end sent outside of the window. `outside_end` returns
    /// where the latest of that ended.
    #[inline(always)]
    pub(super) fn confirms_outside(&self, segment: &Segment, outside_end: impl FnOnce() -> u32) -> bool {
        // As `is_newer`, as a number.
        let more = u64::from(segment.acknowledgement.wrapping_sub(self.reverse_end).wrapping_sub(1));
        let acknowledges_more = (more.wrapping_sub((1 << 31) - 1) >> 63) as u32;
        let is_ack = u32::from(segment.flags.0) >> 4;
        acknowledges_more & is_ack & self.reverse.has_sequence_bit() != 0
            && confirms(outside_end(), segment.acknowledgement)
    }
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
    outside_end != 0 && Window::UNKNOWN.excludes(outside_end, acknowledgement) == 0
}

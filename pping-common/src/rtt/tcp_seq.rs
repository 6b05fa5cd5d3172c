//! `tcp-seq`: a segment, and the first acknowledgement that covers it (RFC 9293, 3.4), of flows without timestamps.
//!
//! Karn's rule (RFC 6298, 3): an acknowledgement that covers bytes sent twice may be that of either time, and what it covers
//! beside them may have waited for them. So a segment that is sent again, or late, frees all that waits in its direction. So does
//! a SYN with which another connection begins: its numbers mean something else.

use super::{Effect, Part, is_newer};
use crate::{
    flow::{FlowDirection, Progress},
    parse::{Segment, TcpFlags},
};

/// How far behind an acknowledgement what it covers can be, modulo 2^32.
pub(super) const REACH: u32 = 1 << 31;

/// What is known of a flow's timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Options {
    /// Not enough yet.
    Unknown,
    /// Segments carry them.
    With,
    /// They do not.
    Without,
}

#[inline(always)]
pub(super) fn effect(
    forward: &FlowDirection,
    reverse: &FlowDirection,
    part: Part,
    segment: &Segment,
    progress: Progress,
) -> Effect {
    match progress {
        Progress::First | Progress::Overlap => return Effect::Anything,
        Progress::Behind if forward.pending.any(part, |_| true) => return Effect::Anything,
        Progress::Advance | Progress::Behind | Progress::None => {}
    }
    if segment.flags.ack() && reverse.pending.any(part, |end| !is_newer(end, segment.acknowledgement)) {
        return Effect::Anything;
    }
    if progress == Progress::Advance { Effect::Sequence } else { Effect::Nothing }
}

/// Whether the acknowledgement of a segment without RST can be timed: its bytes are sent for the first time, as far as
/// anybody can know.
#[inline(always)]
pub(super) fn is_first_sent(progress: Progress, flags: TcpFlags) -> bool {
    match progress {
        // The bytes that were sent before do not matter: the acknowledgement of its last needs that to have arrived.
        Progress::Advance | Progress::Overlap => true,
        // In mid-stream, it may have been sent before.
        Progress::First => flags.syn(),
        Progress::Behind | Progress::None => false,
    }
}

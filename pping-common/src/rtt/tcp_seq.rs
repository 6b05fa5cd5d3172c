//! `tcp-seq`: a segment, and the first acknowledgement that covers it (RFC 9293, 3.4), of flows without timestamps.
//!
//! Karn's rule (RFC 6298, 3): an acknowledgement that covers bytes sent twice may be that of either time, and what it covers
//! beside them may have waited for them. So a segment that is sent again, or late, frees all that waits in its direction. So does
//! a SYN with which another connection begins: its numbers mean something else.

use super::{
    pending::{Part, Pending},
    plan::Effect,
    tcp_ts::is_newer,
};
use crate::parse::{Segment, TcpFlags};

/// How far behind an acknowledgement what it covers can be, modulo 2^32.
pub(crate) const REACH: u32 = 1 << 31;

/// What a packet means for the sequence numbers of its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Progress {
    /// It is no segment that consumes sequence space.
    None,
    /// It is the first such segment, or the SYN of another connection.
    First,
    /// It goes beyond all before it.
    Advance,
    /// It does, but begins with bytes that were sent before.
    Overlap,
    /// It does not.
    Behind,
}

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
pub(crate) fn effect(
    forward: &Pending,
    reverse: &Pending,
    part: Part,
    segment: &Segment,
    progress: Progress,
) -> Effect {
    match progress {
        Progress::First | Progress::Overlap => return Effect::Anything,
        Progress::Behind if forward.any(part, |_| true) => return Effect::Anything,
        Progress::Advance | Progress::Behind | Progress::None => {}
    }
    if segment.flags.ack() && reverse.any(part, |end| !is_newer(end, segment.acknowledgement)) {
        return Effect::Anything;
    }
    if progress == Progress::Advance { Effect::Sequence } else { Effect::Nothing }
}

/// Whether the acknowledgement of a segment without RST can be timed: its bytes are sent for the first time, as far as
/// anybody can know.
#[inline(always)]
pub(crate) fn is_first_sent(progress: Progress, flags: TcpFlags) -> bool {
    match progress {
        // The bytes that were sent before do not matter: the acknowledgement of its last needs that to have arrived.
        Progress::Advance | Progress::Overlap => true,
        // In mid-stream, it may have been sent before.
        Progress::First => flags.syn(),
        Progress::Behind | Progress::None => false,
    }
}

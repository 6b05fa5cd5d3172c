//! `tcp-seq`: a segment, and the first acknowledgement that covers it (RFC 9293, 3.4), of flows without timestamps.
//!
//! Karn's rule (RFC 6298, 3): an acknowledgement of bytes that were sent twice may answer either transmission, and bytes that it
//! covers besides may have waited for them. So a segment that is retransmitted or reordered frees all pending identifiers of its
//! direction, and so does the SYN of another connection, whose numbers mean something else.

use super::{
    pending::{PendingRange, Waiting},
    plan::Effect,
    tcp_ts::is_newer,
};
use crate::{
    layout::states,
    parse::{Segment, TcpFlags},
};

/// An acknowledgement covers sequence numbers less than this below it, modulo 2^32.
pub(crate) const REACH: u32 = 1 << 31;

/// The effect of a packet on the sequence numbers of its direction.
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

states! {
    /// Whether the segments of a flow carry the timestamps option (RFC 7323, 3).
    pub struct TimestampOption {
        /// Not enough yet.
        UNKNOWN = 0,
        /// Segments carry them.
        PRESENT = 1,
        /// They do not.
        ABSENT = 2,
    }
}

#[inline(always)]
pub(crate) fn effect(
    forward: &impl Waiting,
    reverse: &impl Waiting,
    range: PendingRange,
    segment: &Segment,
    progress: Progress,
) -> Effect {
    match progress {
        Progress::First | Progress::Overlap => return Effect::Anything,
        Progress::Behind if forward.any(range, |_| true) => return Effect::Anything,
        Progress::Advance | Progress::Behind | Progress::None => {}
    }
    if segment.flags.ack() && reverse.any(range, |end| !is_newer(end, segment.acknowledgement)) {
        return Effect::Anything;
    }
    if progress == Progress::Advance { Effect::Sequence } else { Effect::Nothing }
}

/// Whether the acknowledgement of a segment without RST can be timed: as far as can be known, its last byte is sent for the first
/// time.
#[inline(always)]
pub(crate) fn is_first_sent(progress: Progress, flags: TcpFlags) -> bool {
    match progress {
        // Bytes sent before do not matter: acknowledging the last byte needs that one to have arrived.
        Progress::Advance | Progress::Overlap => true,
        // In mid-stream, it may have been sent before.
        Progress::First => flags.syn(),
        Progress::Behind | Progress::None => false,
    }
}

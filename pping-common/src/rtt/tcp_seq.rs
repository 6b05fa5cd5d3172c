//! `tcp-seq`: a segment, and the first acknowledgement that covers it (RFC 9293, 3.4), in flows without timestamps.
//!
//! Karn's rule (RFC 6298, 3): an acknowledgement of bytes that were sent twice may answer either transmission, and other
//! bytes that it covers may have waited for them. So a retransmitted or reordered segment frees all pending identifiers
//! of its direction. So does the SYN of another connection, whose sequence numbers are unrelated.

use super::{
    pending::{PendingIdentifiers, PendingRange},
    plan::PossibleChange,
    tcp_ts::is_newer,
};
use crate::{
    layout::states,
    parse::{Segment, TcpFlags, Untracked},
};

/// An acknowledgement covers sequence numbers that lie less than this below it, modulo 2^32.
pub(crate) const REACH: u32 = 1 << 31;

/// How a packet moves the highest sequence number of its flow direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Progress {
    /// The packet is no segment that consumes sequence space.
    None,
    /// The segment is the first of its direction, or the SYN of another connection.
    First,
    /// The segment goes beyond all segments before it.
    Advance,
    /// The segment goes beyond them, but begins with bytes that were sent before.
    Overlap,
    /// The segment does not go beyond them.
    Behind,
    /// The segment contradicts those before it, of which nobody has confirmed any: they may be forged.
    Replaces,
    /// The packet passed the other hook than those of its endpoint that count: it changes nothing.
    Elsewhere,
    /// The other end would not take the packet: it changes nothing.
    Refused,
    /// The packets of both ends come in by one hook, as forged ones do: it only counts.
    SameHook,
}

impl Progress {
    /// Returns why the packet changes nothing; `None` if it may change something.
    #[inline(always)]
    pub fn untracked(self) -> Option<Untracked> {
        match self {
            Self::Elsewhere => Some(Untracked::OtherHook),
            Self::Refused => Some(Untracked::OutOfWindow),
            Self::SameHook => Some(Untracked::SameHook),
            Self::None | Self::First | Self::Advance | Self::Overlap | Self::Behind | Self::Replaces => None,
        }
    }
}

states! {
    /// Whether the segments of a flow carry the timestamps option (RFC 7323, 3).
    pub struct TimestampOption {
        /// Too few segments were seen to tell.
        UNKNOWN = 0,
        /// Segments carry timestamps.
        PRESENT = 1,
        /// Segments carry no timestamps.
        ABSENT = 2,
        /// Those of one end or both stopped, stand still or are zero: sequence numbers measure the connection from then on.
        UNUSABLE = 3,
    }
}

impl TimestampOption {
    /// Whether segments carry no timestamps, or none that can be used.
    #[inline(always)]
    pub(crate) fn is_without(self) -> bool {
        self.0 & Self::ABSENT.0 != 0
    }
}

#[inline(always)]
pub(crate) fn possible_change(
    reverse: &impl PendingIdentifiers,
    range: PendingRange,
    segment: &Segment,
    progress: Progress,
) -> PossibleChange {
    if matches!(progress, Progress::First | Progress::Overlap) {
        return PossibleChange::Anything;
    }
    if segment.flags.ack() && reverse.any(range, |end| !is_newer(end, segment.acknowledgement)) {
        return PossibleChange::Anything;
    }
    if progress == Progress::Advance { PossibleChange::Sequence } else { PossibleChange::Nothing }
}

/// Whether the acknowledgement of a segment without RST can be timed: as far as is known, the segment's last byte is sent
/// for the first time.
#[inline(always)]
pub(crate) fn is_first_sent(progress: Progress, flags: TcpFlags) -> bool {
    match progress {
        // Earlier bytes may have been sent before: the last byte is acknowledged only once it has arrived.
        Progress::Advance | Progress::Overlap => true,
        // In mid-stream, the segment may have been sent before.
        Progress::First => flags.syn(),
        Progress::Behind
        | Progress::None
        | Progress::Replaces
        | Progress::Elsewhere
        | Progress::Refused
        | Progress::SameHook => false,
    }
}

//! The latest packets of a flow direction: retransmitted, reordered, marked.

use crate::{
    layout::layout,
    parse::Segment,
    rtt::{Progress, is_newer},
};

/// The state that the latest packets of a direction left. Every packet is compared with it, without a lock: where several CPUs
/// handle packets of one direction, a retransmission may be missed or seen where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Latest {
    /// The highest [`Segment::sequence_end`] so far, if `has_sequence`.
    pub sequence_end: u32,
    /// Whether a segment was seen that consumes sequence space.
    pub has_sequence: bool,
    /// Their direction, as the number of a [`crate::parse::Direction`].
    pub direction: u8,
    /// Their differentiated services codepoint (RFC 2474).
    pub dscp: u8,
    /// Fills up to a multiple of 4.
    pub reserved: u8,
}

layout!(Latest { sequence_end, has_sequence, direction, dscp, reserved });

/// The properties of a packet that counting showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// How the packet advanced the direction.
    pub progress: Progress,
    /// Whether it is a retransmission.
    pub is_retransmission: bool,
    /// Whether it is a segment that arrived reordered.
    pub is_reordered: bool,
    /// Whether it was marked for congestion.
    pub is_ce: bool,
}

impl Latest {
    /// Nothing was seen yet.
    pub const EMPTY: Self = Self { sequence_end: 0, has_sequence: false, direction: 0, dscp: 0, reserved: 0 };

    /// How a segment advances the direction.
    #[inline(always)]
    pub(super) fn progress(self, segment: &Segment) -> Progress {
        // The number of a RST need not be one of the connection.
        if !segment.consumes_sequence_space() || segment.flags.rst() {
            return Progress::None;
        }
        let end = segment.sequence_end();
        // A SYN with another number begins another connection.
        if !self.has_sequence || segment.flags.syn() && end != self.sequence_end {
            Progress::First
        } else if is_newer(end, self.sequence_end) {
            if is_newer(self.sequence_end, segment.sequence) { Progress::Overlap } else { Progress::Advance }
        } else {
            Progress::Behind
        }
    }
}

//! What the latest packets of a flow direction were like.

use crate::{
    flow::FlowDirection,
    parse::{Kind, Segment, Transport},
    rtt::{self, TsvalState},
};

/// ECN codepoint of a packet that met congestion (RFC 3168, 5).
const CE: u8 = 3;

/// What the latest packets of a direction were like. Every packet is compared with it, without a lock: where several CPUs
/// handle packets of one direction, a retransmission may be missed or seen where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Latest {
    /// The highest [`Segment::sequence_end`] so far, if `has_sequence`.
    pub sequence_end: u32,
    /// Whether a segment was seen that consumes sequence space.
    pub has_sequence: bool,
    /// Where packets pass, as the number of a [`crate::parse::Direction`].
    pub direction: u8,
    /// Their differentiated services codepoint (RFC 2474).
    pub dscp: u8,
    /// Fills up to a multiple of 4.
    pub reserved: u8,
}

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

/// What there is to count of a packet beside itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// How far the direction got with it.
    pub progress: Progress,
    /// Whether it is a segment that was sent before.
    pub is_retransmission: bool,
    /// Whether it is a segment that others overtook on the way.
    pub is_reordered: bool,
    /// Whether it was marked for congestion.
    pub is_ce: bool,
}

impl Latest {
    /// Nothing was seen yet.
    pub const EMPTY: Self = Self { sequence_end: 0, has_sequence: false, direction: 0, dscp: 0, reserved: 0 };

    /// How far a segment gets.
    #[inline(always)]
    fn progress(self, segment: &Segment) -> Progress {
        // The number of a RST need not be one of the connection.
        if !segment.consumes_sequence_space() || segment.flags.rst() {
            return Progress::None;
        }
        let end = segment.sequence_end();
        // A SYN with another number begins another connection.
        if !self.has_sequence || segment.flags.syn() && end != self.sequence_end {
            Progress::First
        } else if rtt::is_newer(end, self.sequence_end) {
            if rtt::is_newer(self.sequence_end, segment.sequence) {
                Progress::Overlap
            } else {
                Progress::Advance
            }
        } else {
            Progress::Behind
        }
    }
}

impl FlowDirection {
    /// Looks at a packet that the direction sent, on its way in or out, before anything else does, and notes it.
    #[inline(always)]
    pub fn note(&mut self, transport: &Transport, traffic_class: u8, direction: u8) -> Noted {
        let noted = self.look(transport, traffic_class);
        self.put_down(transport, traffic_class, direction, &noted);
        noted
    }

    /// The first half of [`FlowDirection::note`]: what a packet means.
    ///
    /// A segment was sent before when all its bytes were, unless it is
    /// - a keep-alive: at most one byte, the one before the next to be sent (RFC 9293, 3.8.4);
    /// - late: by its timestamp it was sent before others that were seen, so the network changed their order. Within one
    ///   tick of the sender's clock, and without timestamps, the two cannot be told apart, and count as sent again.
    #[inline(always)]
    pub fn look(&self, transport: &Transport, traffic_class: u8) -> Noted {
        let (mut progress, mut is_retransmission, mut is_reordered) = (Progress::None, false, false);
        if transport.kind == Kind::Tcp {
            let segment = &transport.segment;
            progress = self.latest.progress(segment);
            if progress == Progress::Behind {
                let is_late = segment.has_timestamps
                    && self.tsval_state != TsvalState::Unknown
                    && rtt::is_newer(self.newest_tsval, segment.timestamps.tsval);
                let is_keep_alive = segment.payload <= 1
                    && segment.sequence_end() == self.latest.sequence_end
                    && !segment.flags.syn()
                    && !segment.flags.fin();
                is_reordered = is_late && !is_keep_alive;
                is_retransmission = !is_late && !is_keep_alive;
            }
        }
        Noted { progress, is_retransmission, is_reordered, is_ce: traffic_class & 3 == CE }
    }

    /// The second half: has the next packet be compared with this one.
    #[inline(always)]
    pub fn put_down(&mut self, transport: &Transport, traffic_class: u8, direction: u8, noted: &Noted) {
        let latest = &mut self.latest;
        let dscp = traffic_class >> 2;
        // Written only when they change, which leaves the cache line alone.
        if latest.direction != direction {
            latest.direction = direction;
        }
        if latest.dscp != dscp {
            latest.dscp = dscp;
        }
        if matches!(noted.progress, Progress::First | Progress::Advance | Progress::Overlap) {
            latest.sequence_end = transport.segment.sequence_end();
            latest.has_sequence = true;
        }
    }
}

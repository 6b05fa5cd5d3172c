//! What a packet means to those before it in its direction: retransmitted, reordered, marked.

use super::hot::{Glance, HotDirection};
use crate::{
    parse::{Kind, Segment, Transport},
    rtt::{Progress, TsvalState, is_newer},
};

/// ECN codepoint of a packet that met congestion (RFC 3168, 5).
const CE: u8 = 3;

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

impl Noted {
    /// The highest sequence number from now on, if the packet is what advances it.
    #[inline(always)]
    pub fn sequence_end(&self, segment: &Segment) -> Option<u32> {
        matches!(self.progress, Progress::First | Progress::Advance | Progress::Overlap)
            .then(|| segment.sequence_end())
    }
}

impl Glance {
    /// Compares a packet with those before it.
    ///
    /// A segment is a retransmission if all its bytes were sent before, unless it is
    /// - a keep-alive: at most one byte, the one before the next to be sent (RFC 9293, 3.8.4);
    /// - reordered: its timestamp is older than the newest one. Within one tick of the sender's clock, and without timestamps, it
    ///   counts as a retransmission.
    ///
    /// Every packet is compared, without a lock: where several CPUs handle packets of one direction, a retransmission may be
    /// missed or seen where there is none.
    #[inline(always)]
    pub(super) fn look(&self, transport: &Transport, traffic_class: u8) -> Noted {
        let direction = &self.forward;
        let (mut progress, mut is_retransmission, mut is_reordered) = (Progress::None, false, false);
        if transport.kind == Kind::Tcp {
            let segment = &transport.segment;
            progress = direction.progress(segment);
            if progress == Progress::Behind {
                let is_late = segment.has_timestamps
                    && direction.state.tsval_state() != TsvalState::Unknown
                    && is_newer(direction.newest_tsval, segment.timestamps.tsval);
                let is_keep_alive = segment.payload <= 1
                    && segment.sequence_end() == direction.sequence_end
                    && !segment.flags.syn()
                    && !segment.flags.fin();
                is_reordered = is_late && !is_keep_alive;
                is_retransmission = !is_late && !is_keep_alive;
            }
        }
        Noted { progress, is_retransmission, is_reordered, is_ce: traffic_class & 3 == CE }
    }
}

impl HotDirection {
    /// How a segment advances the direction.
    #[inline(always)]
    fn progress(&self, segment: &Segment) -> Progress {
        // The number of a RST need not be one of the connection.
        if !segment.consumes_sequence_space() || segment.flags.rst() {
            return Progress::None;
        }
        let end = segment.sequence_end();
        // A SYN with another number begins another connection.
        if !self.state.has_sequence() || segment.flags.syn() && end != self.sequence_end {
            Progress::First
        } else if is_newer(end, self.sequence_end) {
            if is_newer(self.sequence_end, segment.sequence) { Progress::Overlap } else { Progress::Advance }
        } else {
            Progress::Behind
        }
    }
}

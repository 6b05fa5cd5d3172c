//! What a segment is to those before it in its direction. Every segment is compared, without a lock: where several CPUs handle
//! segments of one direction, a retransmission may be missed or seen where there is none.

use super::{count::Behind, hot::HotDirection};
use crate::{
    parse::Segment,
    rtt::{Progress, TsvalState, is_newer},
};

impl HotDirection {
    /// How a segment advances the direction.
    #[inline(always)]
    pub(super) fn progress(&self, segment: &Segment) -> Progress {
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

    /// What a segment is that does not advance the direction: a retransmission, as all its bytes were sent before, unless it is
    /// - a keep-alive: at most one byte, the one before the next to be sent (RFC 9293, 3.8.4);
    /// - reordered: its timestamp is older than the newest one. Within one tick of the sender's clock, and without timestamps, it
    ///   counts as a retransmission.
    #[inline(always)]
    pub(super) fn behind(&self, segment: &Segment) -> Behind {
        let is_keep_alive = segment.payload <= 1
            && segment.sequence_end() == self.sequence_end
            && !segment.flags.syn()
            && !segment.flags.fin();
        let is_late = segment.has_timestamps
            && self.state.tsval_state() != TsvalState::UNKNOWN
            && is_newer(self.newest_tsval, segment.timestamps.tsval);
        match (is_keep_alive, is_late) {
            (true, _) => Behind::KeepAlive,
            (false, true) => Behind::Reordered,
            (false, false) => Behind::Retransmitted,
        }
    }
}

//! How a segment relates to those before it in its flow direction. Every segment is compared, without a lock: if several
//! CPUs handle segments of one direction, a retransmission may be missed or counted by mistake.

use crate::{
    flow::{memory::hot::HotDirection, packet::count::Behind},
    parse::Segment,
    rtt::{Progress, TsvalState, is_newer},
};

impl HotDirection {
    /// Returns how a segment advances the direction.
    #[inline(always)]
    pub(in crate::flow) fn progress(&self, segment: &Segment) -> Progress {
        // A RST need not carry a sequence number of the connection.
        if segment.flags.rst() {
            return Progress::None;
        }
        let end = segment.sequence_end();
        // A SYN with another sequence number begins another connection.
        if !self.state.has_sequence() || segment.flags.syn() && end != self.sequence_end {
            Progress::First
        } else if !segment.consumes_sequence_space() {
            Progress::None
        } else if is_newer(end, self.sequence_end) {
            if is_newer(self.sequence_end, segment.sequence) { Progress::Overlap } else { Progress::Advance }
        } else {
            Progress::Behind
        }
    }

    /// Classifies a segment that does not advance the direction. All its bytes were sent before, so it is a
    /// retransmission, unless it is
    /// - a keep-alive: it has at most one byte, the one before the next to be sent (RFC 9293, 3.8.4);
    /// - reordered: its timestamp is older than the newest one. Without timestamps, or within one tick of the sender's
    ///   clock, a reordered segment counts as a retransmission.
    #[inline(always)]
    pub(in crate::flow) fn behind(&self, segment: &Segment) -> Behind {
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

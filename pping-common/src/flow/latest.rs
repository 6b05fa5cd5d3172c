//! What the latest packets of a flow direction were like.

use crate::{
    flow::Direction,
    parse::{Frame, Kind, Segment},
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
    /// Where packets pass, as the number of a [`crate::abi::Hook`].
    pub hook: u8,
    /// Their differentiated services codepoint (RFC 2474).
    pub dscp: u8,
    /// Fills up to a multiple of 4.
    pub reserved: u8,
}

/// What there is to count of a packet beside itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// Whether it is a segment that was sent before.
    pub is_retransmission: bool,
    /// Whether it was marked for congestion.
    pub is_ce: bool,
}

impl Latest {
    /// Nothing was seen yet.
    pub const EMPTY: Self = Self { sequence_end: 0, has_sequence: false, hook: 0, dscp: 0, reserved: 0 };

    /// Whether the segment was sent before. That is so when all its octets were, unless it is
    /// - a keep-alive: at most one octet, the one before the next to be sent (RFC 9293, 3.8.4);
    /// - late: by its timestamp it was sent before others that were seen, so the network changed their order. Within one
    ///   tick of the sender's clock the two cannot be told apart, and count as sent again.
    #[inline(always)]
    fn is_retransmission(&mut self, segment: &Segment, newest_tsval: u32, tsval_state: TsvalState) -> bool {
        if !segment.consumes_sequence_space() {
            return false;
        }
        let end = segment.sequence_end();
        // A SYN with another number begins another connection.
        let is_first = !self.has_sequence || segment.flags.syn() && end != self.sequence_end;
        if is_first || rtt::is_newer(end, self.sequence_end) {
            self.sequence_end = end;
            self.has_sequence = true;
            return false;
        }
        let is_keep_alive =
            segment.payload <= 1 && end == self.sequence_end && !segment.flags.syn() && !segment.flags.fin();
        let is_late = segment.has_timestamps
            && tsval_state != TsvalState::Unknown
            && rtt::is_newer(newest_tsval, segment.timestamps.tsval);
        !is_keep_alive && !is_late
    }
}

impl Direction {
    /// Looks at a packet that the direction sent at a hook, before anything else does.
    #[inline(always)]
    pub fn note(&mut self, frame: &Frame, hook: u8) -> Noted {
        let (newest_tsval, tsval_state) = (self.newest_tsval, self.tsval_state);
        let latest = &mut self.latest;
        let dscp = frame.traffic_class >> 2;
        // Written only when they change, which leaves the cache line alone.
        if latest.hook != hook {
            latest.hook = hook;
        }
        if latest.dscp != dscp {
            latest.dscp = dscp;
        }
        let transport = &frame.transport;
        Noted {
            is_retransmission: transport.kind == Kind::Tcp
                && latest.is_retransmission(&transport.segment, newest_tsval, tsval_state),
            is_ce: frame.traffic_class & 3 == CE,
        }
    }
}

//! A leg of a handshake: a packet that expects a reply, and the reply of the other end.

use crate::layout::states;

states! {
    /// The stage of a leg.
    pub(crate) struct LegState {
        /// The packet was not seen.
        UNSEEN = 0,
        /// The first packet of a connection is pending: a SYN, or the Initial of a QUIC client.
        FIRST_PENDING = 1,
        /// A SYN-ACK is pending.
        SYN_ACK_PENDING = 2,
        /// The packet was retransmitted, so its reply would be ambiguous (RFC 6298, 3: Karn's rule).
        AMBIGUOUS = 3,
        /// The reply was seen, or the leg is not timed.
        DONE = 4,
        /// A SYN that an established connection does not take: it begins another connection once a SYN-ACK answers it.
        PROPOSED = 5,
    }
}

/// A leg of a handshake, kept in the flow direction of the packet that expects the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    /// When the packet was seen, ns.
    pub(crate) since: u64,
    /// The identifier in the reply: the sequence number after the SYN, or a digest of the connection ID.
    pub(crate) identifier: u32,
    /// Bytes of data in the SYN (RFC 7413), which the reply may acknowledge, too.
    pub(crate) payload: u16,
    /// The stage.
    pub(crate) state: LegState,
}

impl Leg {
    /// Nothing was seen yet.
    pub const UNSEEN: Self = Self { since: 0, identifier: 0, payload: 0, state: LegState::UNSEEN };

    /// Whether the reply is still expected.
    #[inline(always)]
    pub(crate) fn is_pending(&self) -> bool {
        matches!(self.state, LegState::FIRST_PENDING | LegState::SYN_ACK_PENDING)
    }

    /// Gives the leg up: its reply may have been missed, or will never come. A SYN that was only proposed may be forged, and is
    /// forgotten.
    #[inline(always)]
    pub(crate) fn give_up(&mut self) {
        self.state = match self.state {
            LegState::UNSEEN | LegState::PROPOSED => LegState::UNSEEN,
            _ => LegState::DONE,
        };
    }
}

//! The life of a flow: each direction opens when its first packet is answered, and closes by FIN, by RST, or when the
//! flow has been idle too long.

use crate::layout::{numbered, states};

states! {
    /// The stage of a flow direction's life.
    pub struct Lifecycle {
        /// Nothing was sent yet.
        UNSEEN = 0,
        /// Something was sent, but not answered yet.
        UNANSWERED = 1,
        /// Something was sent and answered.
        OPEN = 2,
        /// The sender said that it is done.
        CLOSED = 3,
    }
}

numbered! {
    /// The reason why a flow direction opened or closed.
    pub enum Reason {
        /// Opened in mid-stream, or by a protocol without connections.
        FirstObserved,
        /// Opened by a SYN.
        Syn,
        /// Opened by a SYN-ACK.
        SynAck,
        /// Closed by a FIN.
        Fin,
        /// Closed by a RST.
        Rst,
        /// Closed because the flow was idle too long.
        Timeout,
    }
}

impl Reason {
    /// The reasons for opening.
    pub const OPENING: [Self; 3] = [Self::FirstObserved, Self::Syn, Self::SynAck];

    /// The reasons for closing.
    pub const CLOSING: [Self; 3] = [Self::Fin, Self::Rst, Self::Timeout];
}

/// The flow directions that a packet opened or closed. Flat like [`crate::parse::Frame`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate fact, and the others are no state")]
pub struct Changes {
    /// Whether the packet opened the reverse direction by answering it.
    pub opened: bool,
    /// The reason of the opening.
    pub opened_by: Reason,
    /// When the first packet of the reverse direction was sent, ns.
    pub opened_at: u64,
    /// Whether the flow as a whole opened: the forward direction was not open.
    pub opened_first: bool,
    /// Whether the packet closed its own direction.
    pub closed_forward: bool,
    /// Whether the packet closed the other direction.
    pub closed_reverse: bool,
    /// The reason of the closing.
    pub closed_by: Reason,
    /// Whether the flow as a whole closed: no direction is open any more.
    pub closed_last: bool,
}

impl Changes {
    /// Nothing changed.
    pub const NONE: Self = Self {
        opened: false,
        opened_by: Reason::FirstObserved,
        opened_at: 0,
        opened_first: false,
        closed_forward: false,
        closed_reverse: false,
        closed_by: Reason::Timeout,
        closed_last: false,
    };
}

impl Lifecycle {
    #[inline(always)]
    pub(in crate::flow) fn is_live(self) -> bool {
        matches!(self, Self::UNANSWERED | Self::OPEN)
    }
}

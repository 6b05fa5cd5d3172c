//! A leg of a handshake: what one side begins it with, and the other side's reply.

/// How far a leg is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum LegState {
    /// Not begun.
    Unseen,
    /// What begins a connection waits for its reply: a SYN, or the first packet of a QUIC client.
    Asked,
    /// A SYN-ACK waits for its ACK.
    Answered,
    /// It was sent again, so its reply would be ambiguous (Karn's rule).
    Void,
    /// Replied to, or not timed.
    Done,
}

/// A leg of a handshake, as the one side sees it that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Leg {
    /// Since when it waits, ns.
    pub(super) since: u64,
    /// What the reply acknowledges: the sequence number behind that of the SYN, or a digest of the connection ID.
    pub(super) number: u32,
    /// Bytes that came with the SYN (RFC 7413), which the reply may acknowledge as well.
    pub(super) payload: u16,
    /// How far it is.
    pub(super) state: LegState,
    /// Fills up to a multiple of 8.
    pub(super) reserved: u8,
}

impl Leg {
    /// Nothing was seen yet.
    pub const UNSEEN: Self = Self { since: 0, number: 0, payload: 0, state: LegState::Unseen, reserved: 0 };

    /// Whether something waits for its reply.
    #[inline(always)]
    pub(super) fn waits(&self) -> bool {
        matches!(self.state, LegState::Asked | LegState::Answered)
    }

    /// Takes into account that its reply may have gone by unseen, or will never come.
    #[inline(always)]
    pub(crate) fn give_up(&mut self) {
        if self.state != LegState::Unseen {
            self.state = LegState::Done;
        }
    }
}

const _: () = assert!(size_of::<Leg>() == 16);

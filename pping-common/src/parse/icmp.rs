//! Echo requests and replies of ICMP (RFC 792) and `ICMPv6` (RFC 4443, 4).

use super::class::Untracked;
use crate::bytes::Bytes;

const HEADER: usize = 8;

/// An echo request or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// The identifier, which takes the place of the ports.
    pub id: u16,
    /// Sequence number.
    pub sequence: u16,
    /// Whether it is a reply.
    pub is_reply: bool,
    /// Bytes of data after the header.
    pub payload: u32,
}

impl Echo {
    pub(super) const EMPTY: Self = Self { id: 0, sequence: 0, is_reply: false, payload: 0 };
}

#[inline(always)]
pub(super) fn parse_v4<O: Bytes + ?Sized>(
    bytes: &O,
    offset: usize,
    len: usize,
    echo: &mut Echo,
) -> Result<(), Untracked> {
    parse(bytes, offset, len, 8, 0, echo)
}

#[inline(always)]
pub(super) fn parse_v6<O: Bytes + ?Sized>(
    bytes: &O,
    offset: usize,
    len: usize,
    echo: &mut Echo,
) -> Result<(), Untracked> {
    parse(bytes, offset, len, 128, 129, echo)
}

#[inline(always)]
fn parse<O: Bytes + ?Sized>(
    bytes: &O,
    offset: usize,
    len: usize,
    request: u8,
    reply: u8,
    echo: &mut Echo,
) -> Result<(), Untracked> {
    let header: [u8; HEADER] = bytes.read(offset).ok_or(Untracked::Truncated)?;
    let payload = len.checked_sub(HEADER).ok_or(Untracked::Malformed)?;
    let [kind, code, _, _, id_high, id_low, sequence_high, sequence_low] = header;
    // Errors have the header of another packet at this offset, and are no replies.
    if code != 0 || (kind != request && kind != reply) {
        return Err(Untracked::Unsupported);
    }
    *echo = Echo {
        id: u16::from_be_bytes([id_high, id_low]),
        sequence: u16::from_be_bytes([sequence_high, sequence_low]),
        is_reply: kind == reply,
        payload: payload as u32,
    };
    Ok(())
}

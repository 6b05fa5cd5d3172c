//! Echo requests and replies of ICMP (RFC 792) and `ICMPv6` (RFC 4443, 4).

use super::untracked::Untracked;
use crate::{
    bytes::{Bytes, present},
    hash::mix,
};

const HEADER: usize = 8;
/// Bytes of data that tell replies apart. The `ping` of Linux has the time of the request there.
const COMPARED: usize = 16;

/// An echo request or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// The identifier, which takes the place of the ports.
    pub id: u16,
    /// Sequence number.
    pub sequence: u16,
    /// Whether it is a reply.
    pub is_reply: bool,
    /// A digest (15 bits) of the first bytes of the data, which a reply must return (RFC 1122, 3.2.2.6); 0 if there are fewer.
    pub data: u16,
    /// Bytes of data after the header, by the IP header, but no more than the frame has.
    pub payload: u32,
}

impl Echo {
    pub(super) const EMPTY: Self = Self { id: 0, sequence: 0, is_reply: false, data: 0, payload: 0 };
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
        data: if payload < COMPARED { 0 } else { bytes.read(offset + HEADER).map_or(0, digest) },
        payload: present(bytes, offset + HEADER, payload),
    };
    Ok(())
}

/// Returns a digest of the data's first bytes.
#[inline(always)]
fn digest(data: [u8; COMPARED]) -> u16 {
    let data = u128::from_be_bytes(data);
    (mix(mix(0, (data >> 64) as u64), data as u64) >> 49) as u16
}

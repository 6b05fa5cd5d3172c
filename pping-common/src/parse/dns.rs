//! The header of DNS messages (RFC 1035, 4.1.1).

use super::untracked::Untracked;
use crate::bytes::Bytes;

const HEADER: usize = 12;

/// A DNS message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dns {
    /// The ID that a response has in common with its query.
    pub id: u16,
    /// Whether it is a response.
    pub is_response: bool,
    /// The response code.
    pub rcode: u8,
}

impl Dns {
    pub(super) const EMPTY: Self = Self { id: 0, is_response: false, rcode: 0 };
}

/// Parses the message at `offset` of `len` bytes: a query goes to the port of a server, and a response comes from one.
#[inline(always)]
pub(super) fn parse<O: Bytes + ?Sized>(
    bytes: &O,
    offset: usize,
    len: usize,
    (from_server, to_server): (bool, bool),
    dns: &mut Dns,
) -> Result<(), Untracked> {
    if len < HEADER {
        return Err(Untracked::Malformed);
    }
    let [id_high, id_low, flags, more]: [u8; 4] = bytes.read(offset).ok_or(Untracked::Truncated)?;
    let is_response = flags & 0x80 != 0;
    if is_response && !from_server || !is_response && !to_server {
        return Err(Untracked::Unsupported);
    }
    dns.id = u16::from_be_bytes([id_high, id_low]);
    dns.is_response = is_response;
    dns.rcode = more & 0x0f;
    Ok(())
}

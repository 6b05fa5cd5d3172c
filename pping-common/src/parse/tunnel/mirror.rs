//! The headers in which switches and routers send copies of packets to a probe.

use super::{
    super::{frame::MAX_OFFSET, untracked::Untracked},
    header::{ETHERTYPE_ETHERNET, Gre, Inside, OF_VERSION},
};
use crate::{bytes::Bytes, limits::MAX_TZSP_FIELDS};

/// The GRE protocols of ERSPAN (draft-foschiano-erspan-03, 4).
const ERSPAN_I_OR_II: u16 = 0x88be;
const ERSPAN_III: u16 = 0x22eb;

/// Whether the GRE header at `offset` is that of ERSPAN.
#[inline(always)]
pub(super) fn is_erspan<O: Bytes + ?Sized>(bytes: &O, offset: usize) -> Result<bool, Untracked> {
    let [_, _, high, low] = bytes.read(offset).ok_or(Untracked::Truncated)?;
    Ok(matches!(u16::from_be_bytes([high, low]), ERSPAN_I_OR_II | ERSPAN_III))
}

/// The flag that says that the router kept only the start of the frame changes nothing: lengths are those of the inner IP
/// header.
#[inline(always)]
pub(super) fn erspan<O: Bytes + ?Sized>(bytes: &O, offset: usize) -> Result<Inside, Untracked> {
    const HEADER_II: usize = 8;
    const HEADER_III: usize = 12;
    /// What the optional subheader adds to type III.
    const SUBHEADER: usize = 8;
    const HAS_SUBHEADER: u8 = 0x01;
    /// The types of the frame inside.
    const ETHERNET: u8 = 0;
    const IP: u8 = 2;
    let Gre { protocol, has_sequence, inside } = Gre::parse(bytes, offset)?;
    if protocol == ERSPAN_III {
        let header: [u8; HEADER_III] = bytes.read(inside).ok_or(Untracked::Truncated)?;
        let ethertype = match header[10] >> 2 & 0x1f {
            ETHERNET => ETHERTYPE_ETHERNET.into(),
            IP => OF_VERSION,
            _ => return Err(Untracked::Unsupported),
        };
        let subheader = if header[11] & HAS_SUBHEADER == 0 { 0 } else { SUBHEADER };
        // The header's own version is one less than that of its type.
        return if header[0] >> 4 == 2 {
            Ok((ethertype, inside + HEADER_III + subheader))
        } else {
            Err(Untracked::Unsupported)
        };
    }
    // Type I has neither a sequence number nor a header.
    if !has_sequence {
        return Ok((ETHERTYPE_ETHERNET.into(), inside));
    }
    let [start, _] = bytes.read(inside).ok_or(Untracked::Truncated)?;
    if start >> 4 == 1 {
        Ok((ETHERTYPE_ETHERNET.into(), inside + HEADER_II))
    } else {
        Err(Untracked::Unsupported)
    }
}

/// There is no standard of TZSP. These are the rules of Wireshark and of the routers that send it.
#[inline(always)]
pub(super) fn tzsp<O: Bytes + ?Sized>(bytes: &O, offset: usize) -> Result<Inside, Untracked> {
    const HEADER: usize = 4;
    const VERSION: u8 = 1;
    /// A packet that was received; other types have none, or one to be sent.
    const RECEIVED: u8 = 0;
    const ETHERNET: u16 = 1;
    /// The fields that have no length.
    const PADDING: u8 = 0;
    const END: u8 = 1;
    let [version, kind, high, low] = bytes.read::<HEADER>(offset).ok_or(Untracked::Truncated)?;
    if version != VERSION || kind != RECEIVED || u16::from_be_bytes([high, low]) != ETHERNET {
        return Err(Untracked::Unsupported);
    }
    let mut offset = offset + HEADER;
    // One round more than the number of fields, for the end.
    for _ in 0..=MAX_TZSP_FIELDS {
        let [field, len] = bytes.read(offset).ok_or(Untracked::Truncated)?;
        let len = match field {
            END => return Ok((ETHERTYPE_ETHERNET.into(), offset + 1)),
            PADDING => 1,
            _ => 2 + usize::from(len),
        };
        // The verifier requires offsets with a bound.
        offset = O::bounded::<MAX_OFFSET>(offset + len);
    }
    Err(Untracked::Unsupported)
}

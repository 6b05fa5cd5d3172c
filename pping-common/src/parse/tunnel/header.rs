//! The headers of tunnels, down to what they carry.

use super::super::{frame::MAX_OFFSET, untracked::Untracked};
use crate::{bytes::Bytes, limits::MAX_GTP_EXTENSION_HEADERS};

/// Ethernet inside a tunnel (Transparent Ethernet Bridging, RFC 7637, 3.2).
pub(super) const ETHERTYPE_ETHERNET: u16 = 0x6558;
/// IP, of which version its first byte says. It is greater than any ethertype that a packet can have.
pub(super) const OF_VERSION: u32 = 0x1_0000;

/// The content of a tunnel: its ethertype, and where it begins.
pub(super) type Inside = (u32, usize);

/// A GRE header (RFC 2784, RFC 2890).
pub(super) struct Gre {
    /// What the packet carries.
    pub(super) protocol: u16,
    pub(super) has_sequence: bool,
    /// Where its content begins.
    pub(super) inside: usize,
}

impl Gre {
    #[inline(always)]
    pub(super) fn parse<O: Bytes + ?Sized>(bytes: &O, offset: usize) -> Result<Self, Untracked> {
        const CHECKSUM: u16 = 0x8000;
        const ROUTING: u16 = 0x4000;
        const KEY: u16 = 0x2000;
        const SEQUENCE: u16 = 0x1000;
        const VERSION: u16 = 0x0007;
        let [high, low, type_high, type_low] = bytes.read(offset).ok_or(Untracked::Truncated)?;
        let flags = u16::from_be_bytes([high, low]);
        // Version 1 is PPTP, and routing (RFC 1701) is obsolete.
        if flags & (VERSION | ROUTING) != 0 {
            return Err(Untracked::Unsupported);
        }
        let optional = |flag| if flags & flag == 0 { 0 } else { 4 };
        Ok(Self {
            protocol: u16::from_be_bytes([type_high, type_low]),
            has_sequence: flags & SEQUENCE != 0,
            inside: offset + 4 + optional(CHECKSUM) + optional(KEY) + optional(SEQUENCE),
        })
    }
}

#[inline(always)]
pub(super) fn gre<O: Bytes + ?Sized>(bytes: &O, offset: usize) -> Result<Inside, Untracked> {
    let gre = Gre::parse(bytes, offset)?;
    Ok((gre.protocol.into(), gre.inside))
}

#[inline(always)]
pub(super) fn vxlan<O: Bytes + ?Sized>(bytes: &O, offset: usize) -> Result<Inside, Untracked> {
    const HEADER: usize = 8;
    /// The flag for a network identifier. Without it the packet is no VXLAN (RFC 7348, 5).
    const HAS_IDENTIFIER: u8 = 0x08;
    let [flags, _] = bytes.read(offset).ok_or(Untracked::Truncated)?;
    if flags & HAS_IDENTIFIER == 0 {
        return Err(Untracked::Unsupported);
    }
    Ok((ETHERTYPE_ETHERNET.into(), offset + HEADER))
}

#[inline(always)]
pub(super) fn geneve<O: Bytes + ?Sized>(bytes: &O, offset: usize) -> Result<Inside, Untracked> {
    const HEADER: usize = 8;
    const CONTROL: u8 = 0x80;
    let [start, flags, type_high, type_low] = bytes.read(offset).ok_or(Untracked::Truncated)?;
    if start >> 6 != 0 || flags & CONTROL != 0 {
        return Err(Untracked::Unsupported);
    }
    let options = usize::from(start & 0x3f) * 4;
    Ok((u32::from(u16::from_be_bytes([type_high, type_low])), offset + HEADER + options))
}

#[inline(always)]
pub(super) fn gtp_u<O: Bytes + ?Sized>(bytes: &O, offset: usize) -> Result<Inside, Untracked> {
    const HEADER: usize = 8;
    /// Sequence number, N-PDU number and the type of the first extension header: if one is present, all are.
    const OPTIONAL: usize = 4;
    const HAS_OPTIONAL: u8 = 0x07;
    const HAS_EXTENSION: u8 = 0x04;
    /// The type of a packet with user data.
    const G_PDU: u8 = 255;
    let [flags, message] = bytes.read(offset).ok_or(Untracked::Truncated)?;
    // GTP version 1, and not GTP'.
    if flags >> 4 != 3 || message != G_PDU {
        return Err(Untracked::Unsupported);
    }
    let mut offset = offset + HEADER;
    if flags & HAS_OPTIONAL == 0 {
        return Ok((OF_VERSION, offset));
    }
    let [_, _, _, mut next] = bytes.read::<OPTIONAL>(offset).ok_or(Untracked::Truncated)?;
    offset += OPTIONAL;
    // The type counts only if its own flag is set (TS 29.281, 5.1).
    if flags & HAS_EXTENSION == 0 {
        next = 0;
    }
    for _ in 0..MAX_GTP_EXTENSION_HEADERS {
        if next == 0 {
            break;
        }
        let [words, _] = bytes.read(offset).ok_or(Untracked::Truncated)?;
        if words == 0 {
            return Err(Untracked::Malformed);
        }
        // The last byte has the type of the next header. The verifier requires offsets that only grow.
        let end = O::bounded::<MAX_OFFSET>(offset + usize::from(words) * 4 - 2);
        [_, next] = bytes.read(end).ok_or(Untracked::Truncated)?;
        offset = end + 2;
    }
    if next == 0 { Ok((OF_VERSION, offset)) } else { Err(Untracked::Unsupported) }
}

//! Tunnels: the inner packet is measured instead of the outer one.

use super::{
    frame::{Frame, MAX_OFFSET},
    link::{self, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_MPLS},
    protocol::Protocol,
    untracked::Untracked,
};
use crate::{bytes::Bytes, limits::MAX_GTP_EXTENSION_HEADERS};

const IPV4: u8 = 4;
const IPV6: u8 = 41;
const GRE: u8 = 47;

const UDP_HEADER: usize = 8;
const VXLAN_PORT: u16 = 4789;
/// The port that Linux used before there was a standard, and still uses by default.
const VXLAN_LINUX_PORT: u16 = 8472;
const GENEVE_PORT: u16 = 6081;
const GTP_U_PORT: u16 = 2152;
/// The first port that is no service's (RFC 6335, 6).
const FIRST_OF_CLIENTS: u16 = 1024;

/// Ethernet inside a tunnel (Transparent Ethernet Bridging, RFC 7637, 3.2).
const ETHERTYPE_ETHERNET: u16 = 0x6558;
/// IP, of which version its first byte says. It is greater than any ethertype that a packet can have.
const OF_VERSION: u32 = 0x1_0000;

/// The tunnels that are entered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Decap(pub u32);

impl Decap {
    /// No tunnels.
    pub const NONE: Self = Self(0);
    /// IP in IP, of either version in either (RFC 2003, RFC 2473, RFC 4213).
    pub const IPIP: Self = Self(1);
    /// GRE (RFC 2784, RFC 2890), with IP or Ethernet inside.
    pub const GRE: Self = Self(1 << 1);
    /// VXLAN (RFC 7348).
    pub const VXLAN: Self = Self(1 << 2);
    /// Geneve (RFC 8926).
    pub const GENEVE: Self = Self(1 << 3);
    /// GTP-U (3GPP TS 29.281).
    pub const GTP_U: Self = Self(1 << 4);
    /// Each kind of tunnel.
    pub const EACH: [Self; 5] = [Self::IPIP, Self::GRE, Self::VXLAN, Self::GENEVE, Self::GTP_U];
    /// All tunnels.
    pub const ALL: Self = Self(0x1f);

    /// Adds the tunnels of `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` are entered.
    #[inline(always)]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The kind of tunnel, by the header after the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Tunnel {
    None,
    Ip,
    Gre,
    Vxlan,
    Geneve,
    GtpU,
}

/// Whether the packet belongs to a tunnel in `decap`.
#[inline(always)]
pub(super) fn is_tunnel<O: Bytes + ?Sized>(
    bytes: &O,
    frame: &Frame,
    decap: Decap,
) -> Result<bool, Untracked> {
    Ok(tunnel(bytes, frame, decap)? != Tunnel::None)
}

/// Goes on to the inner IP header if the packet belongs to a tunnel. Returns true if it does.
#[inline(always)]
pub(super) fn enter<O: Bytes + ?Sized>(
    bytes: &O,
    frame: &mut Frame,
    decap: Decap,
) -> Result<bool, Untracked> {
    let offset = frame.transport_offset::<O>();
    let (ethertype, inside) = match tunnel(bytes, frame, decap)? {
        Tunnel::None => return Ok(false),
        Tunnel::Ip => (OF_VERSION, offset),
        Tunnel::Gre => gre(bytes, offset)?,
        Tunnel::Vxlan => vxlan(bytes, offset + UDP_HEADER)?,
        Tunnel::Geneve => geneve(bytes, offset + UDP_HEADER)?,
        Tunnel::GtpU => gtp_u(bytes, offset + UDP_HEADER)?,
    };
    // Behind this the verifier knows nothing of the tunnel, and follows the rest once.
    frame.set_next_header_below_ip(ethertype, inside);
    O::barrier_var(frame);
    let (ethertype, offset) = frame.next_header_below_ip::<O>();
    if ethertype == OF_VERSION {
        frame.set_network_header_by_version(bytes, offset)?;
        return Ok(true);
    }
    let ethertype = ethertype as u16;
    match ethertype {
        ETHERTYPE_ETHERNET => link::ethernet(bytes, offset, frame)?,
        ETHERTYPE_IPV4 | ETHERTYPE_IPV6 | ETHERTYPE_MPLS => link::follow(bytes, ethertype, offset, frame)?,
        _ => return Err(Untracked::Unsupported),
    }
    Ok(true)
}

#[inline(always)]
fn tunnel<O: Bytes + ?Sized>(bytes: &O, frame: &Frame, decap: Decap) -> Result<Tunnel, Untracked> {
    match frame.next_header {
        IPV4 | IPV6 if decap.has(Decap::IPIP) => return Ok(Tunnel::Ip),
        GRE if decap.has(Decap::GRE) => return Ok(Tunnel::Gre),
        _ => {}
    }
    if frame.protocol != Protocol::Udp || decap.0 & !Decap::IPIP.with(Decap::GRE).0 == 0 {
        return Ok(Tunnel::None);
    }
    // Packets of both directions go to the well-known port. The source port only spreads flows. If it is that of a service such
    // as DNS, somebody had it answer to the port of a tunnel, with what he wants inside.
    let offset = frame.transport_offset::<O>();
    let [source_high, source_low, high, low] = bytes.read(offset).ok_or(Untracked::Truncated)?;
    if u16::from_be_bytes([source_high, source_low]) < FIRST_OF_CLIENTS {
        return Ok(Tunnel::None);
    }
    Ok(match u16::from_be_bytes([high, low]) {
        VXLAN_PORT | VXLAN_LINUX_PORT if decap.has(Decap::VXLAN) => Tunnel::Vxlan,
        GENEVE_PORT if decap.has(Decap::GENEVE) => Tunnel::Geneve,
        GTP_U_PORT if decap.has(Decap::GTP_U) => Tunnel::GtpU,
        _ => Tunnel::None,
    })
}

/// The content of a tunnel: its ethertype, and where it begins.
type Inside = (u32, usize);

#[inline(always)]
fn gre<O: Bytes + ?Sized>(bytes: &O, offset: usize) -> Result<Inside, Untracked> {
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
    let header = 4 + optional(CHECKSUM) + optional(KEY) + optional(SEQUENCE);
    Ok((u32::from(u16::from_be_bytes([type_high, type_low])), offset + header))
}

#[inline(always)]
fn vxlan<O: Bytes + ?Sized>(bytes: &O, offset: usize) -> Result<Inside, Untracked> {
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
fn geneve<O: Bytes + ?Sized>(bytes: &O, offset: usize) -> Result<Inside, Untracked> {
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
fn gtp_u<O: Bytes + ?Sized>(bytes: &O, offset: usize) -> Result<Inside, Untracked> {
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

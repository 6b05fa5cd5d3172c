//! Tunnels: the inner packet is measured instead of the outer one.

mod header;
mod mirror;

use self::{
    header::{ETHERTYPE_ETHERNET, OF_VERSION, geneve, gre, gtp_u, vxlan},
    mirror::{erspan, is_erspan, tzsp},
};
use super::{
    frame::Frame,
    link::{self, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_MPLS},
    protocol::Protocol,
    untracked::Untracked,
};
use crate::bytes::Bytes;

const IPV4: u8 = 4;
const IPV6: u8 = 41;
const GRE: u8 = 47;

const UDP_HEADER: usize = 8;
const VXLAN_PORT: u16 = 4789;
/// The port that Linux used before there was a standard, and still uses by default.
const VXLAN_LINUX_PORT: u16 = 8472;
const GENEVE_PORT: u16 = 6081;
const GTP_U_PORT: u16 = 2152;
const TZSP_PORT: u16 = 37008;
/// The first port that is no service's (RFC 6335, 6).
const FIRST_OF_CLIENTS: u16 = 1024;

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
    /// ERSPAN of types I to III (draft-foschiano-erspan-03), in which switches send copies of packets.
    pub const ERSPAN: Self = Self(1 << 5);
    /// TZSP, in which some routers send copies of packets.
    pub const TZSP: Self = Self(1 << 6);
    /// Each kind of tunnel.
    pub const EACH: [Self; 7] =
        [Self::IPIP, Self::GRE, Self::VXLAN, Self::GENEVE, Self::GTP_U, Self::ERSPAN, Self::TZSP];
    /// All tunnels.
    pub const ALL: Self = Self(0x7f);

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

/// The tunnels that begin with a GRE header.
const OVER_GRE: Decap = Decap::GRE.with(Decap::ERSPAN);

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
    Erspan,
    Tzsp,
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
        Tunnel::Erspan => erspan(bytes, offset)?,
        Tunnel::Tzsp => tzsp(bytes, offset + UDP_HEADER)?,
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
        GRE if decap.0 & OVER_GRE.0 != 0 => {
            let is_erspan = is_erspan(bytes, frame.transport_offset::<O>())?;
            // Each kind is compared by itself, so that the verifier removes the code of one that is off.
            if is_erspan && decap.has(Decap::ERSPAN) {
                return Ok(Tunnel::Erspan);
            }
            if !is_erspan && decap.has(Decap::GRE) {
                return Ok(Tunnel::Gre);
            }
            return Ok(Tunnel::None);
        }
        _ => {}
    }
    if frame.protocol != Protocol::Udp || decap.0 & !Decap::IPIP.with(OVER_GRE).0 == 0 {
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
        TZSP_PORT if decap.has(Decap::TZSP) => Tunnel::Tzsp,
        _ => Tunnel::None,
    })
}

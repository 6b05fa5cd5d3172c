//! Ethernet, and what may come between its ethertype and the IP header: VLAN tags, a `PPPoE` session, MPLS
//! labels, in this order.

use super::{
    super::{address::Family, class::Untracked, frame::Frame},
    ethertype::{
        ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_MPLS, ETHERTYPE_MPLS_MULTICAST, ETHERTYPE_PPPOE_SESSION,
        ethertype_of_ppp, is_vlan,
    },
};
use crate::{
    bytes::Bytes,
    limits::{MAX_MPLS_LABELS, MAX_VLAN_TAGS},
};

const HEADER: usize = 14;
const VLAN_TAG: usize = 4;
/// The session header (RFC 2516, 4) and the PPP protocol number.
const PPPOE_HEADER: usize = 6 + 2;
const MPLS_LABEL: usize = 4;

/// Version and type 1, and the code of a session's data.
const PPPOE_DATA: u16 = 0x1100;

/// The bottom of a stack of MPLS labels (RFC 3032, 2.1).
const MPLS_BOTTOM: u32 = 0x100;

/// Finds the IP header behind the Ethernet header at `offset`.
#[inline(always)]
pub(crate) fn parse<O: Bytes + ?Sized>(bytes: &O, offset: usize, frame: &mut Frame) -> Result<(), Untracked> {
    let ethertype = u16::from_be_bytes(bytes.read(offset + HEADER - 2).ok_or(Untracked::Truncated)?);
    follow(bytes, ethertype, offset + HEADER, frame)
}

/// Finds the IP header behind an ethertype whose payload is at `offset`.
#[inline(always)]
pub(crate) fn follow<O: Bytes + ?Sized>(
    bytes: &O,
    mut ethertype: u16,
    mut offset: usize,
    frame: &mut Frame,
) -> Result<(), Untracked> {
    for _ in 0..MAX_VLAN_TAGS {
        if !is_vlan(ethertype) {
            break;
        }
        let tag = u32::from_be_bytes(bytes.read(offset).ok_or(Untracked::Truncated)?);
        frame.vlan.push((tag >> 16) as u16);
        ethertype = tag as u16;
        offset += VLAN_TAG;
    }
    if ethertype == ETHERTYPE_PPPOE_SESSION {
        let header = bytes.read::<PPPOE_HEADER>(offset).ok_or(Untracked::Truncated)?;
        if u16::from_be_bytes([header[0], header[1]]) != PPPOE_DATA {
            return Err(Untracked::Unsupported);
        }
        ethertype = ethertype_of_ppp(u16::from_be_bytes([header[6], header[7]]));
        offset += PPPOE_HEADER;
    }
    match ethertype {
        ETHERTYPE_IPV4 => frame.set_network_header(Family::V4, offset),
        ETHERTYPE_IPV6 => frame.set_network_header(Family::V6, offset),
        ETHERTYPE_MPLS | ETHERTYPE_MPLS_MULTICAST => return mpls(bytes, offset, frame),
        _ if is_vlan(ethertype) => return Err(Untracked::Unsupported),
        _ => return Err(Untracked::NonIp),
    }
    Ok(())
}

/// Walks a stack of MPLS labels. They do not say what they carry: IP is recognised by its version, as by routers that
/// choose among equal-cost paths (RFC 4928).
#[inline(always)]
fn mpls<O: Bytes + ?Sized>(bytes: &O, mut offset: usize, frame: &mut Frame) -> Result<(), Untracked> {
    for _ in 0..MAX_MPLS_LABELS {
        let label = u32::from_be_bytes(bytes.read(offset).ok_or(Untracked::Truncated)?);
        offset += MPLS_LABEL;
        if label & MPLS_BOTTOM != 0 {
            return frame.set_network_header_by_version(bytes, offset);
        }
    }
    Err(Untracked::Unsupported)
}

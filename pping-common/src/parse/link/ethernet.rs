//! Ethernet, and what may come between its ethertype and the IP header: VLAN tags, SNAP, a `PPPoE` session, MPLS
//! labels, in this order.

use super::{
    super::{address::Family, frame::Frame, untracked::Untracked},
    ethertype::{
        ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_MPLS, ETHERTYPE_MPLS_MULTICAST, ETHERTYPE_PPPOE_SESSION,
        ethertype_of_ppp, is_length, is_vlan, ppp_protocol,
    },
};
use crate::{
    bytes::Bytes,
    limits::{MAX_MPLS_LABELS, MAX_VLAN_TAGS},
};

const HEADER: usize = 14;
const VLAN_TAG: usize = 4;
/// The session header (RFC 2516, 4), without the PPP protocol number.
const PPPOE_HEADER: usize = 6;
/// The headers of LLC and SNAP before an ethertype (RFC 1042).
const SNAP: [u8; 6] = [0xaa, 0xaa, 0x03, 0, 0, 0];
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

/// Finds the IP header behind an ethertype whose payload is at `offset`. Between its steps, the ethertype and the offset
/// are in the frame: so the verifier follows each step once, and not once for each combination of headers.
#[inline(always)]
pub(crate) fn follow<O: Bytes + ?Sized>(
    bytes: &O,
    ethertype: u16,
    offset: usize,
    frame: &mut Frame,
) -> Result<(), Untracked> {
    tags(bytes, ethertype, offset, frame)?;
    let (ethertype, offset) = next::<O>(frame);
    if is_length(ethertype) {
        let header: [u8; SNAP.len() + 2] = bytes.read(offset).ok_or(Untracked::Truncated)?;
        let [snap @ .., high, low] = header;
        if snap != SNAP {
            return Err(Untracked::NonIp);
        }
        frame.set_next_header_below_ip(u16::from_be_bytes([high, low]).into(), offset + header.len());
    }
    let (ethertype, offset) = next::<O>(frame);
    if ethertype == ETHERTYPE_PPPOE_SESSION {
        let header = bytes.read::<{ PPPOE_HEADER + 2 }>(offset).ok_or(Untracked::Truncated)?;
        if u16::from_be_bytes([header[0], header[1]]) != PPPOE_DATA {
            return Err(Untracked::Unsupported);
        }
        let (protocol, len) = ppp_protocol([header[6], header[7]]);
        frame.set_next_header_below_ip(ethertype_of_ppp(protocol).into(), offset + PPPOE_HEADER + len);
    }
    let (ethertype, offset) = next::<O>(frame);
    match ethertype {
        ETHERTYPE_IPV4 => frame.set_network_header(Family::V4, offset),
        ETHERTYPE_IPV6 => frame.set_network_header(Family::V6, offset),
        ETHERTYPE_MPLS | ETHERTYPE_MPLS_MULTICAST => return mpls(bytes, offset, frame),
        _ if is_vlan(ethertype) => return Err(Untracked::Unsupported),
        _ => return Err(Untracked::NonIp),
    }
    Ok(())
}

/// Returns the ethertype and offset of the next header.
#[inline(always)]
fn next<O: Bytes + ?Sized>(frame: &mut Frame) -> (u16, usize) {
    O::barrier_var(frame);
    let (ethertype, offset) = frame.next_header_below_ip::<O>();
    (ethertype as u16, offset)
}

/// Walks the VLAN tags.
#[inline(always)]
fn tags<O: Bytes + ?Sized>(
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
    frame.set_next_header_below_ip(ethertype.into(), offset);
    Ok(())
}

/// Walks a stack of MPLS labels. They do not say what they carry: IP is recognised by its version, as by routers that
/// choose among equal-cost paths (RFC 4928), and then by its length.
#[inline(always)]
fn mpls<O: Bytes + ?Sized>(bytes: &O, mut offset: usize, frame: &mut Frame) -> Result<(), Untracked> {
    let mut is_bottom = false;
    for _ in 0..MAX_MPLS_LABELS {
        let label = u32::from_be_bytes(bytes.read(offset).ok_or(Untracked::Truncated)?);
        offset += MPLS_LABEL;
        is_bottom = label & MPLS_BOTTOM != 0;
        if is_bottom {
            break;
        }
    }
    if !is_bottom {
        return Err(Untracked::Unsupported);
    }
    frame.set_next_header_below_ip(ETHERTYPE_MPLS.into(), offset);
    let (_, offset) = next::<O>(frame);
    frame.set_network_header_by_version(bytes, offset)?;
    frame.is_guessed = true;
    Ok(())
}

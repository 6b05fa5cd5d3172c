//! Link headers of captures between two ends: BSD loopback, and PPP.

use super::{
    super::{address::Family, frame::Frame, untracked::Untracked},
    ethernet::follow,
    ethertype::{ethertype_of_ppp, ppp_protocol},
};
use crate::bytes::Bytes;

/// An address family.
const LOOPBACK_HEADER: usize = 4;
const AF_INET: u32 = 2;
/// IPv6 on Linux, Windows, NetBSD and OpenBSD, FreeBSD, and Darwin.
const AF_INET6: [u32; 5] = [10, 23, 24, 28, 30];

/// HDLC's address and control field (RFC 1662, 3.1), which may be left out.
const PPP_ADDRESS_AND_CONTROL: [u8; 2] = [0xff, 0x03];

/// Parses a loopback header. The family is in the byte order of the host that captured or, on OpenBSD, of the network.
#[inline(always)]
pub(super) fn parse_loopback<O: Bytes + ?Sized>(bytes: &O, frame: &mut Frame) -> Result<(), Untracked> {
    let family = bytes.read(0).ok_or(Untracked::Truncated)?;
    for number in [u32::from_be_bytes(family), u32::from_le_bytes(family)] {
        if number == AF_INET {
            frame.set_network_header(Family::V4, LOOPBACK_HEADER);
            return Ok(());
        }
        if AF_INET6.contains(&number) {
            frame.set_network_header(Family::V6, LOOPBACK_HEADER);
            return Ok(());
        }
    }
    Err(Untracked::NonIp)
}

#[inline(always)]
pub(super) fn parse_ppp<O: Bytes + ?Sized>(bytes: &O, frame: &mut Frame) -> Result<(), Untracked> {
    let mut offset = 0;
    let mut start: [u8; 2] = bytes.read(0).ok_or(Untracked::Truncated)?;
    if start == PPP_ADDRESS_AND_CONTROL {
        offset = 2;
        start = bytes.read(offset).ok_or(Untracked::Truncated)?;
    }
    let (protocol, len) = ppp_protocol(start);
    follow(bytes, ethertype_of_ppp(protocol), offset + len, frame)
}

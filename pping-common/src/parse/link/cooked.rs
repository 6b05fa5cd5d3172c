//! Linux cooked captures: what libpcap puts in place of a link header when it captures on all interfaces at
//! once (`LINKTYPE_LINUX_SLL` and `LINKTYPE_LINUX_SLL2` of <https://www.tcpdump.org/linktypes.html>).

use super::{
    super::{direction::Direction, frame::Frame, untracked::Untracked},
    ethernet::follow,
};
use crate::bytes::Bytes;

/// Packet type, ARPHRD, address length, address, protocol.
const HEADER: usize = 16;
/// Protocol, reserved, interface, ARPHRD, packet type, address length, address.
const HEADER_V2: usize = 20;
const INTERFACE_V2: usize = 4;
const PACKET_TYPE_V2: usize = 10;

/// Sent by the capturing host: `PACKET_OUTGOING` of `linux/if_packet.h`.
const OUTGOING: u8 = 4;

#[inline(always)]
pub(super) fn parse<O: Bytes + ?Sized>(bytes: &O, frame: &mut Frame) -> Result<(), Untracked> {
    let protocol = u16::from_be_bytes(bytes.read(HEADER - 2).ok_or(Untracked::Truncated)?);
    follow(bytes, protocol, HEADER, frame)
}

#[inline(always)]
pub(super) fn parse_v2<O: Bytes + ?Sized>(bytes: &O, frame: &mut Frame) -> Result<(), Untracked> {
    let protocol = u16::from_be_bytes(bytes.read(0).ok_or(Untracked::Truncated)?);
    follow(bytes, protocol, HEADER_V2, frame)
}

pub(super) fn direction<O: Bytes + ?Sized>(bytes: &O) -> Option<Direction> {
    let [_, packet_type] = bytes.read(0)?;
    Some(of_packet_type(packet_type))
}

pub(super) fn direction_v2<O: Bytes + ?Sized>(bytes: &O) -> Option<Direction> {
    let [packet_type, _] = bytes.read(PACKET_TYPE_V2)?;
    Some(of_packet_type(packet_type))
}

pub(super) fn interface_v2<O: Bytes + ?Sized>(bytes: &O) -> Option<u32> {
    bytes.read(INTERFACE_V2).map(u32::from_be_bytes)
}

fn of_packet_type(packet_type: u8) -> Direction {
    if packet_type == OUTGOING { Direction::Egress } else { Direction::Ingress }
}

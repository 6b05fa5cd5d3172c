//! Building blocks of this crate's tests: frames built byte by byte, transport headers ready for the state machine, and
//! two hosts that talk.

mod conversation;
mod frames;

use std::vec::Vec;

pub(crate) use conversation::{
    Conversation, MS, at, bare, data, local, pure_ack, reply, request, rtt, samples, segment, snapshot,
};
pub(crate) use frames::{Network, Tcp, echo, ethernet, extension};

use crate::{
    bytes::Captured,
    parse::{Decap, Frame, LinkType, Scope, Untracked, Vlan},
};

pub(crate) const FIN: u8 = 0x01;
pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const PSH: u8 = 0x08;
pub(crate) const ACK: u8 = 0x10;

pub(crate) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(crate) const ETHERTYPE_IPV6: u16 = 0x86dd;
pub(crate) const VLAN: u16 = 0x8100;
pub(crate) const SERVICE_VLAN: u16 = 0x88a8;

pub(crate) const TCP: u8 = 6;
pub(crate) const ICMP: u8 = 1;
pub(crate) const ICMPV6: u8 = 58;

/// Parses an Ethernet frame without offloaded tags.
pub(crate) fn parse(bytes: &[u8]) -> Result<Frame, Untracked> {
    parse_on(bytes, LinkType::Ethernet)
}

/// Parses a frame of a link type.
pub(crate) fn parse_on(bytes: &[u8], link: LinkType) -> Result<Frame, Untracked> {
    let mut frame = Frame::EMPTY;
    frame.parse(bytes, link, Vlan::NONE, Decap::NONE, &Scope::ALL).map(|()| frame)
}

/// Parses a frame of which a capture has kept the first `len` bytes.
pub(crate) fn parse_prefix(bytes: &[u8], len: usize, link: LinkType) -> Result<Frame, Untracked> {
    let captured = Captured { bytes: &bytes[..len], frame_len: bytes.len() };
    let mut frame = Frame::EMPTY;
    frame.parse(&captured, link, Vlan::NONE, Decap::NONE, &Scope::ALL).map(|()| frame)
}

/// Parses a frame, and returns it even if it is not measured.
pub(crate) fn parse_anyway(bytes: &[u8]) -> (Frame, Result<(), Untracked>) {
    let mut frame = Frame::EMPTY;
    let parsed = frame.parse(bytes, LinkType::Ethernet, Vlan::NONE, Decap::NONE, &Scope::ALL);
    (frame, parsed)
}

/// The VLAN identifiers of a frame, outermost first.
pub(crate) fn identifiers(frame: &Frame) -> Vec<u16> {
    frame.vlan.identifiers().collect()
}

/// Random numbers (xorshift). The seed is not 0.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.number().checked_rem(bound).unwrap_or(0)
    }

    pub(crate) fn one_in(&mut self, number: u64) -> bool {
        number != 0 && self.below(number) == 0
    }
}

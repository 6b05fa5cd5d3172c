//! Ethernet frames, and what they are parsed into.

use pping_common::{
    bytes::Captured,
    parse::{Decap, Frame, LinkType, Scope, Untracked, Vlan},
};

const TCP: u8 = 6;
const UDP: u8 = 17;
const CLIENT_PORT: u16 = 40_000;
const SERVER_PORT: u16 = 443;

/// The IP version.
#[derive(Clone, Copy)]
pub(crate) enum Version {
    V4,
    V6,
}

/// The sender of a packet.
#[derive(Clone, Copy)]
pub(crate) enum From {
    Client,
    Server,
}

/// A segment with or without timestamps, and with this payload.
pub(crate) fn segment(
    version: Version,
    from: From,
    timestamps: Option<(u32, u32)>,
    payload: usize,
) -> Vec<u8> {
    let mut segment = ports(from, SERVER_PORT);
    let words = if timestamps.is_some() { 8 } else { 5 };
    segment.extend([0, 0, 0, 1, 0, 0, 0, 1, words << 4, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
    if let Some((tsval, tsecr)) = timestamps {
        segment.extend([1, 1, 8, 10]);
        segment.extend([tsval, tsecr].map(u32::to_be_bytes).concat());
    }
    segment.resize(segment.len() + payload, 0);
    packet(version, from, TCP, &segment)
}

/// A client's QUIC packet with a short header.
pub(crate) fn quic_short() -> Vec<u8> {
    let mut packet = vec![0x40];
    packet.resize(1200, 0);
    datagram(SERVER_PORT, &packet)
}

/// An Initial of a QUIC client (RFC 9000, 17.2.2).
pub(crate) fn quic_initial() -> Vec<u8> {
    let mut packet = vec![0xc3, 0, 0, 0, 1, 8];
    packet.extend(b"8 bytes.\x08client's");
    packet.resize(1200, 0);
    datagram(SERVER_PORT, &packet)
}

/// A query for the addresses of a name.
pub(crate) fn dns_query() -> Vec<u8> {
    datagram(53, b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\x03net\0\0\x01\0\x01")
}

/// Parses a frame as replay does.
#[inline]
pub(crate) fn parse(bytes: &[u8], frame: &mut Frame) -> Result<(), Untracked> {
    let captured = Captured { bytes, frame_len: bytes.len() };
    frame.parse(&captured, LinkType::Ethernet, Vlan::NONE, Decap::NONE, &Scope::ALL)
}

/// Parses a valid frame.
///
/// # Panics
/// If the frame is not valid.
pub(crate) fn parsed(bytes: &[u8]) -> Frame {
    let mut frame = Frame::EMPTY;
    assert_eq!(parse(bytes, &mut frame), Ok(()), "{bytes:x?}");
    frame
}

fn datagram(port: u16, payload: &[u8]) -> Vec<u8> {
    let mut datagram = ports(From::Client, port);
    datagram.extend((8 + payload.len() as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    packet(Version::V4, From::Client, UDP, &datagram)
}

fn ports(from: From, server: u16) -> Vec<u8> {
    let ports = match from {
        From::Client => [CLIENT_PORT, server],
        From::Server => [server, CLIENT_PORT],
    };
    ports.map(u16::to_be_bytes).concat()
}

fn packet(version: Version, from: From, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 12];
    let len = payload.len() as u16;
    match version {
        Version::V4 => {
            frame.extend([0x08, 0x00, 0x45, 0]);
            frame.extend((20 + len).to_be_bytes());
            frame.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
        }
        Version::V6 => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(len.to_be_bytes());
            frame.extend([protocol, 64]);
        }
    }
    let last = match from {
        From::Client => [1, 2],
        From::Server => [2, 1],
    };
    for last in last {
        match version {
            Version::V4 => frame.extend([192, 0, 2, last]),
            Version::V6 => frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]),
        }
    }
    frame.extend(payload);
    frame
}

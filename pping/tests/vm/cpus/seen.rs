//! The packets that tcpdump has seen, read without any of pping's code.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::Path,
};

use crate::frames::{ETHERNET_HEADER, ICMP, ICMPV6, IPV4, IPV6, TCP, UDP};

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
const DNS_PORT: u16 = 53;
const TIMESTAMPS: u8 = 8;

/// An address and a port. For echoes the identifier stands for both ports.
pub(super) type Host = (IpAddr, u16);

/// A packet of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    /// When it passed, in ns since the epoch.
    pub(super) at: u64,
    pub(super) from: Host,
    pub(super) to: Host,
    pub(super) content: Content,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Segment(Segment),
    Echo {
        number: u16,
        is_reply: bool,
    },
    Dns {
        id: u16,
        is_response: bool,
    },
    /// Content that no method measures here.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) flags: u8,
    pub(super) sequence: u32,
    pub(super) acknowledgement: u32,
    /// TSval and TSecr.
    pub(super) stamps: Option<(u32, u32)>,
    pub(super) payload: u32,
}

/// Reads all IP packets of a capture with times in ns, in its order.
pub(super) fn read(capture: &Path) -> Vec<Packet> {
    let bytes = fs::read(capture).unwrap();
    assert_eq!(bytes[..4], 0xa1b2_3c4d_u32.to_ne_bytes(), "not a capture with nanoseconds");
    let number = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut packets, mut at) = (Vec::new(), FILE_HEADER);
    while at < bytes.len() {
        let time = u64::from(number(at)) * 1_000_000_000 + u64::from(number(at + 4));
        let length = number(at + 8) as usize;
        let frame = &bytes[at + RECORD_HEADER..at + RECORD_HEADER + length];
        packets.extend(packet(time, frame));
        at += RECORD_HEADER + length;
    }
    packets
}

fn packet(at: u64, frame: &[u8]) -> Option<Packet> {
    let ip = frame.get(ETHERNET_HEADER..)?;
    let (from, to, protocol, payload): (IpAddr, IpAddr, u8, &[u8]) = match short(frame, 12)? {
        IPV4 => {
            let address = |at| Some(Ipv4Addr::from(<[u8; 4]>::try_from(ip.get(at..at + 4)?).ok()?).into());
            (address(12)?, address(16)?, ip[9], ip.get(20..)?)
        }
        IPV6 => {
            let address = |at| Some(Ipv6Addr::from(<[u8; 16]>::try_from(ip.get(at..at + 16)?).ok()?).into());
            (address(8)?, address(24)?, ip[6], ip.get(40..)?)
        }
        _ => return None,
    };
    // The length comes from the header, since the capture may hold less.
    let length =
        if from.is_ipv4() { u32::from(short(ip, 2)?).checked_sub(20)? } else { u32::from(short(ip, 4)?) };
    let ports = (short(payload, 0)?, short(payload, 2)?);
    let (ports, content) = match protocol {
        TCP => (ports, Content::Segment(segment(payload, length)?)),
        UDP if ports.0 == DNS_PORT || ports.1 == DNS_PORT => {
            (ports, Content::Dns { id: short(payload, 8)?, is_response: payload.get(10)? & 0x80 != 0 })
        }
        ICMP | ICMPV6 if matches!(payload[0], 0 | 8 | 128 | 129) => {
            let identifier = short(payload, 4)?;
            let is_reply = matches!(payload[0], 0 | 129);
            ((identifier, identifier), Content::Echo { number: short(payload, 6)?, is_reply })
        }
        _ => (ports, Content::Other),
    };
    Some(Packet { at, from: (from, ports.0), to: (to, ports.1), content })
}

fn segment(payload: &[u8], length: u32) -> Option<Segment> {
    let header = usize::from(payload.get(12)? >> 4) * 4;
    let mut options = payload.get(20..header)?;
    let mut stamps = None;
    while let [kind, rest @ ..] = options {
        options = match kind {
            0 => break,
            1 => rest,
            kind => {
                if *kind == TIMESTAMPS {
                    stamps = Some((long(options, 2)?, long(options, 6)?));
                }
                options.get(usize::from(*rest.first()?)..)?
            }
        };
    }
    Some(Segment {
        flags: payload[13],
        sequence: long(payload, 4)?,
        acknowledgement: long(payload, 8)?,
        stamps,
        payload: length.checked_sub(header as u32)?,
    })
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

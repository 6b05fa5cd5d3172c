//! Frames, built byte by byte.

use std::{vec, vec::Vec};

use super::{ETHERTYPE_IPV4, ETHERTYPE_IPV6};
use crate::parse::{Family, IpAddress};

/// An Ethernet frame. `tags` are pairs of tag protocol identifier and tag control word, outermost first.
pub(crate) fn ethernet(tags: &[(u16, u16)], ethertype: u16, network: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x02; 12];
    for (identifier, control) in tags {
        frame.extend(identifier.to_be_bytes());
        frame.extend(control.to_be_bytes());
    }
    frame.extend(ethertype.to_be_bytes());
    frame.extend(network);
    frame
}

/// An IP header, of either version.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub(crate) family: Family,
    pub(crate) source: IpAddress,
    pub(crate) destination: IpAddress,
    pub(crate) traffic_class: u8,
    /// IPv4: bytes of options, a multiple of 4.
    pub(crate) options: Vec<u8>,
    /// IPv4: flags and fragment offset.
    pub(crate) fragment: u16,
    /// IPv6: extension headers, each with its number and without its first byte.
    pub(crate) extensions: Vec<(u8, Vec<u8>)>,
    /// The length field, if it is to differ from the true length.
    pub(crate) len: Option<u16>,
}

impl Network {
    pub(crate) fn v4() -> Self {
        let mapped =
            |last| IpAddress::from_bytes([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, last]);
        Self::between(Family::V4, mapped(1), mapped(2))
    }

    pub(crate) fn v6() -> Self {
        let documentation =
            |last| IpAddress::from_bytes([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        Self::between(Family::V6, documentation(1), documentation(2))
    }

    pub(crate) fn between(family: Family, source: IpAddress, destination: IpAddress) -> Self {
        Self {
            family,
            source,
            destination,
            traffic_class: 0,
            options: Vec::new(),
            fragment: 0,
            extensions: Vec::new(),
            len: None,
        }
    }

    pub(crate) fn with_extensions(extensions: &[(u8, Vec<u8>)]) -> Self {
        Self { extensions: extensions.to_vec(), ..Self::v6() }
    }

    pub(crate) fn ethertype(&self) -> u16 {
        match self.family {
            Family::V4 => ETHERTYPE_IPV4,
            Family::V6 => ETHERTYPE_IPV6,
        }
    }

    /// Bytes between link and transport header.
    pub(crate) fn header_len(&self) -> usize {
        match self.family {
            Family::V4 => 20 + self.options.len(),
            Family::V6 => 40 + self.extensions.iter().map(|(_, rest)| 1 + rest.len()).sum::<usize>(),
        }
    }

    /// Returns a packet with this header.
    pub(crate) fn packet(&self, protocol: u8, transport: &[u8]) -> Vec<u8> {
        match self.family {
            Family::V4 => self.packet_v4(protocol, transport),
            Family::V6 => self.packet_v6(protocol, transport),
        }
    }

    /// Returns an Ethernet frame with this packet.
    pub(crate) fn frame(&self, protocol: u8, transport: &[u8]) -> Vec<u8> {
        ethernet(&[], self.ethertype(), &self.packet(protocol, transport))
    }

    fn packet_v4(&self, protocol: u8, transport: &[u8]) -> Vec<u8> {
        let len = self.len.unwrap_or((self.header_len() + transport.len()) as u16);
        let mut packet = vec![0x40 | (self.header_len() / 4) as u8, self.traffic_class];
        packet.extend(len.to_be_bytes());
        packet.extend([0x12, 0x34]);
        packet.extend(self.fragment.to_be_bytes());
        packet.extend([64, protocol, 0, 0]);
        packet.extend(&self.source.to_bytes()[12..]);
        packet.extend(&self.destination.to_bytes()[12..]);
        packet.extend(&self.options);
        packet.extend(transport);
        packet
    }

    fn packet_v6(&self, protocol: u8, transport: &[u8]) -> Vec<u8> {
        let len = self.len.unwrap_or((self.header_len() - 40 + transport.len()) as u16);
        let mut numbers = self.extensions.iter().map(|(number, _)| *number).chain([protocol]);
        let mut next = || numbers.next().unwrap_or(protocol);
        let mut packet =
            Vec::from((6 << 28 | u32::from(self.traffic_class) << 20 | 0x000a_bcde).to_be_bytes());
        packet.extend(len.to_be_bytes());
        packet.extend([next(), 64]);
        packet.extend(self.source.to_bytes());
        packet.extend(self.destination.to_bytes());
        for (_, rest) in &self.extensions {
            packet.push(next());
            packet.extend(rest);
        }
        packet.extend(transport);
        packet
    }
}

/// An IPv6 extension header of `8 * units` bytes, all zero except its length.
pub(crate) fn extension(number: u8, units: usize) -> (u8, Vec<u8>) {
    let mut rest = vec![0; 8 * units - 1];
    rest[0] = (units - 1) as u8;
    (number, rest)
}

/// A TCP segment.
#[derive(Clone, Debug)]
pub(crate) struct Tcp {
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) flags: u8,
    pub(crate) options: Vec<u8>,
    /// The data offset in words, if it is to differ from the true one.
    pub(crate) data_offset: Option<u8>,
    pub(crate) payload: usize,
}

impl Tcp {
    /// A segment with options, which are padded to a whole word with zeros.
    pub(crate) fn with_options(options: &[u8]) -> Self {
        Self {
            source_port: 40_000,
            destination_port: 443,
            flags: super::ACK,
            options: options.to_vec(),
            data_offset: None,
            payload: 5,
        }
    }

    /// A segment with the options of nearly all segments: two NOPs, then timestamps.
    pub(crate) fn usual(tsval: u32, tsecr: u32) -> Self {
        Self::with_options(&[&[1, 1], &Self::timestamps(tsval, tsecr)[..]].concat())
    }

    /// The timestamps option.
    pub(crate) fn timestamps(tsval: u32, tsecr: u32) -> [u8; 10] {
        let mut option = [8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
        option[2..6].copy_from_slice(&tsval.to_be_bytes());
        option[6..].copy_from_slice(&tsecr.to_be_bytes());
        option
    }

    pub(crate) fn header_len(&self) -> usize {
        20 + self.options.len().next_multiple_of(4)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let words = self.data_offset.unwrap_or((self.header_len() / 4) as u8);
        let mut segment = Vec::from(self.source_port.to_be_bytes());
        segment.extend(self.destination_port.to_be_bytes());
        segment.extend([0x11; 8]);
        segment.extend([words << 4, self.flags, 0xff, 0xff, 0, 0, 0, 0]);
        segment.extend(&self.options);
        segment.resize(self.header_len(), 0);
        segment.resize(self.header_len() + self.payload, 0xda);
        segment
    }
}

/// An ICMP or `ICMPv6` message in the form of an echo.
pub(crate) fn echo(kind: u8, code: u8, id: u16, sequence: u16, data: &[u8]) -> Vec<u8> {
    let mut message = vec![kind, code, 0, 0];
    message.extend(id.to_be_bytes());
    message.extend(sequence.to_be_bytes());
    message.extend(data);
    message
}

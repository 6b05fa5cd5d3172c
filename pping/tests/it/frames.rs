//! Frames built byte by byte. Any field can be wrong.

#![expect(
    clippy::panic,
    reason = "helpers of tests; clippy only knows the functions that are tests themselves"
)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const ARP: u16 = 0x0806;
pub(crate) const VLAN: u16 = 0x8100;
pub(crate) const IPV6: u16 = 0x86dd;
pub(crate) const SERVICE_VLAN: u16 = 0x88a8;
pub(crate) const LLDP: u16 = 0x88cc;
pub(crate) const OLD_SERVICE_VLAN: u16 = 0x9100;
pub(crate) const OLDER_SERVICE_VLAN: u16 = 0x9200;
pub(crate) const MPLS: u16 = 0x8847;
pub(crate) const PPPOE_SESSION: u16 = 0x8864;

pub(crate) const HOP_BY_HOP: u8 = 0;
pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ROUTING: u8 = 43;
pub(crate) const FRAGMENT: u8 = 44;
pub(crate) const ESP: u8 = 50;
pub(crate) const AUTHENTICATION: u8 = 51;
pub(crate) const ICMPV6: u8 = 58;
pub(crate) const NO_NEXT_HEADER: u8 = 59;
pub(crate) const DESTINATION_OPTIONS: u8 = 60;

pub(crate) const FIN: u8 = 0x01;
pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const PSH: u8 = 0x08;
pub(crate) const ACK: u8 = 0x10;

/// The length of an Ethernet header without tags.
pub(crate) const ETHERNET_HEADER: usize = 14;

/// An IPv4 host of a documentation network (RFC 5737).
pub(crate) fn v4(host: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, host).into()
}

/// An IPv6 host of a documentation network (RFC 3849).
pub(crate) fn v6(host: u8) -> IpAddr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host.into()).into()
}

/// An Ethernet frame; `tags` are pairs of `EtherType` and tag control information, outermost first.
pub(crate) fn ethernet(tags: &[(u16, u16)], ethertype: u16, network: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    for (identifier, control) in tags {
        frame.extend(identifier.to_be_bytes());
        frame.extend(control.to_be_bytes());
    }
    frame.extend(ethertype.to_be_bytes());
    frame.extend(network);
    frame
}

/// A `PPPoE` session frame with this PPP protocol number.
pub(crate) fn pppoe(protocol: u16, network: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x11, 0, 0x12, 0x34];
    frame.extend((2 + network.len() as u16).to_be_bytes());
    frame.extend(protocol.to_be_bytes());
    frame.extend(network);
    frame
}

/// The same with a protocol number of one byte.
pub(crate) fn pppoe_short(protocol: u8, network: &[u8]) -> Vec<u8> {
    let mut frame = pppoe(protocol.into(), network);
    frame[5] -= 1;
    frame.remove(6);
    frame
}

/// LLC and SNAP before this `EtherType`. The frame's own type must be its length.
pub(crate) fn snap(ethertype: u16, network: &[u8]) -> Vec<u8> {
    let mut frame = vec![0xaa, 0xaa, 0x03, 0, 0, 0];
    frame.extend(ethertype.to_be_bytes());
    frame.extend(network);
    frame
}

/// A stack of MPLS labels.
pub(crate) fn mpls(labels: u32, network: &[u8]) -> Vec<u8> {
    let label = |number: u32| (number + 16) << 12 | u32::from(number + 1 == labels) << 8 | 64;
    let mut frame: Vec<u8> = (0..labels).flat_map(|number| u32::to_be_bytes(label(number))).collect();
    frame.extend(network);
    frame
}

/// An IPv6 extension header: its number, and all bytes after the first, which is the next header.
#[derive(Clone, Debug)]
pub(crate) struct Extension(pub(super) u8, pub(super) Vec<u8>);

impl Extension {
    /// A header of `8 * units` bytes.
    pub(crate) fn of(number: u8, units: u8) -> Self {
        let mut rest = vec![0; 8 * usize::from(units) - 1];
        rest[0] = if number == FRAGMENT { 0 } else { units - 1 };
        Self(number, rest)
    }

    /// A fragment header, with `offset` in units of 8 bytes.
    pub(crate) fn fragment(offset: u16, more: bool) -> Self {
        let [high, low] = (offset << 3 | u16::from(more)).to_be_bytes();
        Self(FRAGMENT, vec![0, high, low, 0, 0, 0, 9])
    }
}

/// The flow label of every IPv6 packet made here: Linux draws others for its own.
pub(crate) const FLOW_LABEL: u32 = 0x000c_afed;

/// An IP header of either version.
#[derive(Clone, Debug)]
pub(crate) struct Ip {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) traffic_class: u8,
    /// IPv4 options, a multiple of 4 bytes.
    pub(crate) options: Vec<u8>,
    /// IPv4 flags and fragment offset.
    pub(crate) fragment: u16,
    pub(crate) extensions: Vec<Extension>,
    /// The version field, if it is wrong.
    pub(crate) version: Option<u8>,
    /// The IPv4 header length in words, if it is wrong.
    pub(crate) words: Option<u8>,
    /// The length field, if it is wrong.
    pub(crate) len: Option<u16>,
}

impl Ip {
    pub(crate) fn between(source: IpAddr, destination: IpAddr) -> Self {
        Self {
            source,
            destination,
            traffic_class: 0,
            options: Vec::new(),
            fragment: 0,
            extensions: Vec::new(),
            version: None,
            words: None,
            len: None,
        }
    }

    /// A header from the first IPv4 host to the second.
    pub(crate) fn v4() -> Self {
        Self::between(v4(1), v4(2))
    }

    /// A header from the first IPv6 host to the second.
    pub(crate) fn v6() -> Self {
        Self::between(v6(1), v6(2))
    }

    pub(crate) fn with_extensions(extensions: impl IntoIterator<Item = Extension>) -> Self {
        Self { extensions: extensions.into_iter().collect(), ..Self::v6() }
    }

    pub(crate) fn ethertype(&self) -> u16 {
        if self.source.is_ipv4() { IPV4 } else { IPV6 }
    }

    /// The protocol number of ICMP for this version.
    pub(crate) fn icmp(&self) -> u8 {
        if self.source.is_ipv4() { ICMP } else { ICMPV6 }
    }

    pub(crate) fn packet(&self, protocol: u8, transport: &[u8]) -> Vec<u8> {
        let mut packet = match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                self.header_v4(source, destination, protocol, transport.len())
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                self.header_v6(source, destination, protocol, transport.len())
            }
            _ => panic!("two families in one packet"),
        };
        packet.extend(transport);
        packet
    }

    /// The packet on Ethernet without tags.
    pub(crate) fn frame(&self, protocol: u8, transport: &[u8]) -> Vec<u8> {
        ethernet(&[], self.ethertype(), &self.packet(protocol, transport))
    }

    fn header_v4(&self, source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, payload: usize) -> Vec<u8> {
        let header_len = 20 + self.options.len();
        let words = self.words.unwrap_or((header_len / 4) as u8);
        let len = self.len.unwrap_or((header_len + payload) as u16);
        let mut header = vec![self.version.unwrap_or(4) << 4 | words, self.traffic_class];
        header.extend(len.to_be_bytes());
        header.extend([0xab, 0xcd]);
        header.extend(self.fragment.to_be_bytes());
        header.extend([64, protocol, 0, 0]);
        header.extend(source.octets());
        header.extend(destination.octets());
        header.extend(&self.options);
        header
    }

    fn header_v6(&self, source: Ipv6Addr, destination: Ipv6Addr, protocol: u8, payload: usize) -> Vec<u8> {
        let extensions: usize = self.extensions.iter().map(|Extension(_, rest)| 1 + rest.len()).sum();
        let len = self.len.unwrap_or((extensions + payload) as u16);
        let version = u32::from(self.version.unwrap_or(6));
        let mut numbers = self.extensions.iter().map(|Extension(number, _)| *number).chain([protocol]);
        let mut header =
            Vec::from((version << 28 | u32::from(self.traffic_class) << 20 | FLOW_LABEL).to_be_bytes());
        header.extend(len.to_be_bytes());
        header.extend([numbers.next().unwrap_or(protocol), 64]);
        header.extend(source.octets());
        header.extend(destination.octets());
        for Extension(_, rest) in &self.extensions {
            header.push(numbers.next().unwrap_or(protocol));
            header.extend(rest);
        }
        header
    }
}

/// A TCP segment.
#[derive(Clone, Debug)]
pub(crate) struct Tcp {
    pub(crate) ports: (u16, u16),
    pub(crate) flags: u8,
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    /// Padded with zeros to whole words.
    pub(crate) options: Vec<u8>,
    /// The data offset in words, if it is wrong.
    pub(crate) words: Option<u8>,
    pub(crate) payload: usize,
}

impl Tcp {
    pub(crate) fn with_options(options: impl Into<Vec<u8>>) -> Self {
        Self {
            ports: (40_000, 443),
            flags: ACK | PSH,
            sequence: 0x100,
            acknowledgement: 0x200,
            options: options.into(),
            words: None,
            payload: 11,
        }
    }

    /// The usual segment: its timestamps option follows two NOPs.
    pub(crate) fn stamped(tsval: u32, tsecr: u32) -> Self {
        Self::with_options([&[1, 1][..], &timestamps(tsval, tsecr)].concat())
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let header_len = 20 + self.options.len().next_multiple_of(4);
        let words = self.words.unwrap_or((header_len / 4) as u8);
        let mut segment = Vec::from(self.ports.0.to_be_bytes());
        segment.extend(self.ports.1.to_be_bytes());
        segment.extend(self.sequence.to_be_bytes());
        segment.extend(self.acknowledgement.to_be_bytes());
        segment.extend([words << 4, self.flags, 0x10, 0, 0, 0, 0, 0]);
        segment.extend(&self.options);
        segment.resize(header_len, 0);
        segment.resize(header_len + self.payload, b'x');
        segment
    }
}

/// The timestamps option.
pub(crate) fn timestamps(tsval: u32, tsecr: u32) -> [u8; 10] {
    let mut option = [8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
    option[2..6].copy_from_slice(&tsval.to_be_bytes());
    option[6..].copy_from_slice(&tsecr.to_be_bytes());
    option
}

/// A UDP datagram to the discard port (RFC 863). Without its fixed bit, it is no packet of QUIC.
pub(crate) fn udp(payload: usize) -> Vec<u8> {
    let mut datagram = vec![0xc0, 0, 0, 9, 0, (8 + payload) as u8, 0, 0];
    datagram.resize(8 + payload, 0);
    datagram
}

/// A UDP datagram with `bytes` bytes of a DNS message, all zero but the ID and the flags.
pub(crate) fn dns((source, destination): (u16, u16), id: u16, flags: [u8; 2], bytes: usize) -> Vec<u8> {
    let len = 8 + bytes as u16;
    let mut datagram: Vec<u8> =
        [source, destination, len, 0, id].into_iter().flat_map(u16::to_be_bytes).collect();
    datagram.extend(flags);
    datagram.resize(usize::from(len), 0);
    datagram
}

/// A UDP datagram with this payload, to this port.
pub(crate) fn udp_to(port: u16, payload: &[u8]) -> Vec<u8> {
    udp_between((0xc001, port), payload)
}

/// A UDP datagram with this payload, from port to port.
pub(crate) fn udp_between((source, destination): (u16, u16), payload: &[u8]) -> Vec<u8> {
    let len = 8 + payload.len() as u16;
    let mut datagram: Vec<u8> =
        [source, destination, len, 0].into_iter().flat_map(u16::to_be_bytes).collect();
    datagram.extend(payload);
    datagram
}

/// A QUIC packet with a long header and these IDs, in a payload of `len` bytes.
pub(crate) fn quic_long(first: u8, version: u32, [destination, source]: [&[u8]; 2], len: usize) -> Vec<u8> {
    let mut packet = vec![first];
    packet.extend(version.to_be_bytes());
    for id in [destination, source] {
        packet.push(id.len() as u8);
        packet.extend(id);
    }
    packet.resize(len, 0x55);
    packet
}

/// An ICMP or `ICMPv6` message in the form of an echo, with `payload` bytes behind its header.
pub(crate) fn icmp(kind: u8, code: u8, id: u16, sequence: u16, payload: usize) -> Vec<u8> {
    let mut message = vec![kind, code, 0, 0];
    message.extend(id.to_be_bytes());
    message.extend(sequence.to_be_bytes());
    message.resize(8 + payload, b'p');
    message
}

/// An echo request or reply on Ethernet.
pub(crate) fn echo(source: IpAddr, destination: IpAddr, id: u16, sequence: u16, is_reply: bool) -> Vec<u8> {
    let ip = Ip::between(source, destination);
    let kind = match (ip.icmp(), is_reply) {
        (ICMP, false) => 8,
        (ICMP, true) => 0,
        (_, false) => 128,
        (_, true) => 129,
    };
    ip.frame(ip.icmp(), &icmp(kind, 0, id, sequence, 56))
}

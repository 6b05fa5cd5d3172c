//! The fast path of parsing.
//!
//! In the common form of a frame, every field has a fixed offset: an Ethernet header without tags, an IP header without
//! options or extensions, and a TCP segment in the middle of a connection, with timestamps as its only option or with
//! none. A few comparisons replace the walk from header to header. The same holds for a UDP datagram behind such headers.

use super::{
    address::{Address, Family, IpAddress},
    frame::Frame,
    ip,
    link::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, LinkType},
    options::COMMON_OPTIONS,
    protocol::{Kind, Protocol},
    tcp::{Segment, TcpFlags, Timestamps},
    transport::Transport,
    udp::Datagram,
};
use crate::bytes::{Bytes, array_at};

/// The offset of the ethertype in an Ethernet header.
const ETHERTYPE: usize = 12;
const ETHERNET_HEADER: usize = 14;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const TCP_HEADER: usize = 20;
const TIMESTAMPS: usize = COMMON_OPTIONS.len() + 8;
/// Version 4, and a header of five words.
const IPV4_START: u8 = 0x45;
/// The fragment offset of IPv4, without the flag for more fragments.
const FRAGMENT_OFFSET: u16 = 0x1fff;
/// The data offset of a TCP header without options, and with [`TIMESTAMPS`], in words.
const WITHOUT_OPTIONS: u8 = (TCP_HEADER / 4) as u8;
const WITH_TIMESTAMPS: u8 = ((TCP_HEADER + TIMESTAMPS) / 4) as u8;
const SYN_FIN_RST: u8 = 0x07;

impl Frame {
    /// Parses a frame of this family if it has the common form. The caller has checked the link header. Returns `None`
    /// for any other frame, and for one that is cut short: [`Frame::parse`] must parse those. Both give the same frame.
    #[inline(always)]
    pub fn parse_fast<A: Address>(bytes: &(impl Bytes + ?Sized)) -> Option<Self> {
        match A::FAMILY {
            Family::V4 => Self::parse_fast_v4(bytes),
            Family::V6 => Self::parse_fast_v6(bytes),
        }
    }

    #[inline(always)]
    fn parse_fast_v4(bytes: &(impl Bytes + ?Sized)) -> Option<Self> {
        let header: [u8; IPV4_HEADER + TCP_HEADER] = bytes.read(ETHERNET_HEADER)?;
        let fragment = u16::from_be_bytes(array_at(&header, 6));
        if header[0] != IPV4_START || header[9] != Segment::NUMBER || fragment & FRAGMENT_OFFSET != 0 {
            return None;
        }
        let len = u16::from_be_bytes(array_at(&header, 2));
        let mut frame = Self { family: Family::V4, traffic_class: header[1], ..Self::COMMON };
        frame.source = IpAddress::mapped(array_at(&header, 12));
        frame.destination = IpAddress::mapped(array_at(&header, 16));
        let options = ETHERNET_HEADER + IPV4_HEADER + TCP_HEADER;
        // A length of 0 stands for one that is too long for the field. It is less than that of the header, so it fails
        // here.
        let len = u32::from(len).checked_sub(IPV4_HEADER as u32)?;
        frame.transport.segment = segment(bytes, &array_at(&header, IPV4_HEADER), options, len)?;
        Some(frame)
    }

    #[inline(always)]
    fn parse_fast_v6(bytes: &(impl Bytes + ?Sized)) -> Option<Self> {
        let header: [u8; IPV6_HEADER + TCP_HEADER] = bytes.read(ETHERNET_HEADER)?;
        if header[0] >> 4 != 6 || header[6] != Segment::NUMBER {
            return None;
        }
        let len = u16::from_be_bytes(array_at(&header, 4));
        let traffic_class = header[0] << 4 | header[1] >> 4;
        let mut frame = Self { family: Family::V6, traffic_class, ..Self::COMMON };
        frame.source = IpAddress::from_bytes(array_at(&header, 8));
        frame.destination = IpAddress::from_bytes(array_at(&header, 24));
        let options = ETHERNET_HEADER + IPV6_HEADER + TCP_HEADER;
        frame.transport.segment = segment(bytes, &array_at(&header, IPV6_HEADER), options, u32::from(len))?;
        Some(frame)
    }

    /// Returns the traffic class of a frame of this family with a UDP datagram of the common form. If neither UDP nor
    /// tunnels are measured, [`Frame::parse`] would only find it to be [`super::Untracked::Unsupported`].
    #[inline(always)]
    pub fn parse_fast_udp<A: Address>(bytes: &(impl Bytes + ?Sized)) -> Option<u8> {
        match A::FAMILY {
            Family::V4 => {
                let header: [u8; IPV4_HEADER] = bytes.read(ETHERNET_HEADER)?;
                let len = u16::from_be_bytes(array_at(&header, 2));
                let fragment = u16::from_be_bytes(array_at(&header, 6));
                let is_common = header[0] == IPV4_START
                    && header[9] == Datagram::NUMBER
                    && fragment & FRAGMENT_OFFSET == 0
                    && usize::from(len) >= IPV4_HEADER;
                is_common.then_some(header[1])
            }
            Family::V6 => {
                let header: [u8; IPV6_HEADER] = bytes.read(ETHERNET_HEADER)?;
                let is_common = header[0] >> 4 == 6 && header[6] == Datagram::NUMBER;
                is_common.then_some(header[0] << 4 | header[1] >> 4)
            }
        }
    }

    /// Returns the address family of an Ethernet frame without tags; `None` if it is not IP.
    #[inline(always)]
    pub fn peek_family(bytes: &(impl Bytes + ?Sized)) -> Option<Family> {
        match u16::from_be_bytes(bytes.read(ETHERTYPE)?) {
            ETHERTYPE_IPV4 => Some(Family::V4),
            ETHERTYPE_IPV6 => Some(Family::V6),
            _ => None,
        }
    }

    /// Returns the protocol and the traffic class of a frame, as read from their usual offsets. It does not look behind
    /// VLAN tags, extension headers and the like.
    #[inline(always)]
    pub fn peek_protocol(bytes: &(impl Bytes + ?Sized), link: LinkType) -> (Protocol, u8) {
        let (start, version) = match link {
            LinkType::Ethernet => match Self::peek_family(bytes) {
                Some(Family::V4) => (ETHERNET_HEADER, 4),
                Some(Family::V6) => (ETHERNET_HEADER, 6),
                None => return (Protocol::NonIp, 0),
            },
            _ => (0, bytes.read(0).map_or(0, |[first, _]: [u8; 2]| first >> 4)),
        };
        let Some(header): Option<[u8; 10]> = bytes.read(start) else { return (Protocol::NonIp, 0) };
        match version {
            4 => (ip::name_v4(header[9]), header[1]),
            6 => (ip::name_v6(header[6]), header[0] << 4 | header[1] >> 4),
            _ => (Protocol::NonIp, 0),
        }
    }

    const COMMON: Self = Self { protocol: Protocol::Tcp, ..Self::EMPTY };

    /// Copies what matters of a frame that [`Frame::parse_fast`] parsed.
    #[inline(always)]
    pub fn copy_fast(&mut self, common: &Self) {
        self.source = common.source;
        self.destination = common.destination;
        self.family = common.family;
        self.protocol = common.protocol;
        self.traffic_class = common.traffic_class;
        self.transport.kind = Kind::Tcp;
        // Copied one by one: the kernel programs would copy the options byte by byte, though they do not matter.
        let (to, from) = (&mut self.transport.segment, &common.transport.segment);
        to.source_port = from.source_port;
        to.destination_port = from.destination_port;
        to.flags = from.flags;
        to.sequence = from.sequence;
        to.acknowledgement = from.acknowledgement;
        to.payload = from.payload;
        to.has_sack = from.has_sack;
        to.has_timestamps = from.has_timestamps;
        to.timestamps = from.timestamps;
    }
}

/// Parses a segment in the middle of a connection. It has `len` bytes including `header`; its options begin at offset
/// `options`.
#[inline(always)]
fn segment(
    bytes: &(impl Bytes + ?Sized),
    header: &[u8; TCP_HEADER],
    options: usize,
    len: u32,
) -> Option<Segment> {
    let words = header[12] >> 4;
    let has_timestamps = words == WITH_TIMESTAMPS;
    if header[13] & SYN_FIN_RST != 0 || !has_timestamps && words != WITHOUT_OPTIONS {
        return None;
    }
    let mut timestamps = Segment::EMPTY.timestamps;
    if has_timestamps {
        let options: [u8; TIMESTAMPS] = bytes.read(options)?;
        if array_at(&options, 0) != COMMON_OPTIONS {
            return None;
        }
        timestamps = Timestamps {
            tsval: u32::from_be_bytes(array_at(&options, 4)),
            tsecr: u32::from_be_bytes(array_at(&options, 8)),
        };
    }
    Some(Segment {
        source_port: u16::from_be_bytes(array_at(header, 0)),
        destination_port: u16::from_be_bytes(array_at(header, 2)),
        // The check above has made sure that these flags are 0. The mask tells the compiler.
        flags: TcpFlags(header[13] & !SYN_FIN_RST),
        sequence: u32::from_be_bytes(array_at(header, 4)),
        acknowledgement: u32::from_be_bytes(array_at(header, 8)),
        payload: len.checked_sub(u32::from(words) * 4)?,
        has_timestamps,
        timestamps,
        ..Segment::EMPTY
    })
}

const _: () = assert!(matches!(Transport::EMPTY.kind, Kind::Tcp));

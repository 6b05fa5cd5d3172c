//! A parsed frame.

use super::{
    address::{Family, IpAddress},
    protocol::{Kind, Protocol},
    transport::Transport,
    untracked::Untracked,
    vlan::Vlan,
};
use crate::bytes::Bytes;

/// No header begins this far into a frame. A link header with all tags and labels has at most 54 bytes, an IP header with
/// all its extensions 40 and 6 times 2048, and the header of a tunnel 8 of UDP and 4092 of GTP-U. The first two can occur
/// twice.
pub(super) const MAX_OFFSET: usize = 32_768;

/// A parsed frame. It is flat, and every field has a value from the start. Enums with payload would be more precise, but
/// they leave bytes undefined, which the verifier refuses to copy.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Source address.
    pub source: IpAddress,
    /// Destination address.
    pub destination: IpAddress,
    /// The transport header.
    pub transport: Transport,
    /// The offset of the IP header, bytes from the start of the frame.
    pub(super) network_offset: u32,
    /// The offset of the transport header.
    pub(super) transport_offset: u32,
    /// Bytes of transport header and payload, by the IP header.
    pub(super) transport_len: u32,
    /// The VLAN tags, outermost first.
    pub vlan: Vlan,
    /// The IP version.
    pub family: Family,
    /// The protocol to count the packet under.
    pub protocol: Protocol,
    /// Whether only its version says that an IP header is one. Behind MPLS labels it can as well be an Ethernet header
    /// whose destination address begins with a 4 or a 6.
    pub(super) is_guessed: bool,
    /// While the headers below IP are parsed, the ethertype of what begins at `network_offset`, or a greater number.
    pub(super) ethertype: u32,
    /// The IP protocol number that the IP header and its extensions announce.
    pub(super) next_header: u8,
    /// The IPv4 type of service or IPv6 traffic class byte (RFC 2474, RFC 3168); 0 if there is none.
    pub traffic_class: u8,
}

impl Frame {
    /// The words that identify a packet at a mirror port.
    pub const IDENTITY_WORDS: usize = 8;

    /// A frame that has not been parsed.
    pub const EMPTY: Self = Self {
        source: IpAddress([0; 2]),
        destination: IpAddress([0; 2]),
        transport: Transport::EMPTY,
        network_offset: 0,
        transport_offset: 0,
        transport_len: 0,
        vlan: Vlan::NONE,
        family: Family::V4,
        protocol: Protocol::NonIp,
        is_guessed: false,
        ethertype: 0,
        next_header: 0,
        traffic_class: 0,
    };

    /// Notes the ethertype and offset of a header below IP.
    #[inline(always)]
    pub(super) fn set_next_header_below_ip(&mut self, ethertype: u32, offset: usize) {
        self.ethertype = ethertype;
        self.network_offset = offset as u32;
    }

    /// The ethertype and offset that were written last.
    #[inline(always)]
    pub(super) fn next_header_below_ip<O: Bytes + ?Sized>(&self) -> (u32, usize) {
        (self.ethertype, O::bounded::<MAX_OFFSET>(self.network_offset as usize))
    }

    /// Notes the version and offset of the IP header.
    #[inline(always)]
    pub(super) fn set_network_header(&mut self, family: Family, offset: usize) {
        self.family = family;
        self.network_offset = offset as u32;
        self.is_guessed = false;
    }

    /// The frame from its transport header on, as far as it was captured. `bytes` is the frame that was parsed.
    pub fn transport_bytes<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(self.transport_offset as usize..).unwrap_or_default()
    }

    /// The identification of an IPv4 packet (RFC 791, 3.1); 0 for IPv6. `bytes` is the frame that was parsed.
    #[inline(always)]
    pub fn ipv4_identification<O: Bytes + ?Sized>(&self, bytes: &O) -> u16 {
        const OFFSET: usize = 4;
        if self.family != Family::V4 {
            return 0;
        }
        let id = bytes.read(O::bounded::<MAX_OFFSET>(self.network_offset as usize) + OFFSET);
        id.map_or(0, u16::from_be_bytes)
    }

    /// Writes down what identifies the packet that was parsed from `bytes` among those of an interface: addresses and ports, length,
    /// IPv4 identification, the numbers and timestamps of a segment, those of an echo, or the first 16 bytes in a datagram, of
    /// which a shorter one has fewer.
    #[inline(always)]
    pub(crate) fn identify<O: Bytes + ?Sized>(
        &self,
        bytes: &O,
        interface: u16,
        identity: &mut [u64; Self::IDENTITY_WORDS],
    ) {
        const UDP_HEADER: usize = 8;
        let both = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let Transport { kind, segment, echo, .. } = &self.transport;
        let (source_port, destination_port) = self.transport.ports();
        let (IpAddress([a, b]), IpAddress([c, d])) = (self.source, self.destination);
        let ports = both(source_port.into(), destination_port.into());
        let rest = self.transport.payload() | u32::from(self.transport.number()) << 24;
        let place = u32::from(interface) << 16 | u32::from(self.ipv4_identification(bytes));
        *identity = [a, b, c, d, ports, 0, 0, both(rest, place)];
        O::barrier_var(identity);
        let [.., first, second, _] = identity;
        match kind {
            Kind::Tcp => {
                let flags = u32::from(segment.flags.0) | u32::from(segment.has_timestamps) << 8;
                *first = both(segment.sequence, segment.acknowledgement ^ flags << 23);
                if segment.has_timestamps {
                    *second = both(segment.timestamps.tsval, segment.timestamps.tsecr);
                }
            }
            Kind::Echo => {
                *first = both(u32::from(echo.sequence) << 16 | u32::from(echo.data), echo.is_reply.into());
            }
            Kind::Dns | Kind::Quic => {
                let payload = self.transport_offset::<O>() + UDP_HEADER;
                *first = first_bytes(bytes, payload);
                *second = first_bytes(bytes, payload + 8);
            }
        }
        O::barrier_var(identity);
    }

    /// The offset of the transport header, with a bound that the verifier sees.
    #[inline(always)]
    pub(super) fn transport_offset<O: Bytes + ?Sized>(&self) -> usize {
        O::bounded::<MAX_OFFSET>(self.transport_offset as usize)
    }

    /// Notes the offset of the IP header. Its first four bits give the version.
    #[inline(always)]
    pub(super) fn set_network_header_by_version<O: Bytes + ?Sized>(
        &mut self,
        bytes: &O,
        offset: usize,
    ) -> Result<(), Untracked> {
        let [first, _] = bytes.read(offset).ok_or(Untracked::Truncated)?;
        match first >> 4 {
            4 => self.set_network_header(Family::V4, offset),
            6 => self.set_network_header(Family::V6, offset),
            _ => return Err(Untracked::NonIp),
        }
        Ok(())
    }
}

/// The eight bytes at an offset, or the first four if there are no more; 0 if there are not even those.
#[inline(always)]
fn first_bytes<O: Bytes + ?Sized>(bytes: &O, offset: usize) -> u64 {
    if let Some(eight) = bytes.read(offset) {
        return u64::from_be_bytes(eight);
    }
    bytes.read(offset).map_or(0, |four| u64::from(u32::from_be_bytes(four)) << 32)
}

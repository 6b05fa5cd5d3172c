//! From the octets of a frame to the flow it belongs to and the fields that matching needs.
//!
//! Every length and offset is the sender's word and is treated as such: a read that would leave the
//! frame ends the parse with a reason, loops are bounded, and nothing is believed that was not read.

mod icmp;
mod ip;
mod link;
mod tcp;

pub use icmp::Echo;
pub use ip::{Ipv4, Ipv6};
pub use link::{LinkType, Vlan};
pub use tcp::{Segment, TcpFlags, Timestamps};

use crate::{limits::MAX_VLAN_TAGS, octets::Octets};

/// What a packet carries, as far as counting goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Protocol {
    /// Not IPv4 and not IPv6: ARP, LLDP, an unknown ethertype.
    NonIp,
    /// IP with a payload that has no name here.
    Other,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP.
    Icmp,
    /// `ICMPv6`.
    Icmpv6,
}

impl Protocol {
    /// How many protocols are told apart, rounded up to a power of two.
    pub const PLACES: usize = 8;

    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 6] = [Self::NonIp, Self::Other, Self::Tcp, Self::Udp, Self::Icmp, Self::Icmpv6];
}

/// Why a packet's flow is not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Untracked {
    /// No IP packet.
    NonIp,
    /// A fragment other than the first, so without ports.
    Fragment,
    /// The frame ends inside a header.
    Truncated,
    /// A header contradicts itself: a version, a header length or a data offset that cannot be.
    Malformed,
    /// Nothing here measures this: another protocol, an ICMP message other than echo, more VLAN tags or
    /// extension headers than are followed.
    Unsupported,
    /// TCP without timestamps.
    NoTimestamp,
    /// The flow would be new, but its packet is none that begins one: an echo reply, a RST.
    NoFlow,
    /// The flow would be new, but the flow map is full.
    MapFull,
}

impl Untracked {
    /// How many reasons are told apart, rounded up to a power of two.
    pub const PLACES: usize = 8;

    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::NonIp,
        Self::Fragment,
        Self::Truncated,
        Self::Malformed,
        Self::Unsupported,
        Self::NoTimestamp,
        Self::NoFlow,
        Self::MapFull,
    ];
}

/// A frame, taken apart.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The VLAN tags, outermost first.
    pub vlan: Vlan,
    /// What to count it as.
    pub protocol: Protocol,
    /// The IPv4 type of service or IPv6 traffic class octet (RFC 2474, RFC 3168); 0 where there is none.
    pub traffic_class: u8,
    /// The flow's addresses and the transport header, or why they are of no use.
    pub network: Result<Network, Untracked>,
}

/// An IP packet of either version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// IPv4.
    V4(Packet<Ipv4>),
    /// IPv6.
    V6(Packet<Ipv6>),
}

/// The addresses and transport header of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<A> {
    /// Source address.
    pub source: A,
    /// Destination address.
    pub destination: A,
    /// The transport header.
    pub transport: Transport,
}

/// A transport header that something can be measured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A TCP segment.
    Tcp(Segment),
    /// An ICMP or `ICMPv6` echo request or reply.
    Echo(Echo),
}

impl Transport {
    /// IP protocol number, with which the two kinds of echo are told apart by their addresses.
    #[inline(always)]
    pub fn number(&self) -> u8 {
        match self {
            Self::Tcp(_) => ip::TCP,
            Self::Echo(_) => ip::ICMP,
        }
    }

    /// Source and destination port; both are the identifier of an echo.
    #[inline(always)]
    pub fn ports(&self) -> (u16, u16) {
        match self {
            Self::Tcp(segment) => (segment.source_port, segment.destination_port),
            Self::Echo(echo) => (echo.id, echo.id),
        }
    }

    /// Octets carried above the transport header.
    #[inline(always)]
    pub fn payload(&self) -> u32 {
        match self {
            Self::Tcp(segment) => segment.payload,
            Self::Echo(echo) => echo.payload,
        }
    }

    /// Whether a flow may begin with this packet: one that leads to a sample sooner or later.
    #[inline(always)]
    pub fn begins_flow(&self) -> Result<(), Untracked> {
        match self {
            Self::Tcp(segment) if segment.flags.rst() => Err(Untracked::NoFlow),
            Self::Tcp(segment) if segment.timestamps.is_none() => Err(Untracked::NoTimestamp),
            Self::Echo(echo) if echo.is_reply => Err(Untracked::NoFlow),
            Self::Tcp(_) | Self::Echo(_) => Ok(()),
        }
    }
}

impl Frame {
    /// Takes a frame apart. `offloaded_tag` is a VLAN identifier that the device has already taken out of
    /// the frame (`skb->vlan_tci`).
    #[inline(always)]
    pub fn parse<O: Octets + ?Sized>(octets: &O, link: LinkType, offloaded_tag: Option<u16>) -> Self {
        let mut frame = Self {
            vlan: Vlan { tags: [0; MAX_VLAN_TAGS], count: 0 },
            protocol: Protocol::NonIp,
            traffic_class: 0,
            network: Err(Untracked::NonIp),
        };
        if let Some(tag) = offloaded_tag {
            frame.vlan.push(tag);
        }
        frame.network = match link::parse(octets, link, &mut frame.vlan) {
            Ok((link::Network::Ipv4, offset)) => ip::parse_v4(octets, offset, &mut frame).map(Network::V4),
            Ok((link::Network::Ipv6, offset)) => ip::parse_v6(octets, offset, &mut frame).map(Network::V6),
            Err(reason) => Err(reason),
        };
        frame
    }
}

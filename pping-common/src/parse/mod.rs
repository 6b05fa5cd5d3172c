//! From the bytes of a frame to the flow it belongs to and the fields that matching needs.
//!
//! Every length and offset is the sender's word and is treated as such: a read that would leave the
//! frame ends the parse with a reason, loops are bounded, and nothing is believed that was not read.

mod address;
mod class;
mod dns;
mod fast_path;
mod icmp;
mod ip;
mod link;
mod options;
mod quic;
mod scope;
mod tcp;
#[cfg(test)]
mod tests;
mod tunnel;
mod udp;

pub use address::{Address, Family, IpAddress, Ipv4, Ipv6};
pub use class::{Direction, Protocol, Untracked};
pub use dns::Dns;
pub use icmp::Echo;
pub use link::{LinkType, Vlan};
pub use quic::{Quic, QuicForm};
pub use scope::Scope;
pub use tcp::{Segment, TcpFlags, Timestamps};
pub use tunnel::Decap;
pub use udp::Datagram;

use crate::{
    bytes::Bytes,
    method::{Method, Methods},
};

/// No header begins so far into a frame. A link header with all tags and labels is at most 54 bytes, an IP header
/// with all its extensions 40 and 6 of 2048, and the header of a tunnel 8 of UDP and 4092 of GTP-U; the first two
/// can be there twice.
const MAX_OFFSET: usize = 32_768;

/// A frame, taken apart: flat, and every field has a value from the start. Enums that carry their
/// payload would say more, but they leave bytes undefined, and the verifier refuses to copy those.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Source address.
    pub source: IpAddress,
    /// Destination address.
    pub destination: IpAddress,
    /// The transport header.
    pub transport: Transport,
    /// Where the IP header begins, in bytes from the start of the frame.
    network_offset: u32,
    /// Where the transport header begins.
    transport_offset: u32,
    /// Bytes of transport header and payload, by the IP header.
    transport_len: u32,
    /// The VLAN tags, outermost first.
    pub vlan: Vlan,
    /// The IP version.
    pub family: Family,
    /// What to count it as.
    pub protocol: Protocol,
    /// The IP protocol number of what is behind the IP header and its extensions.
    next_header: u8,
    /// The IPv4 type of service or IPv6 traffic class byte (RFC 2474, RFC 3168); 0 where there is none.
    pub traffic_class: u8,
}

/// A transport header that something can be measured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// Which of the others means something.
    pub kind: Kind,
    /// The TCP segment.
    pub segment: Segment,
    /// The ICMP or `ICMPv6` echo.
    pub echo: Echo,
    /// The UDP datagram.
    pub datagram: Datagram,
}

/// What a transport header is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A TCP segment.
    Tcp,
    /// An echo request or reply.
    Echo,
    /// A DNS message. It belongs to no flow.
    Dns,
    /// What may be a QUIC packet.
    Quic,
}

impl Transport {
    pub(crate) const EMPTY: Self =
        Self { kind: Kind::Tcp, segment: Segment::EMPTY, echo: Echo::EMPTY, datagram: Datagram::EMPTY };

    /// IP protocol number; that of ICMP for echoes of both families, whose addresses tell them apart.
    #[inline(always)]
    pub fn number(&self) -> u8 {
        match self.kind {
            Kind::Tcp => ip::TCP,
            Kind::Echo => ip::ICMP,
            Kind::Dns | Kind::Quic => ip::UDP,
        }
    }

    /// Source and destination port; both are the identifier of an echo.
    #[inline(always)]
    pub fn ports(&self) -> (u16, u16) {
        match self.kind {
            Kind::Tcp => (self.segment.source_port, self.segment.destination_port),
            Kind::Echo => (self.echo.id, self.echo.id),
            Kind::Dns | Kind::Quic => (self.datagram.source_port, self.datagram.destination_port),
        }
    }

    /// Bytes carried above the transport header.
    #[inline(always)]
    pub fn payload(&self) -> u32 {
        match self.kind {
            Kind::Tcp => self.segment.payload,
            Kind::Echo => self.echo.payload,
            Kind::Dns | Kind::Quic => self.datagram.payload,
        }
    }

    /// Whether a flow may begin with this packet: one that leads to a sample sooner or later.
    #[inline(always)]
    pub fn begins_flow(&self, methods: Methods) -> Result<(), Untracked> {
        match self.kind {
            Kind::Tcp => self.segment.begins_flow(methods),
            Kind::Echo if self.echo.is_reply => Err(Untracked::NoFlow),
            Kind::Echo => Ok(()),
            Kind::Quic if matches!(self.datagram.quic.form, QuicForm::Long | QuicForm::Initial) => Ok(()),
            Kind::Quic | Kind::Dns => Err(Untracked::NoFlow),
        }
    }
}

impl Frame {
    /// A frame of which nothing is known yet.
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
        next_header: 0,
        traffic_class: 0,
    };

    /// Takes a frame apart. `vlan` are the tags that the device has already taken out of it, `decap` the tunnels
    /// of which the inside is measured, and `scope` says what of that.
    ///
    /// # Errors
    /// Why it has no flow that can be measured; what was found up to there is filled in.
    #[inline(always)]
    pub fn parse<O: Bytes + ?Sized>(
        &mut self,
        bytes: &O,
        link: LinkType,
        vlan: Vlan,
        decap: Decap,
        scope: &Scope,
    ) -> Result<(), Untracked> {
        self.parse_link(bytes, link, vlan)?;
        self.parse_network(bytes)?;
        if self.enter_tunnel(bytes, decap)? {
            self.parse_network(bytes)?;
            self.refuse_tunnel(bytes, decap)?;
        }
        self.parse_transport(bytes, scope)
    }

    /// The first step of [`Frame::parse`]: down to the IP header.
    #[inline(always)]
    pub fn parse_link<O: Bytes + ?Sized>(
        &mut self,
        bytes: &O,
        link: LinkType,
        vlan: Vlan,
    ) -> Result<(), Untracked> {
        // All that the rest may leave as it was. One by one: a whole frame at once would be cleared byte
        // by byte in the kernel.
        self.vlan = vlan;
        self.protocol = Protocol::NonIp;
        self.traffic_class = 0;
        self.transport.segment.has_timestamps = false;
        self.transport.segment.has_sack = false;
        link::parse(bytes, link, self)
    }

    /// The second step: the IP header, and its extension headers.
    #[inline(always)]
    pub fn parse_network<O: Bytes + ?Sized>(&mut self, bytes: &O) -> Result<(), Untracked> {
        let offset = O::below::<MAX_OFFSET>(self.network_offset as usize);
        match self.family {
            Family::V4 => ip::parse_v4(bytes, offset, self),
            Family::V6 => ip::parse_v6(bytes, offset, self),
        }
    }

    /// The third step, where there are tunnels to be looked into: if the packet is of one, goes on to the IP
    /// header inside, and the second step is due again.
    #[inline(always)]
    pub fn enter_tunnel<O: Bytes + ?Sized>(&mut self, bytes: &O, decap: Decap) -> Result<bool, Untracked> {
        if decap == Decap::NONE {
            return Ok(false);
        }
        tunnel::enter(bytes, self, decap)
    }

    /// After a tunnel was entered: one is enough.
    #[inline(always)]
    pub fn refuse_tunnel<O: Bytes + ?Sized>(&self, bytes: &O, decap: Decap) -> Result<(), Untracked> {
        if tunnel::is_tunnel(bytes, self, decap)? { Err(Untracked::NestedTunnel) } else { Ok(()) }
    }

    /// The last step: the transport header.
    #[inline(always)]
    pub fn parse_transport<O: Bytes + ?Sized>(&mut self, bytes: &O, scope: &Scope) -> Result<(), Untracked> {
        let offset = self.transport_offset::<O>();
        let len = self.transport_len as usize;
        let transport = &mut self.transport;
        let methods = scope.methods;
        match self.protocol {
            Protocol::Tcp if methods.has_tcp() => tcp::parse(bytes, offset, len, transport),
            Protocol::Udp => udp::parse(bytes, offset, len, scope, transport),
            Protocol::Icmp if methods.has(Method::IcmpEcho) => icmp::parse_v4(bytes, offset, len, transport),
            Protocol::Icmpv6 if methods.has(Method::IcmpEcho) => {
                icmp::parse_v6(bytes, offset, len, transport)
            }
            _ => Err(Untracked::Unsupported),
        }
    }

    /// Puts down where the IP header is.
    #[inline(always)]
    fn found(&mut self, family: Family, offset: usize) {
        self.family = family;
        self.network_offset = offset as u32;
    }

    /// Where the transport header is, so that the verifier knows how far that can be.
    #[inline(always)]
    fn transport_offset<O: Bytes + ?Sized>(&self) -> usize {
        O::below::<MAX_OFFSET>(self.transport_offset as usize)
    }
}

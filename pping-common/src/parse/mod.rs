//! Parsing: from the bytes of a frame to its flow and to the fields that matching needs.
//!
//! Lengths and offsets come from the sender and are not trusted. A read beyond the frame ends the parse with a reason,
//! loops are bounded, and nothing is assumed that was not read.

mod address;
mod direction;
mod dns;
mod fast_path;
mod frame;
mod icmp;
mod ip;
mod link;
mod options;
mod packet_id;
mod protocol;
mod quic;
mod scope;
mod tcp;
#[cfg(test)]
mod tests;
mod transport;
mod tunnel;
mod udp;
mod untracked;
mod vlan;

pub use address::{Address, Family, IpAddress, Ipv4, Ipv6};
pub use direction::Direction;
pub use dns::Dns;
pub use frame::Frame;
pub use icmp::Echo;
pub use link::LinkType;
#[doc(hidden)]
pub use packet_id::PacketId;
pub use protocol::{Kind, Protocol};
pub use quic::{Quic, QuicForm};
pub use scope::Scope;
pub use tcp::{Segment, TcpFlags, Timestamps};
pub use transport::Transport;
pub use tunnel::Decap;
pub use udp::Datagram;
pub use untracked::Untracked;
pub use vlan::Vlan;

use frame::MAX_OFFSET;

use crate::{bytes::Bytes, method::Method};

impl Frame {
    /// Parses a frame. `vlan` has the tags that the device has already removed from it, `decap` the tunnels to enter, and
    /// `scope` the packets to measure.
    ///
    /// # Errors
    /// If the frame has no flow that can be measured: returns the reason. Fields found before that are filled in.
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
            self.reject_nested_tunnel(bytes, decap)?;
        }
        self.parse_transport(bytes, scope)
    }

    /// Runs the first step of [`Frame::parse`]: down to the IP header.
    #[inline(always)]
    pub fn parse_link<O: Bytes + ?Sized>(
        &mut self,
        bytes: &O,
        link: LinkType,
        vlan: Vlan,
    ) -> Result<(), Untracked> {
        // These are all fields that later steps may leave as they were. They are cleared one by one: the kernel programs
        // would clear a whole frame byte by byte.
        self.vlan = vlan;
        self.protocol = Protocol::NonIp;
        self.traffic_class = 0;
        self.transport.segment.has_timestamps = false;
        self.transport.segment.has_sack = false;
        self.transport.segment.window_scale = 0;
        link::parse(bytes, link, self)
    }

    /// Runs the second step: the IP header and its extension headers.
    #[inline(always)]
    pub fn parse_network<O: Bytes + ?Sized>(&mut self, bytes: &O) -> Result<(), Untracked> {
        let offset = O::bounded::<MAX_OFFSET>(self.network_offset as usize);
        if self.is_guessed && !ip::is_plausible(bytes, offset, self.family)? {
            return Err(Untracked::NonIp);
        }
        match self.family {
            Family::V4 => ip::parse_v4(bytes, offset, self),
            Family::V6 => ip::parse_v6(bytes, offset, self),
        }
    }

    /// Runs the third step: if the packet belongs to a tunnel in `decap`, goes on to the inner IP header. Returns true if
    /// it did, so that the second step must run again.
    #[inline(always)]
    pub fn enter_tunnel<O: Bytes + ?Sized>(&mut self, bytes: &O, decap: Decap) -> Result<bool, Untracked> {
        if decap == Decap::NONE {
            return Ok(false);
        }
        tunnel::enter(bytes, self, decap)
    }

    /// Rejects a tunnel inside the tunnel that was entered.
    #[inline(always)]
    pub fn reject_nested_tunnel<O: Bytes + ?Sized>(&self, bytes: &O, decap: Decap) -> Result<(), Untracked> {
        if tunnel::is_tunnel(bytes, self, decap)? { Err(Untracked::NestedTunnel) } else { Ok(()) }
    }

    /// The kinds of tunnel outside of `decap` that the frame is one of, if it was parsed down to the transport header and
    /// something that can be measured is inside. `bytes` is that frame.
    pub fn unopened_tunnel(&self, bytes: &[u8], decap: Decap) -> Option<Decap> {
        if !matches!(self.protocol, Protocol::Udp | Protocol::Other) {
            return None;
        }
        Decap::EACH.into_iter().filter(|&kind| !decap.has(kind)).find(|&kind| {
            let mut inside = *self;
            inside.enter_tunnel(bytes, kind) == Ok(true) && inside.parse_network(bytes).is_ok()
        })
    }

    /// Runs the last step: the transport header.
    #[inline(always)]
    pub fn parse_transport<O: Bytes + ?Sized>(&mut self, bytes: &O, scope: &Scope) -> Result<(), Untracked> {
        let offset = self.transport_offset::<O>();
        let len = self.transport_len as usize;
        let transport = &mut self.transport;
        let methods = scope.methods;
        match self.protocol {
            Protocol::Tcp if methods.has_tcp() => {
                transport.kind = Kind::Tcp;
                tcp::parse(bytes, offset, len, &mut transport.segment)
            }
            Protocol::Udp => {
                udp::parse(bytes, offset, len, scope, &mut transport.kind, &mut transport.datagram)
            }
            Protocol::Icmp if methods.has(Method::IcmpEcho) => {
                transport.kind = Kind::Echo;
                icmp::parse_v4(bytes, offset, len, &mut transport.echo)
            }
            Protocol::Icmpv6 if methods.has(Method::IcmpEcho) => {
                transport.kind = Kind::Echo;
                icmp::parse_v6(bytes, offset, len, &mut transport.echo)
            }
            _ => Err(Untracked::Unsupported),
        }
    }
}

//! From the bytes of a frame to the flow it belongs to and the fields that matching needs.
//!
//! Every length and offset is the sender's word and is treated as such: a read that would leave the
//! frame ends the parse with a reason, loops are bounded, and nothing is believed that was not read.

mod address;
mod class;
mod dns;
mod fast_path;
mod frame;
mod icmp;
mod ip;
mod link;
mod options;
mod quic;
mod scope;
mod tcp;
#[cfg(test)]
mod tests;
mod transport;
mod tunnel;
mod udp;
mod vlan;

pub use address::{Address, Family, IpAddress, Ipv4, Ipv6};
pub use class::{Direction, Kind, Protocol, Untracked};
pub use dns::Dns;
pub use frame::Frame;
pub use icmp::Echo;
pub use link::LinkType;
pub use quic::{Quic, QuicForm};
pub use scope::Scope;
pub use tcp::{Segment, TcpFlags, Timestamps};
pub use transport::Transport;
pub use tunnel::Decap;
pub use udp::Datagram;
pub use vlan::Vlan;

use frame::MAX_OFFSET;

use crate::{bytes::Bytes, method::Method};

impl Frame {
    /// Parses a frame. `vlan` are the tags that the device has already taken out of it, `decap` the tunnels to look into, and `scope`
    /// says which packets are measured.
    ///
    /// # Errors
    /// The reason why the frame has no flow that can be measured. Fields that were found before are filled in.
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

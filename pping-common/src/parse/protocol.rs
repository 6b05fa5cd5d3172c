//! Protocols, and the kinds of transport headers.

use crate::layout::numbered;

/// IP protocol numbers.
pub(super) const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const ICMPV6: u8 = 58;

/// The kind of a transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A TCP segment.
    Tcp,
    /// An echo request or reply.
    Echo,
    /// A DNS message. It belongs to no flow.
    Dns,
    /// A datagram that may be a QUIC packet.
    Quic,
}

numbered! {
    /// The protocol that a packet is counted under.
    pub enum Protocol {
        /// Not IPv4 and not IPv6: ARP, LLDP, an unknown ethertype.
        NonIp,
        /// IP with any other payload.
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
}

//! The name of a flow.

use crate::parse::{Ipv4, Ipv6, Protocol, Transport};

/// An endpoint's address, of either family.
pub trait Address: Copy + Ord {
    /// How an echo over this family is counted.
    const ECHO: Protocol;

    /// The address as 16 octets, an IPv4 address mapped (RFC 4291, 2.5.5.2).
    fn to_octets(self) -> [u8; 16];

    /// Whether the address always means the host itself.
    fn is_loopback(self) -> bool;
}

impl Address for Ipv4 {
    const ECHO: Protocol = Protocol::Icmp;

    #[inline(always)]
    fn to_octets(self) -> [u8; 16] {
        let [a, b, c, d] = self.0.to_be_bytes();
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d]
    }

    #[inline(always)]
    fn is_loopback(self) -> bool {
        self.0 >> 24 == 127
    }
}

impl Address for Ipv6 {
    const ECHO: Protocol = Protocol::Icmpv6;

    #[inline(always)]
    fn to_octets(self) -> [u8; 16] {
        let [high, low] = self.0;
        (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
    }

    #[inline(always)]
    fn is_loopback(self) -> bool {
        self.0 == [0, 1]
    }
}

/// One of a flow's two endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Side {
    /// The one with the lower (address, port).
    Low,
    /// The one with the higher.
    High,
}

impl Side {
    /// The endpoint across.
    #[inline(always)]
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Low => Self::High,
            Self::High => Self::Low,
        }
    }
}

/// The name of a flow: interface, protocol and both endpoints in canonical order, so that the packets of
/// both directions find the same entry. Small, since the cost of hashing follows its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct FlowKey<A> {
    /// The lower endpoint's address.
    pub low: A,
    /// The higher endpoint's address.
    pub high: A,
    /// The lower endpoint's port.
    pub low_port: u16,
    /// The higher endpoint's port.
    pub high_port: u16,
    /// The interface's place in the table of monitored interfaces.
    pub interface: u16,
    /// IP protocol number; 1 for echoes of both families.
    pub protocol: u8,
    /// Keeps every octet of the key defined: the kernel hashes them all.
    pub zero: u8,
}

impl<A: Address> FlowKey<A> {
    /// The flow of a packet, and which side sent it.
    #[inline(always)]
    pub fn new(interface: u16, source: A, destination: A, transport: &Transport) -> (Self, Side) {
        let (source_port, destination_port) = transport.ports();
        let from = if source != destination {
            if source < destination { Side::Low } else { Side::High }
        } else if source_port != destination_port {
            if source_port < destination_port { Side::Low } else { Side::High }
        } else {
            // A host that pings itself: only the kind of message tells the two directions apart.
            match transport {
                Transport::Echo(echo) if echo.is_reply => Side::High,
                Transport::Echo(_) | Transport::Tcp(_) => Side::Low,
            }
        };
        let (low, high, low_port, high_port) = match from {
            Side::Low => (source, destination, source_port, destination_port),
            Side::High => (destination, source, destination_port, source_port),
        };
        (Self { low, high, low_port, high_port, interface, protocol: transport.number(), zero: 0 }, from)
    }
}

const _: () = {
    assert!(size_of::<FlowKey<Ipv4>>() == 16);
    assert!(size_of::<FlowKey<Ipv6>>() == 40);
    assert!(core::mem::offset_of!(FlowKey<Ipv4>, interface) == 12);
    assert!(core::mem::offset_of!(FlowKey<Ipv6>, interface) == 36);
};

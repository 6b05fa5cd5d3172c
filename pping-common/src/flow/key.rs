//! The name of a flow.

use core::cmp::Ordering;

use crate::{
    bytes::{in_memory, mix},
    layout::layout,
    parse::{Address, Frame, Ipv4, Ipv6, Kind},
};

/// One of a flow's two endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Endpoint {
    /// The one with the lower (address, port).
    Low,
    /// The one with the higher.
    High,
}

impl Endpoint {
    /// The endpoint across.
    #[inline(always)]
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Low => Self::High,
            Self::High => Self::Low,
        }
    }

    /// Its own of two things.
    #[inline(always)]
    pub fn pick<T>(self, low: T, high: T) -> T {
        match self {
            Self::Low => low,
            Self::High => high,
        }
    }
}

/// The name of a flow: interface, protocol and both endpoints in canonical order, so that the packets of
/// both directions find the same entry. Small, since the cost of hashing follows its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C, align(8))]
pub struct FlowKey<A> {
    /// The lower endpoint's address.
    pub low: A,
    /// The higher endpoint's address.
    pub high: A,
    /// The lower endpoint's port.
    pub low_port: u16,
    /// The higher endpoint's port.
    pub high_port: u16,
    /// The interface id.
    pub interface: u16,
    /// IP protocol number; 1 for echoes of both families.
    pub protocol: u8,
    /// Keeps every byte of the key defined: the kernel hashes them all.
    pub zero: u8,
}

layout!(FlowKey<A> { low, high, low_port, high_port, interface, protocol, zero });

impl<A: Address> FlowKey<A> {
    /// The flow of a packet, and the endpoint that sent it.
    #[inline(always)]
    pub fn new(interface: u16, frame: &Frame) -> (Self, Endpoint) {
        let transport = &frame.transport;
        let (source_port, destination_port) = transport.ports();
        // A host that pings itself: only the kind of message tells the two directions apart.
        let is_self_reply = transport.kind == Kind::Echo && transport.echo.is_reply;
        let from = match frame.source.cmp(&frame.destination).then(source_port.cmp(&destination_port)) {
            Ordering::Greater => Endpoint::High,
            Ordering::Equal if is_self_reply => Endpoint::High,
            Ordering::Equal | Ordering::Less => Endpoint::Low,
        };
        let (source, destination) = (A::of(frame.source), A::of(frame.destination));
        let (low, high, low_port, high_port) = match from {
            Endpoint::Low => (source, destination, source_port, destination_port),
            Endpoint::High => (destination, source, destination_port, source_port),
        };
        (Self { low, high, low_port, high_port, interface, protocol: transport.number(), zero: 0 }, from)
    }

    /// A hash of it: the better half is the high one.
    #[inline(always)]
    pub(crate) fn hash(&self, seed: u64) -> u64 {
        let (addresses, rest) = self.words();
        let mut hash = mix(seed, rest);
        for word in &addresses[..A::WORDS] {
            hash = mix(hash, *word);
        }
        mix(hash, 0)
    }

    /// Whether it is the key that `memory` gives the words of, by their numbers: the last one first, which differs most.
    // Word by word: a comparison of slices may become one of bytes.
    #[inline(always)]
    pub fn is_in(&self, memory: impl Fn(usize) -> u64) -> bool {
        let (addresses, rest) = self.words();
        memory(A::WORDS) == rest && (0..A::WORDS).all(|word| memory(word) == addresses[word])
    }

    /// It in words of memory: the addresses, and what comes behind them.
    #[inline(always)]
    fn words(&self) -> ([u64; 4], u64) {
        let rest = in_memory(&[
            (self.low_port.into(), 16),
            (self.high_port.into(), 16),
            (self.interface.into(), 16),
            (self.protocol.into(), 8),
            (self.zero.into(), 8),
        ]);
        (A::words(self.low, self.high), rest)
    }
}

const _: () = {
    assert!(size_of::<FlowKey<Ipv4>>() == 16);
    assert!(size_of::<FlowKey<Ipv6>>() == 40);
    assert!(core::mem::offset_of!(FlowKey<Ipv4>, interface) == 12);
    assert!(core::mem::offset_of!(FlowKey<Ipv6>, interface) == 36);
};

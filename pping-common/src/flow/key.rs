//! The key of a flow.

use crate::{
    bytes::pack,
    hash::TableKeys,
    layout::layout,
    parse::{Address, Family, Frame, Ipv4, Ipv6, Kind},
};

/// One of a flow's two endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Endpoint {
    /// The endpoint with the lower (address, port).
    Low,
    /// The endpoint with the higher (address, port).
    High,
}

impl Endpoint {
    /// The other endpoint.
    #[inline(always)]
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Low => Self::High,
            Self::High => Self::Low,
        }
    }

    /// Calls a function for each endpoint. Not in a loop, where the verifier would not know which endpoint it is.
    #[inline(always)]
    pub fn each(mut call: impl FnMut(Self)) {
        call(Self::Low);
        call(Self::High);
    }

    /// Returns this endpoint's element of a pair. It indexes instead of choosing: with a choice, the verifier would
    /// follow each endpoint separately.
    #[inline(always)]
    pub fn of<T>(self, both: &[T; 2]) -> &T {
        &both[self as usize]
    }

    /// The same, mutable.
    #[inline(always)]
    pub fn of_mut<T>(self, both: &mut [T; 2]) -> &mut T {
        &mut both[self as usize]
    }

    /// Returns the value of this endpoint.
    #[inline(always)]
    pub fn pick<T>(self, low: T, high: T) -> T {
        match self {
            Self::Low => low,
            Self::High => high,
        }
    }
}

/// The key of a flow: interface, protocol and both endpoints in canonical order, so that packets of both directions find
/// the same entry. It is small, because a longer key takes longer to hash.
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
    /// Makes every byte of the key defined, because the kernel hashes all of them.
    pub zero: u8,
}

layout!(FlowKey<A> { low, high, low_port, high_port, interface, protocol, zero });

impl<A: Address> FlowKey<A> {
    /// Returns the key of a packet's flow, and the endpoint that sent the packet.
    #[inline(always)]
    pub fn new(interface: u16, frame: &Frame) -> (Self, Endpoint) {
        let transport = &frame.transport;
        let (source_port, destination_port) = transport.ports();
        // If a host pings itself, only the kind of message distinguishes the two directions.
        let is_self_reply = transport.kind == Kind::Echo && transport.echo.is_reply;
        let (source, destination) = (A::of(frame.source), A::of(frame.destination));
        let is_high = A::is_below((destination, destination_port), (source, source_port));
        let mask = is_high.wrapping_neg();
        let (low, high) = A::exchange(source, destination, mask);
        let change = (source_port ^ destination_port) & mask as u16;
        let (low_port, high_port) = (source_port ^ change, destination_port ^ change);
        let is_high = is_high != 0 || is_self_reply && frame.source == frame.destination;
        let from = if is_high { Endpoint::High } else { Endpoint::Low };
        (Self { low, high, low_port, high_port, interface, protocol: transport.number(), zero: 0 }, from)
    }

    /// Returns a digest of the key.
    #[inline(always)]
    pub(crate) fn digest(&self, keys: &TableKeys) -> u64 {
        let ([a, b, c, d], rest) = self.words();
        match A::FAMILY {
            Family::V4 => keys.digest([a, rest]),
            Family::V6 => keys.digest([a, b, c, d, rest]),
        }
    }

    /// Whether `memory`, which returns words by their number, has this key. The last word is compared first, because it
    /// differs most.
    // Compared word by word: the compiler may turn a comparison of slices into one of bytes.
    #[inline(always)]
    pub fn is_in(&self, memory: impl Fn(usize) -> u64) -> bool {
        let (addresses, rest) = self.words();
        memory(A::WORDS) == rest && (0..A::WORDS).all(|word| memory(word) == addresses[word])
    }

    /// Returns the key as words of memory: the addresses, and the rest.
    #[inline(always)]
    fn words(&self) -> ([u64; 4], u64) {
        let rest = pack(&[
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

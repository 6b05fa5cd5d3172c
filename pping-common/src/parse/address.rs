//! IP addresses, as they are parsed and as they are in keys.

use super::protocol::Protocol;
use crate::{
    bytes::pack,
    layout::{layout, listed},
};

listed! {
    /// An IP version.
    pub enum Family {
        /// IPv4.
        V4,
        /// IPv6.
        V6,
    }
}

/// An IP address in two halves, the first byte the most significant of the first half. An IPv4 address
/// is mapped into IPv6 (RFC 4291, 2.5.5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct IpAddress(pub [u64; 2]);

layout!(IpAddress { 0 });

impl IpAddress {
    /// Maps an IPv4 address.
    #[inline(always)]
    pub fn mapped(bytes: [u8; 4]) -> Self {
        Self([0, 0xffff << 32 | u64::from(u32::from_be_bytes(bytes))])
    }

    /// Returns the address as 16 bytes.
    #[inline(always)]
    pub fn to_bytes(self) -> [u8; 16] {
        let [high, low] = self.0;
        (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
    }

    /// Returns the address with these bytes.
    #[inline(always)]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let number = u128::from_be_bytes(bytes);
        Self([(number >> 64) as u64, number as u64])
    }

    /// Whether it is an IPv4 address.
    #[inline(always)]
    pub fn is_mapped(self) -> bool {
        let [high, low] = self.0;
        high == 0 && low >> 32 == 0xffff
    }

    /// Returns the first `len` of the 128 bits, with the others 0.
    #[inline(always)]
    #[must_use]
    pub fn prefix(self, len: u8) -> Self {
        let [high, low] = self.0;
        match len {
            0 => Self([0; 2]),
            1..=63 => Self([high & !(u64::MAX >> len), 0]),
            64 => Self([high, 0]),
            65..=127 => Self([high, low & !(u64::MAX >> (len - 64))]),
            _ => self,
        }
    }

    /// Whether the address always means the host itself.
    #[inline(always)]
    pub fn is_loopback(self) -> bool {
        let [high, low] = self.0;
        high == 0 && (low == 1 || low >> 24 == 0x00ff_ff7f)
    }
}

/// An endpoint's address in a flow key.
pub trait Address: Copy {
    /// The family of the address.
    const FAMILY: Family;

    /// The protocol of echoes between addresses of this family.
    const ECHO: Protocol;

    /// Returns the part of an address that differs within its family.
    fn of(address: IpAddress) -> Self;

    /// Returns the whole address.
    fn to_address(self) -> IpAddress;

    /// Returns two addresses as words of memory, as a key has them: the first [`Address::WORDS`].
    fn words(low: Self, high: Self) -> [u64; 4];

    /// The number of words that two addresses take.
    const WORDS: usize;

    /// Returns 1 if the first (address, port) is lower than the second, else 0. It uses no comparison: the verifier would
    /// follow all later code once per outcome, and a processor would have to guess the branch.
    fn is_below(first: (Self, u16), second: (Self, u16)) -> u64;

    /// Exchanges the two if every bit of `mask` is set, and leaves them if none is.
    fn exchange(first: Self, second: Self, mask: u64) -> (Self, Self);
}

/// An IPv4 address in a flow key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Ipv4(u32);

layout!(Ipv4 { 0 });

/// An IPv6 address in a flow key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Ipv6(IpAddress);

layout!(Ipv6 { 0 });

impl Ipv4 {
    /// All zeros.
    pub const ZERO: Self = Self(0);
}

impl Ipv6 {
    /// All zeros.
    pub const ZERO: Self = Self(IpAddress([0; 2]));
}

/// Returns what subtracting one digit from another borrows from the digit above, 0 or 1. `below` is what the digit below
/// borrows (Warren, "Hacker's Delight", 2-13).
#[inline(always)]
fn borrow(first: u64, second: u64, below: u64) -> u64 {
    let difference = first.wrapping_sub(second).wrapping_sub(below);
    (!first & second | (!first | second) & difference) >> 63
}

impl Address for Ipv4 {
    const FAMILY: Family = Family::V4;
    const ECHO: Protocol = Protocol::Icmp;

    #[inline(always)]
    fn of(IpAddress([_, low]): IpAddress) -> Self {
        Self(low as u32)
    }

    #[inline(always)]
    fn to_address(self) -> IpAddress {
        IpAddress([0, 0xffff << 32 | u64::from(self.0)])
    }

    #[inline(always)]
    fn words(low: Self, high: Self) -> [u64; 4] {
        [pack(&[(low.0.into(), 32), (high.0.into(), 32)]), 0, 0, 0]
    }

    const WORDS: usize = 1;

    #[inline(always)]
    fn is_below((first, first_port): (Self, u16), (second, second_port): (Self, u16)) -> u64 {
        // The number fills the word up to the highest bit: of smaller numbers the compiler would make a comparison.
        let number = |address: Self, port: u16| u64::from(address.0) << 32 | u64::from(port) << 16;
        borrow(number(first, first_port), number(second, second_port), 0)
    }

    #[inline(always)]
    fn exchange(Self(first): Self, Self(second): Self, mask: u64) -> (Self, Self) {
        let change = (first ^ second) & mask as u32;
        (Self(first ^ change), Self(second ^ change))
    }
}

impl Address for Ipv6 {
    const FAMILY: Family = Family::V6;
    const ECHO: Protocol = Protocol::Icmpv6;

    #[inline(always)]
    fn of(address: IpAddress) -> Self {
        Self(address)
    }

    #[inline(always)]
    fn to_address(self) -> IpAddress {
        self.0
    }

    #[inline(always)]
    fn words(Self(IpAddress(low)): Self, Self(IpAddress(high)): Self) -> [u64; 4] {
        [low[0], low[1], high[0], high[1]]
    }

    const WORDS: usize = 4;

    #[inline(always)]
    fn is_below((first, first_port): (Self, u16), (second, second_port): (Self, u16)) -> u64 {
        let (Self(IpAddress(first)), Self(IpAddress(second))) = (first, second);
        let below = borrow(u64::from(first_port) << 48, u64::from(second_port) << 48, 0);
        borrow(first[0], second[0], borrow(first[1], second[1], below))
    }

    #[inline(always)]
    fn exchange(Self(IpAddress(first)): Self, Self(IpAddress(second)): Self, mask: u64) -> (Self, Self) {
        let change = [(first[0] ^ second[0]) & mask, (first[1] ^ second[1]) & mask];
        (
            Self(IpAddress([first[0] ^ change[0], first[1] ^ change[1]])),
            Self(IpAddress([second[0] ^ change[0], second[1] ^ change[1]])),
        )
    }
}

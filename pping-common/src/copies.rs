//! Copies of a packet, as a mirror of several ports shows them: before and after routing, once for each port.
//!
//! A copy has the same addresses, ports, length and IPv4 identification as a packet that passed a moment before, and the same numbers
//! and timestamps, or the same first bytes in a datagram. MAC addresses, VLAN tags, TTL and checksums may differ.

use crate::{
    bytes::Bytes,
    hash::{SipKey, siphash},
    layout::layout,
    parse::Frame,
};

/// The number of buckets: a power of two.
pub const BUCKETS: u32 = 4_096;

/// Packets that a bucket remembers.
pub const PER_BUCKET: usize = 8;

/// Nanoseconds within which a packet that passes again is a copy, unless `--copies-within` says otherwise: more than what a
/// router or the queue of a mirror port mostly takes, and less than what a retransmission takes.
pub const COPIES_WITHIN: u64 = 2_000_000;

/// The longest `--copies-within`, ns.
pub const MAX_COPIES_WITHIN: u64 = 1_000_000_000;

/// The bits of a remembered packet that are its time, in units of 16,384 ns: it comes round after 275 s. The others are of its
/// hash.
const TIME_BITS: u32 = 24;

const TIME: u64 = (1 << TIME_BITS) - 1;

const UNIT_SHIFT: u32 = 14;

/// The latest packets with some hashes: a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Bucket {
    /// A packet each, the latest first; 0 if there is none.
    pub packets: [u64; PER_BUCKET],
}

layout!(Bucket { packets });

impl Bucket {
    /// A bucket without packets.
    pub const EMPTY: Self = Self { packets: [0; PER_BUCKET] };
}

/// A packet: its time and a hash of what identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    hash: u64,
    time: u64,
}

impl Passed {
    /// The packet of an interface that was parsed from `bytes` to `frame`, at `now`, ns. `key` is secret, so that nobody can choose packets that have the
    /// hash of others. `identity` is room for what identifies it.
    #[inline(always)]
    pub fn new<O: Bytes + ?Sized>(
        frame: &Frame,
        bytes: &O,
        interface: u16,
        identity: &mut [u64; Frame::IDENTITY_WORDS],
        key: SipKey,
        now: u64,
    ) -> Self {
        frame.identify(bytes, interface, identity);
        O::barrier_var(identity);
        Self { hash: siphash(key, *identity), time: now >> UNIT_SHIFT & TIME }
    }

    /// The number of its bucket.
    #[inline(always)]
    pub fn bucket(self) -> u32 {
        self.hash as u32 % BUCKETS
    }

    /// Whether it passed within `within` ns before, by the packets of its bucket. Only these are looked at, so a burst of others may
    /// hide a copy, and nothing grows.
    #[inline(always)]
    pub fn is_copy<O: Bytes + ?Sized>(self, within: u64, packet_at: impl Fn(usize) -> u64) -> bool {
        let within = within >> UNIT_SHIFT;
        let mut is_copy = false;
        let mut at = 0;
        while at < PER_BUCKET {
            let there = packet_at(at);
            let age = self.time.wrapping_sub(there) & TIME;
            is_copy |= there & !TIME == self.tag() && age <= within;
            // Otherwise the verifier follows each of 2^8 outcomes by itself.
            O::barrier_var(&mut is_copy);
            at += 1;
        }
        is_copy
    }

    /// Makes it the latest of its bucket, which forgets the oldest.
    #[inline(always)]
    pub fn remember(self, packet_at: impl Fn(usize) -> u64, mut set: impl FnMut(usize, u64)) {
        let mut at = PER_BUCKET - 1;
        while at > 0 {
            set(at, packet_at(at - 1));
            at -= 1;
        }
        set(0, self.tag() | self.time);
    }

    /// The part of the hash that is remembered. It is not 0, which is no packet.
    #[inline(always)]
    fn tag(self) -> u64 {
        self.hash >> TIME_BITS << TIME_BITS | 1 << (u64::BITS - 1)
    }
}

const _: () = {
    assert!(size_of::<Bucket>() == 64);
    assert!(BUCKETS.is_power_of_two());
    assert!(BUCKETS.ilog2() <= TIME_BITS, "the tag is of other bits than the bucket");
    assert!(MAX_COPIES_WITHIN >> UNIT_SHIFT < 1 << (TIME_BITS - 1));
};

/// The packets that passed a moment ago, in user space.
#[cfg(any(feature = "std", test))]
#[derive(Clone, Debug)]
pub(crate) struct Recent {
    buckets: std::boxed::Box<[Bucket]>,
    key: SipKey,
}

#[cfg(any(feature = "std", test))]
impl Recent {
    pub(crate) fn new(key: SipKey) -> Self {
        Self { buckets: std::vec![Bucket::EMPTY; BUCKETS as usize].into(), key }
    }

    /// Whether a packet is a copy. If not, remembers it.
    pub(crate) fn is_copy<O: Bytes + ?Sized>(
        &mut self,
        frame: &Frame,
        bytes: &O,
        interface: u16,
        now: u64,
        within: u64,
    ) -> bool {
        let passed = Passed::new(frame, bytes, interface, &mut [0; Frame::IDENTITY_WORDS], self.key, now);
        let Some(Bucket { packets }) = self.buckets.get_mut(passed.bucket() as usize) else { return false };
        passed.enter(packets, within)
    }
}

#[cfg(any(feature = "std", test))]
impl Passed {
    /// Returns whether it is a copy of one of these packets. If not, it becomes the latest of them.
    fn enter(self, packets: &mut [u64; PER_BUCKET], within: u64) -> bool {
        let is_copy = self.is_copy::<[u8]>(within, |at| packets[at]);
        if !is_copy {
            let before = *packets;
            self.remember(|at| before[at], |at, packet| packets[at] = packet);
        }
        is_copy
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        bytes::Captured,
        parse::{Decap, LinkType, Scope, Vlan},
    };

    const KEY: SipKey = [1, 2];

    fn identity(bytes: &[u8]) -> [u64; Frame::IDENTITY_WORDS] {
        let mut frame = Frame::EMPTY;
        let captured = Captured { bytes, frame_len: bytes.len() };
        frame.parse(&captured, LinkType::Ip, Vlan::NONE, Decap::NONE, &Scope::ALL).unwrap();
        let mut identity = [0; Frame::IDENTITY_WORDS];
        frame.identify(&captured, 1, &mut identity);
        identity
    }

    /// An IPv4 packet with a TCP segment with timestamps and eight bytes of data.
    fn segment() -> std::vec::Vec<u8> {
        let mut packet = std::vec![0; 60];
        packet[..20].copy_from_slice(&[0x45, 0, 0, 60, 0, 7, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 192, 0, 2, 1]);
        packet[20..52].copy_from_slice(&[
            0x9c, 0x40, 0, 80, 0, 0, 1, 0, 0, 0, 2, 0, 0x80, 0x10, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10, 0, 0, 0, 9,
            0, 0, 0, 8,
        ]);
        packet
    }

    #[test]
    fn only_what_a_router_changes_may_differ() {
        let packet = segment();
        let changed = |at: usize| {
            let mut packet = packet.clone();
            packet[at] ^= 1;
            identity(&packet)
        };
        // TTL, checksum of IP, checksum of TCP.
        for at in [8, 10, 11, 36, 37] {
            assert_eq!(changed(at), identity(&packet), "byte {at}");
        }
        // Identification, addresses, ports, numbers, flags, timestamps.
        for at in [4, 5, 15, 19, 20, 23, 27, 31, 33, 47, 51] {
            assert_ne!(changed(at), identity(&packet), "byte {at}");
        }
        let mut padded = packet.clone();
        padded.extend([0xaa; 6]);
        assert_eq!(identity(&padded), identity(&packet), "what fills up a frame");
        let mut longer = packet.clone();
        longer.push(0);
        longer[3] += 1;
        assert_ne!(identity(&longer), identity(&packet), "the length");
    }

    /// An IPv4 packet with a DNS response that is a header alone.
    fn response(id: u8) -> std::vec::Vec<u8> {
        let mut packet = std::vec![0; 40];
        packet[..20].copy_from_slice(&[0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 1]);
        packet[20..32].copy_from_slice(&[0, 53, 0x9c, 0x40, 0, 20, 0, 0, 0, id, 0x80, 3]);
        packet
    }

    #[test]
    fn short_messages_differ_by_what_they_have() {
        for length in [40, 36, 32] {
            let [one, other] = [1, 2].map(|id| {
                let mut frame = Frame::EMPTY;
                let packet = response(id);
                let captured = Captured { bytes: &packet[..length], frame_len: packet.len() };
                frame.parse(&captured, LinkType::Ip, Vlan::NONE, Decap::NONE, &Scope::ALL).ok();
                let mut identity = [0; Frame::IDENTITY_WORDS];
                frame.identify(&captured, 1, &mut identity);
                identity
            });
            assert_ne!(one, other, "{length} bytes");
        }
    }

    #[test]
    fn the_same_packet_at_another_interface_is_no_copy() {
        let mut recent = Recent::new(KEY);
        let packet = segment();
        let mut frame = Frame::EMPTY;
        let captured = Captured { bytes: &packet, frame_len: packet.len() };
        frame.parse(&captured, LinkType::Ip, Vlan::NONE, Decap::NONE, &Scope::ALL).unwrap();
        let found = [1, 2, 1, 2].map(|port| recent.is_copy(&frame, &captured, port, 1_000, COPIES_WITHIN));
        assert_eq!(found, [false, false, true, true]);
    }

    fn pass(bucket: &mut Bucket, hash: u64, now: u64) -> bool {
        Passed { hash, time: now >> UNIT_SHIFT & TIME }.enter(&mut bucket.packets, COPIES_WITHIN)
    }

    #[test]
    fn a_bucket_forgets_its_oldest_packets() {
        let mut bucket = Bucket::EMPTY;
        let packet = |number: u64| number << TIME_BITS;
        for number in 0..PER_BUCKET as u64 {
            assert!(!pass(&mut bucket, packet(number), 10_000 * number));
        }
        assert!(pass(&mut bucket, packet(0), 100_000));
        assert!(!pass(&mut bucket, packet(100), 110_000));
        assert!(!pass(&mut bucket, packet(0), 120_000), "it was the oldest");
        assert!(pass(&mut bucket, packet(2), 130_000));
    }

    proptest! {
        #[test]
        fn a_copy_is_told_by_its_time_alone(
            hash: u64,
            first in 0..1_u64 << 62,
            later in 0..2 * COPIES_WITHIN,
        ) {
            let mut bucket = Bucket::EMPTY;
            prop_assert!(!pass(&mut bucket, hash, first));
            let is_copy = pass(&mut bucket, hash, first + later);
            // Times are rounded to units of 16 us.
            if later.abs_diff(COPIES_WITHIN) > 2 << UNIT_SHIFT {
                prop_assert_eq!(is_copy, later < COPIES_WITHIN);
            }
            prop_assert!(!pass(&mut bucket, hash ^ 1 << TIME_BITS, first + later));
        }
    }

    #[test]
    fn the_first_of_three_copies_counts() {
        let mut recent = Recent::new(KEY);
        let packet = segment();
        let mut frame = Frame::EMPTY;
        let captured = Captured { bytes: &packet, frame_len: packet.len() };
        frame.parse(&captured, LinkType::Ip, Vlan::NONE, Decap::NONE, &Scope::ALL).unwrap();
        let mut is_copy = |at: u64| recent.is_copy(&frame, &captured, 1, at, COPIES_WITHIN);
        let found = [0, 1_000_000, 1_900_000, 2_500_000, 3_000_000].map(&mut is_copy);
        assert_eq!(found, [false, true, true, false, true]);
    }
}

//! Recognises a packet in a queue: what it carries is the same when it is enqueued and when it is dequeued, even if a qdisc
//! split it in between.

use super::{
    address::IpAddress,
    protocol::{TCP, UDP},
};
use crate::hash::mix;

/// Reserved in the registry of protocol numbers.
const NOT_IP: u8 = 255;

/// The length of a TCP header with nothing but timestamps, in words of 32 bits.
const WORDS_WITH_TIMESTAMPS: u8 = 8;

/// What identifies a packet, and the fields that decide its group.
#[derive(Clone, Copy, Debug)]
pub struct PacketId {
    /// A hash of what neither a queue nor the splitting of a super-packet changes. The first part of a split
    /// super-packet has the same hash.
    pub hash: u64,
    /// The length by the IP header, bytes; 0 if that field has no room for it.
    len: u16,
    /// The IP protocol number; [`NOT_IP`] for other packets.
    protocol: u8,
    /// The address that it comes from; unspecified for packets that are not IP.
    pub from: IpAddress,
    /// The address that it goes to.
    pub to: IpAddress,
    /// The differentiated services codepoint.
    pub dscp: u8,
}

impl PacketId {
    /// How many words of a packet are read: an IPv6 header, and a TCP header with timestamps.
    pub const WORDS: usize = 9;

    /// Returns the identity of a packet. `words` are the bytes from its network header on, as they lie in memory; those behind
    /// the end of a short packet may be anything that stays the same while it is queued.
    #[inline(always)]
    pub fn of(words: [u64; Self::WORDS]) -> Self {
        let byte = |word: u64, number: usize| word.to_ne_bytes()[number];
        // The hash leaves out the traffic class (where CAKE writes codepoints and CoDel marks congestion), lengths, and
        // the checksum of IPv4. A hop limit does not change in a queue, but would not help either.
        let version = byte(words[0], 0) >> 4;
        let is_v6 = version == 6;
        let mut from_and_to;
        let (hash, mut protocol, payload, len) = if is_v6 {
            let addresses = mix(mix(mix(mix(0, words[1]), words[2]), words[3]), words[4]);
            from_and_to = [v6(words[1], words[2]), v6(words[3], words[4])];
            let payload = [words[5], words[6], words[7], words[8]];
            (addresses, byte(words[0], 6), payload, [byte(words[0], 4), byte(words[0], 5)])
        } else {
            let identification = words[0] >> 32;
            let [_, _, _, _, source @ ..] = words[1].to_ne_bytes();
            let [destination, first] = halves(words[2]);
            let [second, third] = halves(words[3]);
            let [fourth, fifth] = halves(words[4]);
            let [sixth, seventh] = halves(words[5]);
            let [eighth, _] = halves(words[6]);
            let addresses = u64::from(u32::from_ne_bytes(source)) | u64::from(destination) << 32;
            from_and_to = [IpAddress::mapped(source), IpAddress::mapped(destination.to_ne_bytes())];
            let hash = mix(mix(0, identification), addresses);
            let payload =
                [join(first, second), join(third, fourth), join(fifth, sixth), join(seventh, eighth)];
            (hash, byte(words[1], 1), payload, [byte(words[0], 2), byte(words[0], 3)])
        };
        if !is_v6 && version != 4 {
            (protocol, from_and_to) = (NOT_IP, [v6(0, 0); 2]);
        }
        let payload = match protocol {
            TCP => {
                let [acknowledgement, offset] = halves(payload[1]);
                // In a shorter header these bytes are payload, which a super-packet has elsewhere.
                let has_timestamps = offset.to_ne_bytes()[0] >> 4 >= WORDS_WITH_TIMESTAMPS;
                // Ports, sequence and acknowledgement number, and the timestamps, by which a retransmission differs.
                [payload[0], acknowledgement.into(), if has_timestamps { payload[3] } else { 0 }]
            }
            // Ports, and the first bytes after the header.
            UDP => [halves(payload[0])[0].into(), payload[1], 0],
            _ => [payload[0], payload[1], 0],
        };
        let [from, to] = from_and_to;
        let dscp = if protocol == NOT_IP {
            0
        } else if is_v6 {
            (byte(words[0], 0) << 4 | byte(words[0], 1) >> 4) >> 2
        } else {
            byte(words[0], 1) >> 2
        };
        let hash = mix(mix(mix(hash, payload[0]), payload[1]), payload[2]);
        Self { hash, len: u16::from_be_bytes(len), protocol, from, to, dscp }
    }

    /// Whether the packet is a TCP super-packet, which a qdisc may split. The parts of other super-packets cannot be
    /// distinguished from packets that carry nearly the same.
    #[inline(always)]
    pub fn may_be_split(&self, mtu: u32) -> bool {
        self.protocol == TCP && (self.len == 0 || u32::from(self.len) > mtu)
    }
}

/// An address from its two words, as they lie in memory.
#[inline(always)]
fn v6(high: u64, low: u64) -> IpAddress {
    IpAddress([u64::from_be(high), u64::from_be(low)])
}

/// The two halves of a word, as they lie in memory.
#[inline(always)]
fn halves(word: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    [u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])]
}

#[inline(always)]
fn join(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

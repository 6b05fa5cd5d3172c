//! A hash of what a packet carries. It is the same when the packet is enqueued and when it is dequeued, even if a qdisc
//! split the packet in between.

use aya_ebpf::helpers::bpf_probe_read_kernel;
use pping_common::parse::IpAddress;

use super::mix;
use crate::config;

/// How many words of a packet are read, from its network header on: an IPv6 header and 16 bytes.
const WORDS: usize = 7;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// What was read from a packet.
#[derive(Clone, Copy)]
pub(super) struct Content {
    /// A hash of what neither a queue nor the splitting of a super-packet changes. The first part of a split
    /// super-packet has the same hash.
    pub(super) hash: u64,
    /// The length by the IP header, bytes; 0 if that field has no room for it.
    pub(super) len: u16,
    /// The address that it comes from.
    pub(super) from: IpAddress,
    /// The address that it goes to.
    pub(super) to: IpAddress,
    /// The differentiated services codepoint.
    pub(super) dscp: u8,
}

impl Content {
    /// Reads a packet. If the packet is gone, the content is whatever its memory holds now.
    #[inline(always)]
    pub(super) fn read(skb: u64) -> Option<Self> {
        let offsets = config::offsets();
        let head = read::<u64>(skb, offsets.skb_head)?;
        let network_header = read::<u16>(skb, offsets.skb_network_header)?;
        let words = read::<[u64; WORDS]>(head, network_header.into())?;
        let byte = |word: u64, number: usize| word.to_ne_bytes()[number];
        // The hash leaves out the traffic class (where CAKE writes codepoints and CoDel marks congestion), lengths, and
        // the checksum of IPv4. A hop limit does not change in a queue, but would not help either.
        let is_v6 = byte(words[0], 0) >> 4 == 6;
        let from_and_to;
        let (hash, protocol, payload, len) = if is_v6 {
            let addresses = mix(mix(mix(mix(0, words[1]), words[2]), words[3]), words[4]);
            from_and_to = [v6(words[1], words[2]), v6(words[3], words[4])];
            (addresses, byte(words[0], 6), [words[5], words[6]], [byte(words[0], 4), byte(words[0], 5)])
        } else {
            let identification = words[0] >> 32;
            let [_, _, _, _, source @ ..] = words[1].to_ne_bytes();
            let [destination, first] = halves(words[2]);
            let [second, third] = halves(words[3]);
            let [fourth, _] = halves(words[4]);
            let addresses = u64::from(u32::from_ne_bytes(source)) | u64::from(destination) << 32;
            from_and_to = [IpAddress::mapped(source), IpAddress::mapped(destination.to_ne_bytes())];
            let hash = mix(mix(0, identification), addresses);
            let payload = [join(first, second), join(third, fourth)];
            (hash, byte(words[1], 1), payload, [byte(words[0], 2), byte(words[0], 3)])
        };
        let payload = match protocol {
            // Ports, sequence and acknowledgement number.
            TCP => [payload[0], halves(payload[1])[0].into()],
            // Ports, and the first bytes after the header.
            UDP => [halves(payload[0])[0].into(), payload[1]],
            _ => payload,
        };
        let [from, to] = from_and_to;
        let dscp = if is_v6 {
            (byte(words[0], 0) << 4 | byte(words[0], 1) >> 4) >> 2
        } else {
            byte(words[0], 1) >> 2
        };
        let hash = mix(mix(hash, payload[0]), payload[1]);
        Some(Self { hash, len: u16::from_be_bytes(len), from, to, dscp })
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

/// Reads kernel memory, which may be gone by now.
#[inline(always)]
pub(super) fn read<T>(address: u64, offset: u32) -> Option<T> {
    // SAFETY: the helper accepts any address, and returns an error if it cannot read there. All types here are numbers.
    unsafe { bpf_probe_read_kernel::<T>((address + u64::from(offset)) as *const T) }.ok()
}

//! Series: the aggregated samples of one group, interface, method and direction.

use crate::{
    group::{GroupKey, Side},
    hash::{SipKey, siphash},
    hist::{self, BINS},
    layout::layout,
    method::Method,
    parse::{Direction, IpAddress},
    pool::{BINS_PER_BLOCK, BLOCKS, BinBlock, BinTag, CHAINS},
};

/// Returns the bit of a host in the set of hosts that replied ([`BinBlock::hosts`]). The set has 64 bits, so some hosts
/// share one. `key` is secret, so that no sender can choose addresses that share a bit.
#[inline(always)]
pub fn host_bit(host: IpAddress, key: SipKey) -> u64 {
    let IpAddress(words) = host;
    1 << (siphash(key, words) >> (u64::BITS - u64::BITS.ilog2()))
}

/// The key of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct SeriesKey {
    /// The group.
    pub group: GroupKey,
    /// The interface id.
    pub interface: u16,
    /// [`Method`] as a number, or [`SeriesKey::QUEUE`].
    pub method: u8,
    /// The [`Direction`] that matched, as a number; [`SeriesKey::NO_DIRECTION`] if a capture does not say.
    pub direction: u8,
    /// The [`Side`] of the host that replied, as a number; [`Side::UNKNOWN`] if sides are not told apart.
    pub side: u32,
}

layout!(SeriesKey { group, interface, method, direction, side as reserved });

impl SeriesKey {
    /// Stands for a [`Direction`] that is unknown.
    pub const NO_DIRECTION: u8 = u8::MAX;

    /// Stands for a [`Method`]: the series has times of packets in the interface's queue instead of RTTs.
    pub const QUEUE: u8 = Method::COUNT as u8;

    /// A key to be overwritten.
    pub const NONE: Self = Self {
        group: GroupKey::ALL,
        interface: 0,
        method: 0,
        direction: Self::NO_DIRECTION,
        side: Side::UNKNOWN,
    };

    /// Returns the key of a series whose direction is known.
    #[inline(always)]
    pub fn new(group: GroupKey, interface: u16, method: Method, direction: Direction) -> Self {
        Self { group, interface, method: method as u8, direction: direction as u8, ..Self::NONE }
    }

    /// Returns the key of the series of packets in an interface's queue.
    #[inline(always)]
    pub fn of_queue(group: GroupKey, interface: u16) -> Self {
        let direction = Direction::Egress as u8;
        Self { group, interface, method: Self::QUEUE, direction, ..Self::NONE }
    }
}

impl SeriesKey {
    /// Returns the hash that stands for the key in the index, which takes half the memory. Two keys can have the same
    /// hash, though it is unlikely: the series itself has its key.
    #[inline(always)]
    pub fn hash(&self, key: SipKey) -> u64 {
        siphash(key, self.words())
    }

    /// Returns the key as numbers.
    #[inline(always)]
    pub fn words(&self) -> [u64; 6] {
        let [a, b, c, d, e] = self.group.words();
        let rest = u64::from(self.interface)
            | u64::from(self.method) << 16
            | u64::from(self.direction) << 24
            | u64::from(self.side) << 32;
        [a, b, c, d, e, rest]
    }
}

/// The traffic of a series in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Bytes above the transport header.
    pub bytes: u64,
    /// TCP segments retransmitted.
    pub retransmissions: u64,
    /// Packets marked for congestion on their way (RFC 3168, 5: CE).
    pub ce: u64,
}

layout!(Traffic { packets, bytes, retransmissions, ce });

impl Traffic {
    /// Adds other traffic.
    pub fn add(&mut self, other: &Self) {
        // Files of a history may say anything.
        self.packets = self.packets.saturating_add(other.packets);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.retransmissions = self.retransmissions.saturating_add(other.retransmissions);
        self.ce = self.ce.saturating_add(other.ce);
    }
}

/// The samples and traffic of a series in one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesCounts {
    /// Sum of the RTTs, ns.
    pub sum: u64,
    /// The longest RTT, ns.
    pub max: u64,
    /// `u64::MAX` minus the shortest RTT in ns; 0 means none.
    pub min_complement: u64,
    /// Traffic sent by the hosts whose packets are timed.
    pub sent: Traffic,
    /// Traffic sent to them by the hosts that reply.
    pub received: Traffic,
    /// Samples by [`hist::bin`].
    pub bins: [u32; BINS],
    /// The hosts that replied with the samples of each block of bins, by [`host_bit`]; 0 if there are no groups.
    pub hosts: [u64; BLOCKS],
}

impl SeriesCounts {
    /// No samples and no traffic.
    pub const EMPTY: Self = Self {
        sum: 0,
        max: 0,
        min_complement: 0,
        sent: Traffic { packets: 0, bytes: 0, retransmissions: 0, ce: 0 },
        received: Traffic { packets: 0, bytes: 0, retransmissions: 0, ce: 0 },
        bins: [0; BINS],
        hosts: [0; BLOCKS],
    };

    /// Creates counts of the kernel's sums and traffic of an epoch, with empty bins.
    pub fn new(Sums { sum, max, min_complement }: Sums, [sent, received]: [Traffic; 2]) -> Self {
        Self { sum, max, min_complement, sent, received, ..Self::EMPTY }
    }

    /// Adds the bins and hosts of a block.
    pub fn add_block(&mut self, tag: BinTag, &BinBlock { hosts, bins, .. }: &BinBlock) {
        for (sum, count) in self.bins.iter_mut().skip(tag.first_bin()).zip(bins) {
            *sum += count;
        }
        if let Some(known) = self.hosts.get_mut(tag.number()) {
            *known |= hosts;
        }
    }

    /// Adds a sample, ns, from the host with this [`host_bit`]; 0 if the host does not matter. The kernel programs do the
    /// same with atomic instructions.
    pub fn sample(&mut self, rtt: u64, host: u64) {
        let bin = hist::bin(rtt);
        self.bins[bin] += 1;
        self.hosts[bin / BINS_PER_BLOCK] |= host;
        // The times of a capture can be anything, so the sum may overflow.
        self.sum = self.sum.saturating_add(rtt);
        self.max = self.max.max(rtt);
        self.min_complement = self.min_complement.max(!rtt);
    }

    /// Whether there was neither a sample nor a packet.
    pub fn is_empty(&self) -> bool {
        !self.has_samples() && self.sent.packets == 0 && self.received.packets == 0
    }

    /// Whether there was a sample.
    pub fn has_samples(&self) -> bool {
        self.min_complement != 0
    }

    /// The number of samples.
    pub fn count(&self) -> u64 {
        self.bins.iter().map(|&count| u64::from(count)).sum()
    }

    /// The shortest RTT, ns, if there is any.
    pub fn min(&self) -> Option<u64> {
        self.has_samples().then_some(!self.min_complement)
    }

    /// The longest RTT, ns, if there is any.
    pub fn max(&self) -> Option<u64> {
        self.has_samples().then_some(self.max)
    }
}

/// The sums of a series' samples in one epoch. All bytes are zero if there were no samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Sums {
    /// Sum of the RTTs, ns.
    pub sum: u64,
    /// The longest RTT, ns.
    pub max: u64,
    /// `u64::MAX` minus the shortest RTT in ns. So 0 means no RTT, and the programs only ever raise a maximum.
    pub min_complement: u64,
}

layout!(Sums { sum, max, min_complement });

/// A series in the kernel's array. Each rotation switches the buffer (`abi::Control`): the programs write to the sums of
/// one buffer while the agent reads those of the other. The bins are in the pool.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Series {
    /// How many series had this index before. The agent writes it.
    pub generation: u32,
    /// Not 0 from when the programs insert the series until the agent frees it.
    pub used: u32,
    /// Not 0 while a program raises one of its extremes, on kernels where that takes a lock (before Linux 5.12).
    pub busy: u32,
    /// Fills up to a multiple of 8.
    pub reserved: u32,
    /// The sums in each buffer.
    pub sums: [Sums; 2],
    /// The first block of each chain in each buffer, plus 1; 0 if there is none.
    pub chains: [[u32; CHAINS]; 2],
    /// The key, once the series is `used`.
    pub key: SeriesKey,
    /// Sent since the last rotation by the hosts whose packets are timed, and by those that reply. Both buffers share it:
    /// only the sweep writes it, and the agent runs the sweep.
    pub traffic: [Traffic; 2],
}

layout!(Series { generation, used, busy, reserved, sums, chains, key, traffic });

/// A reference to the series of a flow direction, with its purpose. It is one number, so that it is read and written at
/// once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct SeriesRef(pub u64);

layout!(SeriesRef { 0 });

impl SeriesRef {
    /// No series yet.
    pub const NONE: Self = Self(0);

    /// The number of series that an index can address.
    pub const MAX_SERIES: u32 = 1 << INDEX_BITS;

    /// Creates a reference to the series at `index` in its `generation`th use.
    #[inline(always)]
    pub fn new(index: u32, generation: u32, purpose: Purpose) -> Self {
        Self(
            purpose.0 | u64::from(generation & GENERATION_MASK) << INDEX_BITS | u64::from(index & INDEX_MASK),
        )
    }

    /// Creates a reference without a purpose.
    #[inline(always)]
    pub fn without_purpose(index: u32, generation: u32) -> Self {
        Self::new(index, generation, Purpose(0))
    }

    /// Whether the reference was made for this purpose.
    #[inline(always)]
    pub fn is_for(self, purpose: Purpose) -> bool {
        self.0 >> PURPOSE_SHIFT == purpose.0 >> PURPOSE_SHIFT
    }

    /// The index of the series.
    #[inline(always)]
    pub fn index(self) -> u32 {
        self.0 as u32 & INDEX_MASK
    }

    /// Whether the index still belongs to the same series, whose present generation is `generation`.
    #[inline(always)]
    pub fn is_alive(self, generation: u32) -> bool {
        (self.0 >> INDEX_BITS) as u32 & GENERATION_MASK == generation & GENERATION_MASK
    }
}

const INDEX_BITS: u32 = BinTag::INDEX_BITS;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;
const GENERATION_MASK: u32 = (1 << 12) - 1;
const PURPOSE_SHIFT: u32 = INDEX_BITS + 12;

/// The properties that select the series of a sample, besides those that never change in a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Purpose(u64);

impl Purpose {
    /// Creates the purpose of samples of a method that match in a direction, with echoes of `dscp` (0 if groups do not
    /// depend on it). `epoch` is that of the control block (`abi::Control`). What counts for `other` while its flow is not
    /// proved finds its own group once it is.
    #[inline(always)]
    pub fn new(epoch: u32, method: u8, direction: u8, dscp: u8, is_proved: bool) -> Self {
        let is_one = 1;
        let purpose = epoch << 13
            | u32::from(dscp & 63) << 7
            | u32::from(method & 7) << 4
            | u32::from(is_proved) << 2
            | u32::from(direction & 1) << 1
            | is_one;
        Self(u64::from(purpose) << PURPOSE_SHIFT)
    }
}

const _: () = {
    assert!(size_of::<SeriesKey>() == 48);
    assert!(size_of::<Traffic>() == 32);
    assert!(size_of::<Sums>() == 24);
    assert!(size_of::<Series>() == 208);
    assert!(core::mem::offset_of!(Series, sums) == 16);
    assert!(core::mem::offset_of!(Series, chains) == 64);
    assert!(core::mem::offset_of!(Series, key) == 96);
    assert!(Method::COUNT <= 8);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_tell_what_they_were_given() {
        let mut counts = SeriesCounts::EMPTY;
        assert_eq!((counts.min(), counts.max(), counts.is_empty()), (None, None, true));
        counts.sample(0, 0);
        assert_eq!((counts.min(), counts.max(), counts.count()), (Some(0), Some(0), 1));
        counts.sample(5_000_000, 0);
        counts.sample(70_000_000_000, 0);
        assert_eq!((counts.min(), counts.max(), counts.count()), (Some(0), Some(70_000_000_000), 3));
        assert_eq!(counts.sum, 70_005_000_000);
        assert_eq!((counts.bins[hist::UNDERFLOW], counts.bins[hist::OVERFLOW]), (1, 1));
        counts.sample(u64::MAX - 1, 0);
        assert_eq!((counts.sum, counts.max()), (u64::MAX, Some(u64::MAX - 1)));
    }

    #[test]
    fn hosts_are_known_by_the_octave_of_their_samples() {
        let mut counts = SeriesCounts::EMPTY;
        counts.sample(10_000_000, 1);
        counts.sample(11_000_000, 4);
        counts.sample(900_000_000, 2);
        let filled = |counts: &SeriesCounts| -> std::vec::Vec<u64> {
            counts.hosts.iter().copied().filter(|&hosts| hosts != 0).collect()
        };
        assert_eq!(filled(&counts), [5, 2]);
        // The agent adds up the blocks of the kernel programs like this.
        let mut of_blocks = SeriesCounts::EMPTY;
        for (number, &hosts) in counts.hosts.iter().enumerate().filter(|&(_, &hosts)| hosts != 0) {
            let mut block = BinBlock { hosts, ..BinBlock::FREE };
            block.bins.copy_from_slice(&counts.bins[number * BINS_PER_BLOCK..][..BINS_PER_BLOCK]);
            of_blocks.add_block(BinTag::new(7, number as u32, 1), &block);
        }
        assert_eq!((of_blocks.bins, of_blocks.hosts), (counts.bins, counts.hosts));
    }

    #[test]
    fn hosts_beside_each_other_share_bits_as_often_as_others() {
        let v4 = |number: u64| IpAddress([0, 0xffff_c000_0200 + number]);
        let v6 = |number: u64| IpAddress([0x2001_0db8_0000_0000 + (number << 16), 1]);
        for host in [v4 as fn(u64) -> IpAddress, v6] {
            for hosts in [4, 10, 32, 64, 128] {
                let bits = |seed| (0..hosts).fold(0, |bits, number| bits | host_bit(host(number), seed));
                let seeds = 200;
                let total: u32 = (1..=seeds).map(|seed| bits([seed, 7]).count_ones()).sum();
                let mean = f64::from(total) / seeds as f64;
                let expected = 64.0 * (1.0 - (63.0_f64 / 64.0).powi(hosts as i32));
                assert!((mean / expected - 1.0).abs() < 0.03, "{hosts}: {mean} of {expected}");
            }
        }
    }

    #[test]
    fn keys_that_differ_in_anything_have_other_hashes() {
        let keys = [
            SeriesKey::NONE,
            SeriesKey { group: GroupKey::OTHER, ..SeriesKey::NONE },
            SeriesKey { interface: 1, ..SeriesKey::NONE },
            SeriesKey { method: 1, ..SeriesKey::NONE },
            SeriesKey { direction: 1, ..SeriesKey::NONE },
            SeriesKey { side: 1, ..SeriesKey::NONE },
        ];
        for (at, key) in keys.iter().enumerate() {
            assert!(
                keys[..at]
                    .iter()
                    .all(|other| other.hash([7, 1]) != key.hash([7, 1]) && other.words() != key.words())
            );
            assert_ne!(key.hash([7, 1]), key.hash([7, 2]));
        }
    }

    #[test]
    fn a_reference_is_good_for_what_it_was_made_for_alone() {
        let purpose = Purpose::new(5, 1, 1, 46, true);
        let reference = SeriesRef::new(0x000a_bcde, 0x1234, purpose);
        assert_eq!(reference.index(), 0x000a_bcde);
        assert!(reference.is_alive(0x1234) && !reference.is_alive(0x1235));
        assert!(reference.is_for(purpose));
        for other in [
            (6, 1, 1, 46, true),
            (5, 0, 1, 46, true),
            (5, 1, 0, 46, true),
            (5, 1, 1, 0, true),
            (5, 1, 1, 46, false),
        ] {
            let (epoch, method, direction, dscp, is_proved) = other;
            assert!(!reference.is_for(Purpose::new(epoch, method, direction, dscp, is_proved)));
        }
        assert!(!SeriesRef::NONE.is_for(Purpose::new(0, 0, 0, 0, false)));
    }
}

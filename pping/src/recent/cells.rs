//! The measurements of a series in ten seconds.

use pping_common::{
    hist,
    limits::SECOND,
    method::Method,
    series::{SeriesCounts, Traffic},
};
use prost::encoding::{decode_varint, encode_varint};

use crate::{
    aggregate::{Range, add_bins, join, rtt_at},
    quality::{self, ScoreInput},
};

/// The length of a cell, ns.
pub const CELL: u64 = 10 * SECOND;

/// The measurements of a series in a cell, or in several.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cell {
    /// The number of the cell: its start in units of [`CELL`] since the epoch.
    pub(super) number: u64,
    /// The bins with samples, in order, by [`hist::bin`].
    bins: Vec<(u8, u32)>,
    /// The sum of all RTTs, ns, which cannot overflow in ten seconds.
    sum: u64,
    range: Range,
    /// The traffic of the hosts whose packets are timed, and of those that reply.
    pub(super) traffic: [Traffic; 2],
    /// The most bytes that either of the two sent in a second.
    max_bytes_per_second: u64,
}

/// The distribution of some RTTs, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rtts {
    pub(super) count: u64,
    pub(super) min: u64,
    pub(super) mean: u64,
    pub(super) max: u64,
    /// The 50th, 90th, 95th and 99th percentile.
    pub(super) percentiles: [u64; 4],
}

impl Cell {
    pub(super) fn new(number: u64) -> Self {
        Self { number, ..Self::default() }
    }

    /// Adds the measurements of a second.
    pub(super) fn add(&mut self, counts: &SeriesCounts) {
        self.traffic[0].add(&counts.sent);
        self.traffic[1].add(&counts.received);
        self.max_bytes_per_second =
            self.max_bytes_per_second.max(counts.sent.bytes).max(counts.received.bytes);
        if !counts.has_samples() {
            return;
        }
        self.sum = self.sum.saturating_add(counts.sum);
        self.range = join(self.range, counts.min().zip(counts.max()));
        let filled = counts.bins.iter().enumerate().filter(|&(_, &count)| count > 0);
        add_bins(&mut self.bins, filled.map(|(bin, &count)| (bin as u8, count)));
    }

    /// Adds another cell.
    pub(super) fn merge(&mut self, other: &Self) {
        for (sum, traffic) in self.traffic.iter_mut().zip(&other.traffic) {
            sum.add(traffic);
        }
        self.max_bytes_per_second = self.max_bytes_per_second.max(other.max_bytes_per_second);
        self.sum = self.sum.saturating_add(other.sum);
        self.range = join(self.range, other.range);
        add_bins(&mut self.bins, other.bins.iter().copied());
    }

    /// Returns the lowest RTT, ns.
    pub(super) fn lowest(&self) -> Option<u64> {
        self.range.map(|(min, _)| min)
    }

    /// Returns the number of samples.
    pub(super) fn count(&self) -> u64 {
        self.bins.iter().map(|&(_, count)| u64::from(count)).sum()
    }

    /// Returns the distribution, if there are samples.
    pub(super) fn rtts(&self) -> Option<Rtts> {
        let (min, max) = self.range?;
        let count = self.count();
        let percentiles = [50, 90, 95, 99].map(|percentile| {
            let rank = (count * percentile).div_ceil(100).max(1);
            let bins = self.bins.iter().map(|&(bin, count)| (usize::from(bin), u64::from(count)));
            rtt_at(rank, bins, (min, max))
        });
        let mean = self.sum.checked_div(count)?;
        Some(Rtts { count, min, mean, max, percentiles })
    }

    /// Returns the scores by these profiles, for a series of this method.
    pub(super) fn scores(&self, profiles: &[quality::Profile], method: Method) -> quality::Scores {
        let bins = || self.bins.iter().map(|&(bin, count)| (usize::from(bin), u64::from(count)));
        let throughput = quality::throughput(self.max_bytes_per_second, SECOND);
        let measured = ScoreInput { method, bins, range: self.range, traffic: self.traffic, throughput };
        quality::scores(profiles, &measured)
    }

    /// Returns the highest RTT, ns, and the number of samples of each bin with samples.
    pub(super) fn histogram(&self) -> impl Iterator<Item = (u64, u32)> {
        self.bins.iter().map(|&(bin, count)| (hist::upper_bound(bin.into()), count))
    }

    /// Returns the memory that the cell takes, bytes.
    pub(super) fn size(&self) -> usize {
        size_of::<Self>() + self.bins.capacity() * size_of::<(u8, u32)>()
    }

    /// Appends the cell in a compact form: numbers are varints of Protocol Buffers, most of which take one or two bytes.
    pub(super) fn pack(&self, bytes: &mut Vec<u8>) {
        let (min, max) = self.range.unwrap_or((1, 0));
        let traffic = self.traffic.iter().flat_map(|it| [it.packets, it.bytes, it.retransmissions, it.ce]);
        let head = [self.number, self.sum, min, max, self.max_bytes_per_second].into_iter().chain(traffic);
        head.for_each(|number| encode_varint(number, bytes));
        for &(bin, count) in &self.bins {
            bytes.push(bin);
            encode_varint(count.into(), bytes);
        }
    }

    /// Returns the number of a packed cell.
    pub(super) fn number_of(mut packed: &[u8]) -> u64 {
        number(&mut packed)
    }

    /// Returns the lowest RTT in a packed cell, ns.
    pub(super) fn lowest_of(mut packed: &[u8]) -> Option<u64> {
        let [_, _, min, max] = [(); 4].map(|()| number(&mut packed));
        (min <= max).then_some(min)
    }

    /// Unpacks a cell.
    pub(super) fn unpack(mut packed: &[u8]) -> Self {
        let bytes = &mut packed;
        let [cell_number, sum, min, max, max_bytes_per_second] = [(); 5].map(|()| number(bytes));
        let traffic = [(); 2].map(|()| Traffic {
            packets: number(bytes),
            bytes: number(bytes),
            retransmissions: number(bytes),
            ce: number(bytes),
        });
        let mut bins = Vec::new();
        while let Some((&bin, rest)) = bytes.split_first() {
            *bytes = rest;
            bins.push((bin, number(bytes) as u32));
        }
        Self {
            number: cell_number,
            bins,
            sum,
            range: (min <= max).then_some((min, max)),
            traffic,
            max_bytes_per_second,
        }
    }
}

/// Reads the next number of a packed cell; 0 after its end.
fn number(bytes: &mut &[u8]) -> u64 {
    decode_varint(bytes).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_packed_cell_is_the_same(
            number in any::<u64>(),
            seconds in prop::collection::vec(
                (prop::collection::vec(0_u64..80_000_000_000, 0..20), any::<[u32; 8]>()),
                0..10,
            ),
        ) {
            let mut cell = Cell::new(number);
            for (rtts, traffic) in seconds {
                let mut counts = SeriesCounts::EMPTY;
                for rtt in rtts {
                    counts.sample(rtt, 0);
                }
                let of = |part: &[u32]| Traffic {
                    packets: part[0].into(),
                    bytes: part[1].into(),
                    retransmissions: part[2].into(),
                    ce: part[3].into(),
                };
                (counts.sent, counts.received) = (of(&traffic[..4]), of(&traffic[4..]));
                cell.add(&counts);
            }
            let mut packed = Vec::new();
            cell.pack(&mut packed);
            prop_assert_eq!((Cell::number_of(&packed), Cell::lowest_of(&packed)), (number, cell.lowest()));
            prop_assert_eq!(Cell::unpack(&packed), cell);
        }
    }
}

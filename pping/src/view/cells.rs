//! The recent past of a series, in cells of ten seconds.

use std::collections::VecDeque;

use pping_common::{
    abi::{Tally, Traffic},
    hist,
    limits::SECOND,
};

use crate::aggregate::{Range, join, rtt_at};

/// The length of a cell, ns.
pub const CELL: u64 = 10 * SECOND;

/// Cells that are kept: 15 minutes.
pub const CELLS: u64 = 90;

/// Cells that count as now: a minute, the last of which has only begun.
pub(super) const RECENT: u64 = 6;

/// What a series measured in a cell, or in several.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    /// The number of the cell: its start in units of [`CELL`] since the epoch.
    pub(super) number: u64,
    /// The bins with samples, in order, by [`hist::bin`].
    bins: Vec<(u8, u32)>,
    sum: u128,
    range: Range,
    /// Sent by the hosts whose packets are timed, and by those that reply.
    pub(super) traffic: [Traffic; 2],
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
    /// Adds what was measured in a second.
    pub(super) fn add(&mut self, tally: &Tally) {
        self.traffic[0].add(&tally.sent);
        self.traffic[1].add(&tally.received);
        if !tally.has_samples() {
            return;
        }
        self.sum += u128::from(tally.sum);
        self.range = join(self.range, tally.min().zip(tally.max()));
        let filled = tally.bins.iter().enumerate().filter(|&(_, &count)| count > 0);
        self.add_bins(filled.map(|(bin, &count)| (bin as u8, count)));
    }

    /// Adds another cell.
    pub(super) fn merge(&mut self, other: &Self) {
        for (sum, traffic) in self.traffic.iter_mut().zip(&other.traffic) {
            sum.add(traffic);
        }
        self.sum += other.sum;
        self.range = join(self.range, other.range);
        self.add_bins(other.bins.iter().copied());
    }

    fn add_bins(&mut self, bins: impl Iterator<Item = (u8, u32)>) {
        let mut at = 0;
        for (bin, count) in bins {
            // Both are in order, so each search begins where the last one ended.
            at += self.bins[at..].partition_point(|&(known, _)| known < bin);
            match self.bins.get_mut(at) {
                Some((known, sum)) if *known == bin => *sum = sum.saturating_add(count),
                _ => self.bins.insert(at, (bin, count)),
            }
        }
    }

    /// The number of samples.
    pub(super) fn count(&self) -> u64 {
        self.bins.iter().map(|&(_, count)| u64::from(count)).sum()
    }

    /// The distribution, if there is any sample.
    pub(super) fn rtts(&self) -> Option<Rtts> {
        let (min, max) = self.range?;
        let count = self.count();
        let percentiles = [50, 90, 95, 99].map(|percentile| {
            let rank = (count * percentile).div_ceil(100).max(1);
            let bins = self.bins.iter().map(|&(bin, count)| (usize::from(bin), u64::from(count)));
            rtt_at(rank, bins, (min, max))
        });
        let mean = self.sum.checked_div(u128::from(count))? as u64;
        Some(Rtts { count, min, mean, max, percentiles })
    }

    /// The highest RTT, ns, and the number of samples of each bin with samples.
    pub(super) fn histogram(&self) -> impl Iterator<Item = (u64, u32)> {
        self.bins.iter().map(|&(bin, count)| (hist::upper_bound(bin.into()), count))
    }

    /// The memory that it takes, bytes.
    fn size(&self) -> usize {
        size_of::<Self>() + self.bins.capacity() * size_of::<(u8, u32)>()
    }
}

/// The cells of a series, the oldest first; those in which nothing passed are left out.
#[derive(Clone, Debug, Default)]
pub(super) struct History(VecDeque<Cell>);

impl History {
    /// Adds what was measured in a second of the cell with this number. Times that go back count for the latest cell.
    pub(super) fn add(&mut self, number: u64, tally: &Tally) {
        if self.0.back().is_none_or(|latest| latest.number < number) {
            if let Some(latest) = self.0.back_mut() {
                latest.bins.shrink_to_fit();
            }
            self.0.push_back(Cell { number, ..Cell::default() });
        }
        if let Some(latest) = self.0.back_mut() {
            latest.add(tally);
        }
    }

    /// Forgets what is older than [`CELLS`] at a time in the cell with this number.
    pub(super) fn expire(&mut self, number: u64) {
        while self.0.front().is_some_and(|cell| cell.number + CELLS <= number) {
            self.0.pop_front();
        }
    }

    /// Forgets all but the last minute at a time in the cell with this number.
    pub(super) fn keep_recent(&mut self, number: u64) {
        self.0.retain(|cell| cell.number + RECENT > number);
        self.0.shrink_to_fit();
    }

    /// All cells.
    pub(super) fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.0.iter()
    }

    /// The last minute at a time in the cell with this number.
    pub(super) fn recent(&self, number: u64) -> Cell {
        let mut sum = Cell::default();
        let is_recent = |cell: &&Cell| cell.number + RECENT > number;
        self.0.iter().rev().take_while(is_recent).for_each(|cell| sum.merge(cell));
        sum
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of samples in all cells.
    pub(super) fn count(&self) -> u64 {
        self.0.iter().map(Cell::count).sum()
    }

    /// The memory that it takes, bytes.
    pub(super) fn size(&self) -> usize {
        let free = self.0.capacity() - self.0.len();
        free * size_of::<Cell>() + self.0.iter().map(Cell::size).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::aggregate::Distribution;

    fn tally(rtts: &[u64]) -> Tally {
        let mut tally = Tally::EMPTY;
        for &rtt in rtts {
            tally.sample(rtt);
        }
        tally.sent.packets = rtts.len() as u64;
        tally
    }

    proptest! {
        #[test]
        fn a_minute_is_the_distribution_of_its_samples(
            seconds in prop::collection::vec(prop::collection::vec(0_u64..80_000_000_000, 0..20), 1..60),
        ) {
            let (mut history, mut distribution) = (History::default(), Distribution::default());
            for (second, rtts) in seconds.iter().enumerate() {
                history.add(second as u64 / 10, &tally(rtts));
                distribution.add(&tally(rtts));
            }
            let recent = history.recent(5);
            prop_assert_eq!(recent.count(), distribution.count());
            let expected = distribution.quantiles([0.5, 0.9, 0.95, 0.99]);
            prop_assert_eq!(recent.rtts().map(|rtts| rtts.percentiles), expected);
            prop_assert_eq!(recent.rtts().map(|rtts| rtts.mean), distribution.mean());
            let histogram: Vec<_> = recent.histogram().map(|(bound, count)| (bound, u64::from(count))).collect();
            prop_assert_eq!(histogram, distribution.filled().collect::<Vec<_>>());
            prop_assert_eq!(recent.traffic[0].packets, distribution.sent.packets);
        }
    }

    #[test]
    fn what_is_a_minute_ago_is_not_now_and_what_is_15_minutes_ago_is_gone() {
        let mut history = History::default();
        history.add(100, &tally(&[1_000_000]));
        history.add(106, &tally(&[3_000_000, 4_000_000]));
        assert_eq!(history.recent(106).count(), 2);
        assert_eq!((history.recent(105).count(), history.recent(112).count()), (3, 0));
        history.expire(189);
        assert_eq!(history.count(), 3);
        history.expire(190);
        assert_eq!(history.count(), 2);
        history.expire(196);
        assert!(history.is_empty() && history.recent(196).rtts().is_none());
    }

    #[test]
    fn a_clock_that_goes_back_loses_no_sample() {
        let mut history = History::default();
        history.add(100, &tally(&[1]));
        history.add(98, &tally(&[2]));
        assert_eq!((history.count(), history.cells().count()), (2, 1));
    }
}

//! The recent past of a series.

use pping_common::series::SeriesCounts;

use super::{cells::Cell, hosts::RecentHosts};
use crate::{aggregate::Measurements, worst::Hosts};

/// The number of cells that are kept: 15 minutes.
pub const CELLS: u64 = 90;

/// The number of cells that count as recent: a minute. The last of them has only begun.
const RECENT: u64 = 6;

/// The bytes before a packed cell, which hold its length.
const PREFIX: usize = 2;

/// The cells of a series, the oldest first. Cells in which nothing passed are left out.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// The cells that are over, packed, each after its length.
    past: Vec<u8>,
    latest: Option<Cell>,
    /// The number of samples in all cells.
    count: u64,
    hosts: RecentHosts,
}

impl History {
    /// Adds the measurements of a second in the cell with this number. If the clock goes back by a cell, they count for
    /// the latest one. If it goes back further, the model forgets the history first.
    pub(super) fn add(&mut self, number: u64, counts: &SeriesCounts) {
        if self.latest.as_ref().is_some_and(|latest| latest.number < number) {
            self.pack_latest();
        }
        let latest = self.latest.get_or_insert_with(|| Cell::new(number));
        self.count -= latest.measured.count();
        latest.measured.add(counts);
        self.count += latest.measured.count();
        self.hosts.add(number / RECENT, counts);
    }

    /// Adds what was measured in a longer time, which ended with the cell of this number.
    #[cfg(feature = "history")]
    pub(super) fn restore(&mut self, number: u64, measured: &Measurements) {
        self.add(number, &SeriesCounts::EMPTY);
        if let Some(latest) = &mut self.latest {
            latest.measured.merge(measured);
        }
        self.count += measured.count();
    }

    /// Packs the latest cell.
    fn pack_latest(&mut self) {
        let Some(latest) = self.latest.take() else { return };
        let mut packed = vec![0; PREFIX];
        latest.pack(&mut packed);
        // 193 bins with ten bytes each are fewer than 64 KiB.
        let length = (packed.len() - PREFIX) as u16;
        packed[..PREFIX].copy_from_slice(&length.to_le_bytes());
        if self.past.capacity() - self.past.len() < packed.len() {
            // The memory grows by an eighth: doubling would leave half of it unused.
            self.past.reserve_exact(packed.len() + self.past.len() / 8);
        }
        self.past.extend(packed);
    }

    /// Returns the packed cells.
    fn packed(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.past.as_slice();
        std::iter::from_fn(move || {
            let (length, after) = rest.split_first_chunk::<PREFIX>()?;
            let (cell, next) = after.split_at_checked(u16::from_le_bytes(*length).into())?;
            rest = next;
            Some(cell)
        })
    }

    /// Drops cells that are older than [`CELLS`], when the present cell has this number.
    pub(super) fn expire(&mut self, number: u64) {
        self.hosts.advance(number / RECENT);
        if let Some(old) = number.checked_sub(CELLS) {
            self.drop_through(old);
        }
    }

    /// Drops all but the last minute, when the present cell has this number.
    pub(super) fn keep_recent(&mut self, number: u64) {
        if let Some(old) = number.checked_sub(RECENT) {
            self.drop_through(old);
        }
        self.past.shrink_to_fit();
    }

    /// Drops the cells up to and including this number.
    fn drop_through(&mut self, number: u64) {
        let old = self.packed().take_while(|cell| Cell::number_of(cell) <= number);
        let (bytes, count) = old.fold((0, 0), |(bytes, count), cell| {
            (bytes + PREFIX + cell.len(), count + Cell::unpack(cell).measured.count())
        });
        self.past.drain(..bytes);
        self.count -= count;
        if let Some(latest) = self.latest.take_if(|latest| latest.number <= number) {
            self.count -= latest.measured.count();
        }
    }

    /// Returns all cells.
    pub(super) fn cells(&self) -> impl Iterator<Item = Cell> {
        self.packed().map(Cell::unpack).chain(self.latest.clone())
    }

    /// Returns the last minute, when the present cell has this number.
    pub(super) fn recent(&self, number: u64) -> Measurements {
        let is_recent = |cell: u64| cell + RECENT > number;
        let mut sum = Measurements::default();
        for cell in self.packed().filter(|cell| is_recent(Cell::number_of(cell))) {
            sum.merge(&Cell::unpack(cell).measured);
        }
        if let Some(latest) = self.latest.as_ref().filter(|latest| is_recent(latest.number)) {
            sum.merge(&latest.measured);
        }
        sum
    }

    /// Returns the hosts that replied in the last minute or shortly before, when the present cell has this number.
    pub(super) fn hosts(&self, number: u64) -> Hosts {
        self.hosts.recent(number / RECENT)
    }

    /// Returns the lowest RTT of all cells, ns.
    pub(super) fn lowest(&self) -> Option<u64> {
        let latest = self.latest.as_ref().and_then(|latest| latest.measured.lowest());
        self.packed().filter_map(Cell::lowest_of).chain(latest).min()
    }

    /// Whether no cell is left.
    pub(super) fn is_empty(&self) -> bool {
        self.past.is_empty() && self.latest.is_none()
    }

    /// Returns the number of samples in all cells.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the memory that the history takes, bytes.
    pub(super) fn size(&self) -> usize {
        let cells = self.past.capacity() + self.latest.as_ref().map_or(0, |latest| latest.measured.size());
        size_of::<Self>() + cells + self.hosts.size()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::aggregate::Distribution;

    fn counts(rtts: &[u64]) -> SeriesCounts {
        let mut counts = SeriesCounts::EMPTY;
        for &rtt in rtts {
            counts.sample(rtt, 0);
        }
        counts.sent.packets = rtts.len() as u64;
        counts
    }

    proptest! {
        #[test]
        fn a_minute_is_the_distribution_of_its_samples(
            seconds in prop::collection::vec(prop::collection::vec(0_u64..80_000_000_000, 0..20), 1..60),
        ) {
            let (mut history, mut distribution) = (History::default(), Distribution::default());
            for (second, rtts) in seconds.iter().enumerate() {
                history.add(second as u64 / 10, &counts(rtts));
                distribution.add(&counts(rtts));
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
    fn minutes_expire_after_15() {
        let mut history = History::default();
        history.add(100, &counts(&[1_000_000]));
        history.add(106, &counts(&[3_000_000, 4_000_000]));
        assert_eq!((history.recent(106).count(), history.lowest()), (2, Some(1_000_000)));
        assert_eq!((history.recent(105).count(), history.recent(112).count()), (3, 0));
        history.expire(189);
        assert_eq!(history.count(), 3);
        history.expire(190);
        assert_eq!((history.count(), history.lowest()), (2, Some(3_000_000)));
        history.expire(196);
        assert!(history.is_empty() && history.recent(196).rtts().is_none());
    }

    #[test]
    fn a_clock_that_goes_back_loses_no_sample() {
        let mut history = History::default();
        history.add(100, &counts(&[1]));
        history.add(99, &counts(&[2]));
        assert_eq!((history.count(), history.cells().count()), (2, 1));
    }
}

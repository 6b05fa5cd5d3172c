//! Samples by their time and their round-trip time, in as many columns and lines as fit.

use std::collections::BTreeMap;

use pping_common::hist::{self, BINS};

use crate::{
    aggregate::rtt_at,
    recent::{CELLS, CellAnswer},
};

/// How much of the past is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::top) enum Range {
    /// The last minute.
    Minute,
    /// Five minutes.
    FiveMinutes,
    /// All that pping keeps.
    #[default]
    QuarterHour,
}

impl Range {
    /// Returns its length in minutes.
    pub(in crate::top) const fn minutes(self) -> u64 {
        match self {
            Self::Minute => 1,
            Self::FiveMinutes => 5,
            Self::QuarterHour => 15,
        }
    }

    pub(in crate::top) const fn longer(self) -> Self {
        match self {
            Self::Minute => Self::FiveMinutes,
            Self::FiveMinutes | Self::QuarterHour => Self::QuarterHour,
        }
    }

    pub(in crate::top) const fn shorter(self) -> Self {
        match self {
            Self::QuarterHour => Self::FiveMinutes,
            Self::FiveMinutes | Self::Minute => Self::Minute,
        }
    }
}

/// The cells that are shown, by their numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// The length of a cell, ns.
    cell: u64,
    first: u64,
    last: u64,
}

impl Span {
    /// Returns the cells of a range that ends at `time`, ns.
    pub(super) fn new(range: Range, time: u64, cell: u64) -> Self {
        let cell = cell.max(1);
        let cells = (range.minutes() * 60_000_000_000 / cell).clamp(1, CELLS);
        let last = time / cell;
        Self { cell, first: last.saturating_sub(cells - 1), last }
    }

    fn cells(&self) -> usize {
        (self.last - self.first + 1) as usize
    }

    /// Returns the cells of a series that are shown, with their numbers.
    fn of<'a>(&self, cells: &'a [CellAnswer]) -> impl Iterator<Item = (u64, &'a CellAnswer)> {
        let Self { cell, first, last } = *self;
        cells.iter().map(move |it| (it.time / cell, it)).filter(move |(it, _)| (first..=last).contains(it))
    }
}

/// The distribution of the samples that are shown, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Figures {
    pub(super) count: u64,
    pub(super) min: u64,
    /// The 50th, 95th and 99th percentile.
    pub(super) percentiles: [u64; 3],
    pub(super) max: u64,
}

/// Returns the figures of the cells that are shown, if they have a sample.
pub(super) fn figures(cells: &[CellAnswer], span: Span) -> Option<Figures> {
    let mut bins: BTreeMap<usize, u64> = BTreeMap::new();
    let (mut min, mut max) = (u64::MAX, 0);
    for (_, cell) in span.of(cells) {
        for &(bound, count) in &cell.histogram {
            *bins.entry(hist::bin(bound)).or_default() += u64::from(count);
        }
        if let Some(rtt) = cell.rtt {
            (min, max) = (min.min(rtt.min), max.max(rtt.max));
        }
    }
    let count: u64 = bins.values().sum();
    if count == 0 || min > max {
        return None;
    }
    let at = |percentile: u64| {
        let rank = (count * percentile).div_ceil(100).max(1);
        rtt_at(rank, bins.iter().map(|(&bin, &count)| (bin, count)), (min, max))
    };
    Some(Figures { count, min, percentiles: [50, 95, 99].map(at), max })
}

/// How a span is divided into the columns of a width. A step is the time that cells of one column cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// Cells that share a column.
    pub(super) cells: usize,
    /// Columns of each step.
    pub(super) wide: usize,
    /// All columns together.
    pub(super) total: usize,
}

impl Columns {
    pub(super) fn new(span: Span, width: usize) -> Self {
        let (all, width) = (span.cells(), width.max(1));
        let cells = all.div_ceil(width);
        let steps = all.div_ceil(cells);
        let wide = (width / steps).max(1);
        Self { cells, wide, total: steps * wide }
    }

    pub(super) fn steps(self) -> usize {
        self.total / self.wide
    }
}

/// The number of samples by round-trip time and by step.
#[derive(Debug)]
pub(super) struct Grid {
    /// The lowest bin.
    first: usize,
    /// Bins that share a line.
    bins: usize,
    /// By line, the longest round-trip time first, and by step, the oldest first.
    pub(super) counts: Vec<Vec<u64>>,
}

impl Grid {
    /// Counts the samples of a series that are shown. Neighbouring bins share a line if there are more bins than lines.
    /// With room to spare, there are lines for the bins around them too.
    pub(super) fn new(cells: &[CellAnswer], span: Span, columns: Columns, lines: usize) -> Self {
        let lines = lines.clamp(1, BINS);
        let filled = || span.of(cells).flat_map(|(_, it)| &it.histogram).map(|&(bound, _)| hist::bin(bound));
        let (low, high) = (filled().min().unwrap_or(0), filled().max().unwrap_or(0));
        let filled = high - low + 1;
        let bins = filled.div_ceil(lines);
        let spare = lines * bins - filled;
        let first = low.saturating_sub(spare / 2).min(BINS.saturating_sub(lines * bins));
        let mut counts = vec![vec![0; columns.steps()]; lines];
        for (number, cell) in span.of(cells) {
            // Steps are counted back from the latest cell, so the oldest step may have fewer cells.
            let step = columns.steps() - 1 - (span.last - number) as usize / columns.cells;
            for &(bound, count) in &cell.histogram {
                let line = (hist::bin(bound) - first) / bins;
                counts[lines - 1 - line][step] += u64::from(count);
            }
        }
        Self { first, bins, counts }
    }

    /// Returns the longest round-trip time in a line, ns, if it has a bound.
    pub(super) fn bound(&self, line: usize) -> Option<u64> {
        let bin = self.first + (self.counts.len() - line) * self.bins - 1;
        (bin < hist::OVERFLOW).then(|| hist::upper_bound(bin))
    }

    /// Returns the most samples of a line in a step.
    pub(super) fn most(&self) -> u64 {
        self.counts.iter().flatten().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{recent::CELL, top::tests::cell};

    const NOW: u64 = 1000 * CELL + 1;

    fn span(range: Range) -> Span {
        Span::new(range, NOW, CELL)
    }

    #[test]
    fn a_range_fills_the_width_with_whole_columns() {
        for (range, width, cells, wide, total) in [
            (Range::QuarterHour, 56, 2, 1, 45),
            (Range::QuarterHour, 90, 1, 1, 90),
            (Range::QuarterHour, 190, 1, 2, 180),
            (Range::FiveMinutes, 56, 1, 1, 30),
            (Range::Minute, 56, 1, 9, 54),
            (Range::QuarterHour, 1, 90, 1, 1),
            (Range::QuarterHour, 0, 90, 1, 1),
        ] {
            let columns = Columns::new(span(range), width);
            assert_eq!(columns, Columns { cells, wide, total }, "{range:?} in {width}");
        }
    }

    #[test]
    fn the_latest_cell_is_in_the_last_step_and_an_old_one_in_none() {
        let cells =
            [cell(911, &[(5_000_000, 9)]), cell(910, &[(5_000_000, 7)]), cell(1000, &[(5_000_000, 8)])];
        let span = span(Range::QuarterHour);
        let grid = Grid::new(&cells, span, Columns::new(span, 90), 5);
        let line = grid.counts.iter().find(|line| line.iter().any(|it| *it > 0)).unwrap();
        assert_eq!((line[0], line[89], line.iter().sum::<u64>()), (9, 8, 17));
        assert_eq!(figures(&cells, span).unwrap().count, 17);
    }

    #[test]
    fn sample_goes_to_the_first_line_long_enough() {
        let rtts = [51_000, 900_000, 20_000_000, 1_500_000_000];
        let cells = [cell(1000, &rtts.map(|rtt| (hist::upper_bound(hist::bin(rtt)), 1)))];
        let span = span(Range::Minute);
        for lines in [4, 9, 30, 200, 500] {
            let grid = Grid::new(&cells, span, Columns::new(span, 6), lines);
            for rtt in rtts {
                let line =
                    (0..grid.counts.len()).rev().find(|line| grid.bound(*line).unwrap() >= rtt).unwrap();
                assert!(grid.counts[line][5] > 0, "{rtt} in {lines} lines");
            }
        }
    }

    #[test]
    fn times_that_cannot_be_are_drawn_as_well() {
        for (time, length) in
            [(0, 0), (0, CELL), (u64::MAX, 0), (u64::MAX, 1), (1, u64::MAX), (u64::MAX, u64::MAX)]
        {
            let span = Span::new(Range::QuarterHour, time, length);
            assert!((1..=CELLS as usize).contains(&span.cells()), "{span:?}");
            let samples = [cell(3, &[(u64::MAX, u32::MAX), (0, 1)])];
            Grid::new(&samples, span, Columns::new(span, 9), 5);
        }
    }

    #[test]
    fn percentiles_of_a_range_are_of_all_its_samples() {
        let cells = [cell(999, &[(1_000_000, 96)]), cell(1000, &[(80_000_000, 4)])];
        let figures = figures(&cells, span(Range::Minute)).unwrap();
        let [p50, p95, p99] = figures.percentiles;
        assert!(p50 <= 1_100_000 && p95 <= 1_100_000 && p99 > 70_000_000, "{figures:?}");
        assert_eq!(super::figures(&[], span(Range::Minute)), None);
    }

    proptest! {
        #[test]
        fn every_sample_of_a_range_is_in_the_grid(
            samples in prop::collection::vec((900_u64..1010, any::<u64>(), 1_u32..9), 0..40),
            width in 0_usize..200,
            lines in 0_usize..300,
        ) {
            let cells: Vec<_> = samples.iter().map(|&(number, rtt, count)| cell(number, &[(rtt, count)])).collect();
            for range in [Range::Minute, Range::FiveMinutes, Range::QuarterHour] {
                let span = span(range);
                let grid = Grid::new(&cells, span, Columns::new(span, width), lines);
                let expected: u64 = samples
                    .iter()
                    .filter(|(number, ..)| (1001 - 6 * range.minutes()..=1000).contains(number))
                    .map(|&(.., count)| u64::from(count))
                    .sum();
                prop_assert_eq!(grid.counts.iter().flatten().sum::<u64>(), expected);
            }
        }
    }
}

//! The measurements of series, added up.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::{aggregate::Measurements, groups::SeriesName};

/// What was measured of each series.
pub(crate) type Series = HashMap<SeriesName, Measurements, RandomState>;

/// Adds up rows by series. Files are sorted by series, so most rows are of the same one as the row before, which saves looking for it.
#[derive(Default)]
pub(super) struct SeriesSums {
    all: Series,
    latest: Option<(SeriesName, Measurements)>,
}

impl SeriesSums {
    /// Adds a row.
    pub(super) fn add(&mut self, series: SeriesName, measured: Measurements) {
        match &mut self.latest {
            Some((latest, sum)) if *latest == series => sum.merge(&measured),
            _ => {
                self.put_latest();
                self.latest = Some((series, measured));
            }
        }
    }

    fn put_latest(&mut self) {
        if let Some((series, sum)) = self.latest.take() {
            match self.all.get_mut(&series) {
                Some(known) => known.merge(&sum),
                None => drop(self.all.insert(series, sum)),
            }
        }
    }

    /// Adds other sums.
    pub(super) fn join(&mut self, others: Self) {
        for (series, sum) in others.finish() {
            self.add(series, sum);
        }
    }

    /// The sums.
    pub(super) fn finish(mut self) -> Series {
        self.put_latest();
        self.all
    }
}

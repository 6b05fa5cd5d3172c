//! The measurements of series, added up.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    sync::Arc,
};

use foldhash::fast::RandomState;

use super::{place::Place, row::Row};
use crate::{
    aggregate::Measurements,
    groups::{Columns, GroupName, SeriesName},
};

/// What tells series apart: the label of the group, and the place. A group is the same by its label, even if its addresses or
/// other columns have changed.
type Key = (Arc<str>, Place);

/// What was measured of each series, in the order of labels and places.
pub(crate) type Series = BTreeMap<Key, SeriesSum>;

/// What was measured of a series.
#[derive(Clone, Debug)]
pub(crate) struct SeriesSum {
    /// The group, as it was in the latest interval.
    pub(super) group: Arc<GroupName>,
    /// The start of that interval, seconds since the Unix epoch.
    time: u64,
    pub(crate) measured: Measurements,
}

/// What was measured of a group at each place.
type Places = Vec<(Place, Measurements)>;

/// What was measured of a group.
pub(super) struct GroupSum {
    /// The group, as it was in the latest interval of all series.
    pub(super) name: Arc<GroupName>,
    pub(super) series: Places,
}

/// Adds up rows by series. Files are sorted by series, so most rows are of the same one as the row before, which saves looking for it.
#[derive(Default)]
pub(super) struct SeriesSums {
    all: HashMap<Key, SeriesSum, RandomState>,
    latest: Option<(SeriesName, SeriesSum)>,
}

impl SeriesSum {
    fn add(&mut self, other: Self) {
        self.measured.merge(&other.measured);
        if other.age() > self.age() {
            (self.group, self.time) = (other.group, other.time);
        }
    }

    /// Orders names by their time. Files are read in any order, so names of the same time need an order, too.
    fn age(&self) -> (u64, Option<&str>, &Columns) {
        let GroupName { prefix, columns, .. } = &*self.group;
        (self.time, prefix.as_deref(), columns)
    }
}

impl SeriesSums {
    /// Adds a row.
    pub(super) fn add(&mut self, Row { series, time, measured }: Row) {
        let added = SeriesSum { group: Arc::clone(&series.group), time, measured };
        match &mut self.latest {
            Some((latest, sum)) if *latest == series => sum.add(added),
            _ => {
                self.put_latest();
                self.latest = Some((series, added));
            }
        }
    }

    fn put_latest(&mut self) {
        if let Some((series, sum)) = self.latest.take() {
            self.put((Arc::clone(&series.group.label), Place::of(&series)), sum);
        }
    }

    fn put(&mut self, key: Key, sum: SeriesSum) {
        match self.all.entry(key) {
            Entry::Occupied(mut known) => known.get_mut().add(sum),
            Entry::Vacant(free) => drop(free.insert(sum)),
        }
    }

    /// Adds other sums.
    pub(super) fn join(&mut self, mut others: Self) {
        others.put_latest();
        for (key, sum) in others.all {
            self.put(key, sum);
        }
    }

    /// The sums.
    pub(super) fn finish(mut self) -> Series {
        self.put_latest();
        self.all.into_iter().collect()
    }
}

/// The series of each group, in the order of labels.
pub(super) fn by_group(series: Series) -> Vec<GroupSum> {
    let mut groups: BTreeMap<Arc<str>, (SeriesSum, Places)> = BTreeMap::new();
    for ((label, place), sum) in series {
        let SeriesSum { group, time, measured } = sum;
        let name = SeriesSum { group, time, measured: Measurements::default() };
        match groups.get_mut(&label) {
            Some((known, series)) => {
                known.add(name);
                series.push((place, measured));
            }
            None => drop(groups.insert(label, (name, vec![(place, measured)]))),
        }
    }
    groups.into_values().map(|(name, series)| GroupSum { name: name.group, series }).collect()
}

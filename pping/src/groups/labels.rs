//! Labels of groups, and their numbers.

use std::sync::Arc;

use super::{
    chunks::{Chunks, Keyed},
    joined,
};
use crate::fingerprint::fingerprint;

/// The label of groups for which there was no room.
pub const OTHER: &str = "other";

/// The label of hosts that a groups file does not list.
pub const UNLISTED: &str = "unlisted";

/// The label of everything, if there are no groups.
pub const ALL: &str = "all";

/// Stands between the labels of the two ends of a group. One in a label has a `\` before it.
pub(super) const BETWEEN_ENDS: char = '+';

/// The other columns that a groups file has for a label: names and values.
pub type Columns = Vec<(Arc<str>, Arc<str>)>;

/// Labels and their numbers. A label has the same number in every run, whatever else is loaded, so that its counters go on.
/// Cloning is cheap, and the clone stays as it is.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    /// By number.
    known: Chunks<Known>,
}

/// A label with its number.
#[derive(Clone, Debug)]
struct Known {
    number: u32,
    label: Arc<str>,
    /// Its other columns.
    columns: Arc<Columns>,
}

impl Keyed for Known {
    type Key = u32;

    fn key(&self) -> u32 {
        self.number
    }
}

impl Labels {
    /// Returns the number of a label, and gives it one if it has none. `columns` replaces its other columns.
    pub fn number(&mut self, label: &str, columns: Columns) -> u32 {
        self.number_with(label, Arc::new(columns))
    }

    /// The same, of columns that others have, too.
    pub fn number_with(&mut self, label: &str, columns: Arc<Columns>) -> u32 {
        let number = self.find_number(label);
        self.known.insert(Known { number, label: label.into(), columns });
        number
    }

    /// Replaces the other columns of a label, if they are others. Returns whether they were.
    pub fn set_columns(&mut self, number: u32, columns: Arc<Columns>) -> bool {
        let Some(known) = self.known.get(&number).filter(|known| known.columns != columns) else {
            return false;
        };
        let label = Arc::clone(&known.label);
        self.known.insert(Known { number, label, columns });
        true
    }

    /// The number of a label; `None` if it is unknown.
    pub fn known_number(&self, label: &str) -> Option<u32> {
        let number = self.find_number(label);
        self.known.get(&number).map(|known| known.number)
    }

    /// The number that a label has or would get: its fingerprint, or the next free number if another label has that.
    fn find_number(&self, label: &str) -> u32 {
        let first = fingerprint(&[label]) as u32;
        let numbers = (0..).map(|step| first.wrapping_add(step));
        let is_free_or_its_own =
            |number: &u32| self.known.get(number).is_none_or(|known| *known.label == *label);
        // No label has the number 0. There are more numbers than labels, so one is free.
        numbers.filter(|&number| number != 0).find(is_free_or_its_own).unwrap_or(first)
    }

    /// Adds the labels of a group of a previous run, so that its counters can still be named. The name of the group may join two
    /// labels with [`BETWEEN_ENDS`], and end with a class of service.
    pub fn add_labels_of(&mut self, label: &str) {
        let label = label.rsplit_once(" dscp ").map_or(label, |(label, _)| label);
        let of_ends = joined::split(label, BETWEEN_ENDS);
        for label in of_ends.iter().map(String::as_str).chain([label]) {
            if self.known_number(label).is_none() {
                self.number(label, Columns::new());
            }
        }
    }

    /// Forgets a label, which must have neither a prefix nor a series: another label may get its number.
    pub fn forget(&mut self, number: u32) {
        let next = if number == u32::MAX { 1 } else { number + 1 };
        // The label with the next number may have been pushed there by this one, and would not be found without it.
        if self.known.get(&next).is_none() {
            self.known.remove(&number);
        }
    }

    /// The number of labels.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The label with this number, and its other columns: [`UNLISTED`] for 0, and [`OTHER`] for an unknown number.
    pub fn get(&self, number: u32) -> (Arc<str>, &Columns) {
        const NOTHING: &Columns = &Columns::new();
        match self.known.get(&number) {
            Some(Known { label, columns, .. }) => (Arc::clone(label), columns),
            None if number == 0 => (UNLISTED.into(), NOTHING),
            None => (OTHER.into(), NOTHING),
        }
    }
}

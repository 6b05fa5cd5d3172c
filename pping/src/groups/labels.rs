//! Labels of groups, and their numbers.

use std::{collections::HashMap, sync::Arc};

use crate::fingerprint::fingerprint;

/// The label of groups for which there was no room.
pub const OTHER: &str = "other";

/// The label of hosts that a groups file does not list.
pub const UNLISTED: &str = "unlisted";

/// The label of everything, if there are no groups.
pub const ALL: &str = "all";

/// The other columns that a groups file has for a label: names and values.
pub type Columns = Vec<(Arc<str>, Arc<str>)>;

/// Labels and their numbers. A label has the same number in every run, whatever else is loaded, so that its counters go on.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    /// By number, with the other columns.
    known: HashMap<u32, (Arc<str>, Columns)>,
}

impl Labels {
    /// Returns the number of a label, and gives it one if it has none. `columns` replaces its other columns.
    pub fn number(&mut self, label: &str, columns: Columns) -> u32 {
        let number = self.find_number(label);
        self.known.insert(number, (label.into(), columns));
        number
    }

    /// The number that a label has or would get: its fingerprint, or the next free number if another label has that.
    fn find_number(&self, label: &str) -> u32 {
        let first = fingerprint(&[label]) as u32;
        let numbers = (0..).map(|step| first.wrapping_add(step));
        let is_free_or_its_own =
            |number: &u32| self.known.get(number).is_none_or(|(known, _)| **known == *label);
        // No label has the number 0. There are more numbers than labels, so one is free.
        numbers.filter(|&number| number != 0).find(is_free_or_its_own).unwrap_or(first)
    }

    /// Adds the labels of a group of a previous run, so that its counters can still be named. The name of the group may join two
    /// labels with `+`, and end with a class of service.
    pub fn add_labels_of(&mut self, label: &str) {
        let label = label.rsplit_once(" dscp ").map_or(label, |(label, _)| label);
        for label in label.split('+').chain([label]) {
            let number = self.find_number(label);
            self.known.entry(number).or_insert_with(|| (label.into(), Columns::new()));
        }
    }

    /// The label with this number, and its other columns: [`UNLISTED`] for 0, and [`OTHER`] for an unknown number.
    pub fn get(&self, number: u32) -> (Arc<str>, &Columns) {
        const NOTHING: &Columns = &Columns::new();
        match self.known.get(&number) {
            Some((label, columns)) => (Arc::clone(label), columns),
            None if number == 0 => (UNLISTED.into(), NOTHING),
            None => (OTHER.into(), NOTHING),
        }
    }
}

//! What groups there are, and what they are called.

mod error;
mod file;
mod lookup;
mod names;

use std::{collections::HashMap, sync::Arc};

pub use error::Error;
pub use file::load;
use ipnet::IpNet;
pub use lookup::Lookup;
pub use names::{GroupName, Names, SeriesName};

use crate::fingerprint::fingerprint;

/// The label of what there was no room for.
pub const OTHER: &str = "other";

/// The label of hosts that a groups file does not list.
pub const UNLISTED: &str = "unlisted";

/// The label of everything, where there are no groups.
pub const ALL: &str = "all";

/// What a groups file says of a group beside its label: columns and values.
pub type More = Vec<(Arc<str>, Arc<str>)>;

/// Labels and their numbers. A label has the same number whatever else is loaded, and in every run, so that what is counted
/// under it goes on.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    /// By number, with what else is known of each.
    known: HashMap<u32, (Arc<str>, More)>,
}

impl Labels {
    /// The number of a label, which is given one if it has none yet; `more` is what else is known of it now.
    pub fn number(&mut self, label: &str, more: More) -> u32 {
        let number = self.place(label);
        self.known.insert(number, (label.into(), more));
        number
    }

    /// The number that a label has, or would be given. Of two labels with the same fingerprint the one that comes first in
    /// the file has it for its number, and the other the next.
    fn place(&self, label: &str) -> u32 {
        let first = fingerprint(&[label]) as u32;
        let numbers = (0..).map(|step| first.wrapping_add(step));
        let is_free_or_its_own =
            |number: &u32| self.known.get(number).is_none_or(|(known, _)| **known == *label);
        // 0 is the number of no label. There are more numbers than labels.
        numbers.filter(|&number| number != 0).find(is_free_or_its_own).unwrap_or(first)
    }

    /// Gives a label of a run before this one its number, by itself or as what [`GroupName::new`] makes of one or two, so
    /// that what was counted under it can still be named.
    pub fn know(&mut self, label: &str) {
        let label = label.rsplit_once(" dscp ").map_or(label, |(label, _)| label);
        for label in label.split('+').chain([label]) {
            let number = self.place(label);
            self.known.entry(number).or_insert_with(|| (label.into(), More::new()));
        }
    }

    /// The label with this number, and what else is known of it; 0 is [`UNLISTED`], and [`OTHER`] whatever is known no more.
    pub fn get(&self, number: u32) -> (Arc<str>, &More) {
        const NOTHING: &More = &More::new();
        match self.known.get(&number) {
            Some((label, more)) => (Arc::clone(label), more),
            None if number == 0 => (UNLISTED.into(), NOTHING),
            None => (OTHER.into(), NOTHING),
        }
    }
}

/// What a groups file says.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// Prefixes, each with the number of its label.
    pub prefixes: Vec<(IpNet, u32)>,
}

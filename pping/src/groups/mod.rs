//! What groups there are, and what they are called.

mod file;
mod lookup;
mod names;

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

pub use file::load;
pub(crate) use file::place;
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
        // Of two labels with the same fingerprint the one that comes first in the file has the number itself.
        let mut number = fingerprint(&[label]) as u32;
        loop {
            match self.known.entry(number) {
                // The number of no label.
                _ if number == 0 => {}
                Entry::Vacant(vacant) => {
                    vacant.insert((label.into(), more));
                    return number;
                }
                Entry::Occupied(mut occupied) if *occupied.get().0 == *label => {
                    occupied.get_mut().1 = more;
                    return number;
                }
                Entry::Occupied(_) => {}
            }
            number = number.wrapping_add(1);
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

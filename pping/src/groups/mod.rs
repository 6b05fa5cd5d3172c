//! What groups there are, and what they are called.

mod file;
mod lookup;
mod names;

use std::sync::Arc;

pub use file::load;
use indexmap::IndexMap;
use ipnet::IpNet;
pub use lookup::Lookup;
pub use names::{GroupName, Names, SeriesName};

/// The label of what there was no room for.
pub const OTHER: &str = "other";

/// The label of hosts that a groups file does not list.
pub const UNLISTED: &str = "unlisted";

/// The label of everything, where there are no groups.
pub const ALL: &str = "all";

/// What a groups file says of a group beside its label: columns and values.
pub type More = Vec<(Arc<str>, Arc<str>)>;

/// Labels and their numbers. A label keeps its number whatever else is loaded, so that what is counted under it goes on.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    /// In the order of their numbers, the first of which is 1, with what else is known of each.
    known: IndexMap<Arc<str>, More>,
}

impl Labels {
    /// The number of a label, which is given one if it has none yet; `more` is what else is known of it now.
    pub fn number(&mut self, label: &str, more: More) -> u32 {
        let entry = self.known.entry(label.into());
        let index = entry.index();
        *entry.or_default() = more;
        index as u32 + 1
    }

    /// The label with this number, and what else is known of it; 0 is [`UNLISTED`].
    pub fn get(&self, number: u32) -> (Arc<str>, &More) {
        const NOTHING: &More = &More::new();
        let known = number.checked_sub(1).and_then(|index| self.known.get_index(index as usize));
        known.map_or((UNLISTED.into(), NOTHING), |(label, more)| (Arc::clone(label), more))
    }
}

/// What a groups file says.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// Prefixes, each with the number of its label.
    pub prefixes: Vec<(IpNet, u32)>,
}

//! The networks at the other end (`--remote-groups`): whose addresses they are, by a file of prefixes.

mod database;
mod file_error;
mod listed;
mod table;

use std::{
    collections::HashSet,
    net::IpAddr,
    path::Path,
    sync::{Arc, PoisonError, RwLock},
};

use pping_common::parse::IpAddress;

use self::listed::Listed;
pub use self::{file_error::Error, listed::Prefixes};
use super::{
    labels::{Columns, Labels, OTHER, UNLISTED},
    lookup::Lookup,
};
pub use crate::config::NETWORK;
use crate::config::RemoteBy as By;

/// The networks at the other end. Cloning gives another handle to the same ones. By default there are none.
#[derive(Clone, Debug, Default)]
pub struct Networks(Arc<RwLock<Option<Arc<Known>>>>);

/// The networks of a file.
#[derive(Debug, Default)]
struct Known {
    /// Also those of the file before: samples may still count for them.
    labels: Labels,
    lookup: Lookup,
    /// The numbers of networks of this file, and of those that only the file before has.
    present: HashSet<u32>,
    before: HashSet<u32>,
}

impl Networks {
    /// Networks of these prefixes, without labels.
    pub fn of_prefixes(prefixes: &Prefixes) -> Self {
        let lookup = Lookup::new(prefixes.iter().copied());
        let known = Known { lookup, ..Known::default() };
        Self(Arc::new(RwLock::new(Some(Arc::new(known)))))
    }

    /// Reads a file, whose networks take the place of those before: a database in the format of `MaxMind` if its name ends in
    /// `.mmdb`, else CSV. Returns its prefixes. A network that was there before keeps its number.
    ///
    /// # Errors
    /// If the file cannot be read, has an error, or does not say what networks are told apart by. The networks stay as they were.
    pub fn load(&self, path: &Path, by: By) -> Result<Prefixes, Error> {
        let before = self.known().unwrap_or_default();
        let is_database = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("mmdb"));
        let read = if is_database { database::read } else { table::read };
        let (mut labels, prefixes) =
            read(path, Listed::after(before.labels.clone()), by)?.finish(path, by)?;
        let lookup = Lookup::new(prefixes.iter().copied());
        let present: HashSet<u32> = prefixes.iter().map(|(_, number)| *number).collect();
        // Otherwise labels would add up over the years.
        before.before.difference(&present).for_each(|number| labels.forget(*number));
        let before = before.present.difference(&present).copied().collect();
        let known = Some(Arc::new(Known { labels, lookup, present, before }));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = known;
        Ok(prefixes)
    }

    fn known(&self) -> Option<Arc<Known>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether networks are told apart.
    pub fn are_known(&self) -> bool {
        self.known().is_some()
    }

    /// The number of an address's network; 0 if it is in none.
    pub fn number(&self, address: IpAddress) -> u32 {
        self.known().map_or(0, |known| known.lookup.label(address))
    }

    /// The label of an address's network, such as `AS64500 Example`; `None` if it is in none.
    pub fn label(&self, address: IpAddr) -> Option<Arc<str>> {
        let known = self.known()?;
        let address = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        match known.lookup.label(IpAddress::from_bytes(address.octets())) {
            0 => None,
            number => Some(known.labels.get(number).0),
        }
    }

    /// The label of the network with this number, and its other columns: [`UNLISTED`] for 0, and [`OTHER`] for an unknown number.
    pub(super) fn get(&self, number: u32) -> (Arc<str>, Columns) {
        let Some(known) = self.known() else {
            return (if number == 0 { UNLISTED } else { OTHER }.into(), Columns::new());
        };
        let (label, columns) = known.labels.get(number);
        (label, columns.clone())
    }
}

#[cfg(test)]
mod tests;

//! The map that keeps the counters of groups from one agent to the next.

use aya::maps::{HashMap, MapData, MapError};
use pping_common::abi::{PersistentEntry, PersistentKey};

/// The map. Only the agent that holds the lock of the pinned maps has one. The kernel replaces an entry as a whole, so
/// a killed agent leaves no entry half written.
pub struct PersistentMap(HashMap<MapData, PersistentKey, PersistentEntry>);

impl PersistentMap {
    pub(super) fn new(entries: HashMap<MapData, PersistentKey, PersistentEntry>) -> Self {
        Self(entries)
    }

    /// The keys of all entries.
    pub fn keys(&self) -> Vec<PersistentKey> {
        // The kernel lists all keys unless some are removed meanwhile.
        self.0.keys().filter_map(Result::ok).collect()
    }

    /// Reads an entry, if there is one.
    pub fn read(&self, key: &PersistentKey) -> Option<PersistentEntry> {
        self.0.get(key, 0).ok()
    }

    /// Writes an entry. Returns `false` if there is no room.
    pub fn write(&mut self, key: &PersistentKey, entry: &PersistentEntry) -> bool {
        self.0.insert(key, entry, 0).inspect_err(log).is_ok()
    }

    /// Removes an entry.
    pub fn remove(&mut self, key: &PersistentKey) {
        self.0.remove(key).unwrap_or_else(|error| log(&error));
    }
}

fn log(error: &MapError) {
    tracing::debug!("cannot access the persistent counts: {error}");
}

//! The counters of groups, kept outside the process, so that none of them goes down when an agent stops, crashes or is
//! replaced.
//!
//! Each epoch of the histograms is one transaction. Each entry has two totals, one of which is current. In each entry
//! that changes, the agent writes the other totals with the number of the epoch. One store then commits the epoch
//! (`SeriesTable::commit`), and all new totals become current at once. If the agent is killed before that, the old totals
//! stay current, and the epoch's samples are still in the histograms.

use std::collections::HashSet;

use pping_common::abi::{LABEL_BYTES, PersistentEntry, PersistentKey, PersistentTotals};

/// Memory for persistent counts. Changes are atomic, and take effect in their order.
pub trait Storage: Send {
    /// Returns the keys of all entries.
    fn keys(&self) -> Vec<PersistentKey>;

    /// Reads an entry, if it exists.
    fn read(&self, key: &PersistentKey) -> Option<PersistentEntry>;

    /// Writes an entry. Returns false if there is no room.
    fn write(&mut self, key: &PersistentKey, entry: &PersistentEntry) -> bool;

    /// Removes an entry.
    fn remove(&mut self, key: &PersistentKey);
}

/// All entries.
pub struct PersistentCounts {
    storage: Box<dyn Storage>,
    keys: HashSet<PersistentKey>,
    is_full: bool,
}

/// A reference to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryRef {
    key: PersistentKey,
    /// Which of the two totals is current.
    current: bool,
}

impl PersistentCounts {
    /// Reads the keys of all entries.
    pub fn new(storage: Box<dyn Storage>) -> Self {
        let keys = storage.keys().into_iter().collect();
        Self { storage, keys, is_full: false }
    }

    /// Finds the entry of a fingerprint. Returns it with its totals, and whether its group has a label. `committed` is the
    /// number of epochs that were committed.
    pub(super) fn find(&self, id: u128, committed: u32) -> Option<(EntryRef, PersistentTotals, bool)> {
        let key = self.keys.get(&split(id)).copied()?;
        let entry = self.storage.read(&key)?;
        // Epochs wrap around after some hundred years; the two totals are never half of that apart.
        let age = |totals: &PersistentTotals| committed.wrapping_sub(totals.epoch) as i32;
        let [first, second] = entry.totals.each_ref().map(age);
        let current = first < 0 || (second >= 0 && second < first);
        let totals = entry.totals[usize::from(current)];
        Some((EntryRef { key, current }, totals, entry.is_labelled != 0))
    }

    /// Returns the labels of all entries, sorted.
    pub fn labels(&self) -> Vec<String> {
        let text = |entry: PersistentEntry| {
            let len = entry.label.iter().position(|&byte| byte == 0).unwrap_or(LABEL_BYTES);
            String::from_utf8_lossy(&entry.label[..len]).into_owned()
        };
        let mut labels: Vec<_> =
            self.keys.iter().filter_map(|key| self.storage.read(key)).map(text).collect();
        labels.sort_unstable();
        labels.dedup();
        labels
    }

    /// Adds an entry of zeroes for a series of the group with this label; `None` if there is no room.
    pub(super) fn open(&mut self, id: u128, label: &str, committed: u32) -> Option<EntryRef> {
        let zero = PersistentTotals { epoch: committed, ..PersistentTotals::ZERO };
        let mut entry = PersistentEntry { is_labelled: 0, label: [0; LABEL_BYTES], totals: [zero; 2] };
        if label.len() <= LABEL_BYTES {
            entry.label[..label.len()].copy_from_slice(label.as_bytes());
        }
        let key = split(id);
        if !self.storage.write(&key, &entry) {
            if !self.is_full {
                tracing::warn!(
                    "--pin: there is no room to keep the counters of all groups; some will start at 0 after a restart"
                );
            }
            self.is_full = true;
            return None;
        }
        self.keys.insert(key);
        Some(EntryRef { key, current: false })
    }

    /// Writes the totals that are current once `epoch` is committed, and whether the entry's group has a label of its
    /// own. Returns false if the entry could not be changed.
    pub(super) fn put(
        &mut self,
        entry: &mut EntryRef,
        totals: &PersistentTotals,
        is_labelled: bool,
        epoch: u32,
    ) -> bool {
        let Some(mut changed) = self.storage.read(&entry.key) else { return false };
        let current = !entry.current;
        changed.totals[usize::from(current)] = PersistentTotals { epoch, ..*totals };
        changed.is_labelled = u64::from(is_labelled);
        let is_written = self.storage.write(&entry.key, &changed);
        if is_written {
            entry.current = current;
        }
        is_written
    }

    /// Notes whether the group of an entry has a label of its own.
    pub(super) fn set_labelled(&mut self, entry: EntryRef, is_labelled: bool) {
        let Some(known) = self.storage.read(&entry.key) else { return };
        let is_labelled = u64::from(is_labelled);
        if known.is_labelled != is_labelled {
            // If this fails, the next change of the entry writes it.
            self.storage.write(&entry.key, &PersistentEntry { is_labelled, ..known });
        }
    }

    /// Removes the entry of a fingerprint.
    pub(super) fn close(&mut self, id: u128) {
        let key = split(id);
        if self.keys.remove(&key) {
            self.storage.remove(&key);
        }
    }
}

fn split(id: u128) -> PersistentKey {
    [(id >> 64) as u64, id as u64]
}

impl std::fmt::Debug for PersistentCounts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PersistentCounts").field("entries", &self.keys.len()).finish_non_exhaustive()
    }
}

/// Creates persistent counts in the memory of this process.
#[cfg(test)]
pub(super) fn in_memory(entries: usize) -> PersistentCounts {
    struct Memory(std::collections::HashMap<PersistentKey, PersistentEntry>, usize);
    impl Storage for Memory {
        fn keys(&self) -> Vec<PersistentKey> {
            self.0.keys().copied().collect()
        }

        fn read(&self, key: &PersistentKey) -> Option<PersistentEntry> {
            self.0.get(key).copied()
        }

        fn write(&mut self, key: &PersistentKey, entry: &PersistentEntry) -> bool {
            let has_room = self.0.contains_key(key) || self.0.len() < self.1;
            if has_room {
                self.0.insert(*key, *entry);
            }
            has_room
        }

        fn remove(&mut self, key: &PersistentKey) {
            self.0.remove(key);
        }
    }
    PersistentCounts::new(Box::new(Memory(std::collections::HashMap::new(), entries)))
}

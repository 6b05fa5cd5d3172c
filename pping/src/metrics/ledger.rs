//! The counters of groups, kept where they outlive the process, so that none of them goes back when an agent stops,
//! crashes or is replaced.
//!
//! Each epoch of the histograms is one transaction. It writes, into each entry that changes, those of its two totals that are not
//! in force, with the number of the epoch. One store then commits the epoch (`SeriesTable::clear`), and all new totals are in
//! force at once. If the agent is killed before that, the old totals stay in force, and the epoch's samples are still in the
//! histograms.

use std::collections::HashMap;

use pping_common::abi::{LABEL_BYTES, LedgerEntry, LedgerTotals};

/// Memory for the entries of a ledger.
pub trait Storage: Send {
    /// The number of entries, used or free.
    fn entries(&self) -> usize;

    /// Reads an entry; `None` past the end.
    fn read(&self, index: usize) -> Option<LedgerEntry>;

    /// Changes an entry, after all changes before.
    fn write(&mut self, index: usize, change: &mut dyn FnMut(&mut LedgerEntry));
}

/// All entries.
pub struct Ledger {
    storage: Box<dyn Storage>,
    by_id: HashMap<u128, usize>,
    free: Vec<usize>,
    is_full: bool,
}

/// A reference to an entry in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryRef {
    index: usize,
    /// Which of the two totals is in force.
    current: bool,
}

impl Ledger {
    /// Finds the entries in use.
    pub fn new(storage: Box<dyn Storage>) -> Self {
        let mut ledger = Self { storage, by_id: HashMap::new(), free: Vec::new(), is_full: false };
        // Backwards, so that the first ones are taken first.
        for index in (0..ledger.storage.entries()).rev() {
            match ledger.storage.read(index).map_or(0, |entry| join(entry.id)) {
                0 => ledger.free.push(index),
                id => {
                    ledger.by_id.insert(id, index);
                }
            }
        }
        ledger
    }

    /// Finds the entry of a fingerprint. Returns it with its totals, and whether its group has a label. `committed` is the
    /// number of epochs that were committed.
    pub(super) fn find(&self, id: u128, committed: u32) -> Option<(EntryRef, LedgerTotals, bool)> {
        let &index = self.by_id.get(&id)?;
        let entry = self.storage.read(index)?;
        // Epochs wrap around after some hundred years; the two totals are never half of that apart.
        let age = |totals: &LedgerTotals| committed.wrapping_sub(totals.epoch) as i32;
        let [first, second] = entry.totals.each_ref().map(age);
        let current = first < 0 || (second >= 0 && second < first);
        let totals = entry.totals[usize::from(current)];
        Some((EntryRef { index, current }, totals, entry.is_labelled != 0))
    }

    /// The labels of all entries, sorted.
    pub fn labels(&self) -> Vec<String> {
        let text = |entry: LedgerEntry| {
            let len = entry.label.iter().position(|&byte| byte == 0).unwrap_or(LABEL_BYTES);
            String::from_utf8_lossy(&entry.label[..len]).into_owned()
        };
        let mut labels: Vec<_> =
            self.by_id.values().filter_map(|&index| self.storage.read(index)).map(text).collect();
        labels.sort_unstable();
        labels.dedup();
        labels
    }

    /// Makes an entry of zeroes, for a series of the group with this label; `None` without room.
    pub(super) fn open(&mut self, id: u128, label: &str, committed: u32) -> Option<EntryRef> {
        let Some(index) = self.free.pop() else {
            if !self.is_full {
                tracing::warn!(
                    "--pin: there is no room to keep the counters of all groups; some will start at 0 after a restart"
                );
            }
            self.is_full = true;
            return None;
        };
        let zero = LedgerTotals { epoch: committed, ..LedgerTotals::ZERO };
        self.storage.write(index, &mut |entry| {
            entry.totals = [zero; 2];
            entry.is_labelled = 0;
            entry.label = [0; LABEL_BYTES];
            if label.len() <= LABEL_BYTES {
                entry.label[..label.len()].copy_from_slice(label.as_bytes());
            }
        });
        // The number comes last: until then, the entry is free.
        self.storage.write(index, &mut |entry| entry.id = split(id));
        self.by_id.insert(id, index);
        Some(EntryRef { index, current: false })
    }

    /// Writes the totals that are in force once `epoch` is committed.
    pub(super) fn put(&mut self, entry: &mut EntryRef, mut totals: LedgerTotals, epoch: u32) {
        totals.epoch = epoch;
        entry.current = !entry.current;
        let current = usize::from(entry.current);
        self.storage.write(entry.index, &mut |entry| entry.totals[current] = totals);
    }

    /// Notes whether the group of an entry has a label of its own.
    pub(super) fn set_labelled(&mut self, entry: EntryRef, is_labelled: bool) {
        self.storage.write(entry.index, &mut |entry| entry.is_labelled = u64::from(is_labelled));
    }

    /// Frees the entry of a fingerprint.
    pub(super) fn close(&mut self, id: u128) {
        if let Some(index) = self.by_id.remove(&id) {
            self.storage.write(index, &mut |entry| entry.id = [0; 2]);
            self.free.push(index);
        }
    }
}

fn join([high, low]: [u64; 2]) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

fn split(id: u128) -> [u64; 2] {
    [(id >> 64) as u64, id as u64]
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Ledger").field("entries", &self.by_id.len()).finish_non_exhaustive()
    }
}

/// A ledger in memory of this process.
#[cfg(test)]
pub(super) fn in_memory(entries: usize) -> Ledger {
    struct Memory(Vec<LedgerEntry>);
    impl Storage for Memory {
        fn entries(&self) -> usize {
            self.0.len()
        }

        fn read(&self, index: usize) -> Option<LedgerEntry> {
            self.0.get(index).copied()
        }

        fn write(&mut self, index: usize, change: &mut dyn FnMut(&mut LedgerEntry)) {
            self.0.get_mut(index).into_iter().for_each(change);
        }
    }
    Ledger::new(Box::new(Memory(vec![LedgerEntry::FREE; entries])))
}

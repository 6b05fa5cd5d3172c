//! The map that keeps the counters of groups from one agent to the next.

use std::sync::atomic::{Ordering, fence};

use pping_common::abi::LedgerEntry;

use super::memory::Elements;

/// The map, in memory. Only the agent that holds the lock of the pinned maps has one.
pub struct LedgerMap(Elements<LedgerEntry>);

impl LedgerMap {
    pub(super) fn new(entries: Elements<LedgerEntry>) -> Self {
        Self(entries)
    }

    /// The number of entries, used or free.
    pub fn entries(&self) -> usize {
        self.0.len()
    }

    /// Reads an entry; `None` past the end.
    pub fn read(&self, index: usize) -> Option<LedgerEntry> {
        // SAFETY: inside the mapping, which only the holder of `self` writes to.
        self.0.get(index).map(|entry| unsafe { entry.read_volatile() })
    }

    /// Changes an entry. What was written before is in the map first, should this process be killed.
    pub fn write(&mut self, index: usize, change: &mut dyn FnMut(&mut LedgerEntry)) {
        if let Some(entry) = self.0.get(index) {
            // SAFETY: inside the mapping, which only the holder of `self` accesses.
            change(unsafe { &mut *entry });
            fence(Ordering::SeqCst);
        }
    }
}

//! The newest labels and levels, which other threads follow.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use super::{labels::Labels, levels::Levels};

/// The newest labels and levels, which one thread changes and others read. Cloning gives another handle to the same ones.
#[derive(Clone, Debug, Default)]
pub struct NewestLabels(Arc<Newest>);

#[derive(Debug, Default)]
struct Newest {
    /// Counts the changes.
    version: AtomicU64,
    /// Counts the changes of labels that readers may know already.
    changed: AtomicU64,
    named: Mutex<(Labels, Levels)>,
}

/// What a reader has seen of [`NewestLabels`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    version: u64,
    changed: u64,
}

impl NewestLabels {
    /// Replaces the labels. `is_changed` says whether a label that was there before has other columns, or is gone.
    pub fn set(&self, labels: Labels, is_changed: bool) {
        self.change(|named| named.0 = labels, is_changed);
    }

    /// Replaces the levels of the tree.
    pub fn set_levels(&self, levels: Levels) {
        self.change(|named| named.1 = levels, true);
    }

    fn change(&self, change: impl FnOnce(&mut (Labels, Levels)), is_changed: bool) {
        change(&mut self.0.named.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.changed.fetch_add(is_changed.into(), Ordering::Release);
        self.0.version.fetch_add(1, Ordering::Release);
    }

    /// Returns the labels and levels if they are newer than what was `seen`, and whether known ones have changed.
    pub(super) fn newer(&self, seen: &mut Seen) -> Option<((Labels, Levels), bool)> {
        let version = self.0.version.load(Ordering::Acquire);
        if version == seen.version {
            return None;
        }
        let changed = self.0.changed.load(Ordering::Acquire);
        let is_changed = changed != seen.changed;
        *seen = Seen { version, changed };
        Some((self.0.named.lock().unwrap_or_else(PoisonError::into_inner).clone(), is_changed))
    }
}

//! The members of nodes by the names: the labels that the groups file and the groups socket put there.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use foldhash::fast::RandomState;

use crate::groups::{Directory, Levels};

/// The share of time that counting may take, unless it is quick: one part in this many. A million labels take a second.
const SHARE: u32 = 20;

/// Counting that takes less than this may be done for each answer.
const QUICK: Duration = Duration::from_millis(10);

/// How many labels each node has. They are counted when somebody asks.
#[derive(Debug, Default)]
pub(super) struct Named {
    levels: Levels,
    members: HashMap<String, usize, RandomState>,
    /// Whether labels have changed since they were counted.
    is_stale: bool,
    /// When that was, and how long it took.
    counted: Option<(Instant, Duration)>,
}

impl Named {
    /// None yet, of a tree with these levels.
    pub(super) fn new(levels: Levels) -> Self {
        Self { levels, is_stale: true, ..Self::default() }
    }

    /// Counts the labels again if they have changed, and if the last time was not too short ago for that.
    pub(super) fn count(&mut self, directory: &Directory) {
        let is_due = self.counted.is_none_or(|(when, took)| took < QUICK || when.elapsed() >= SHARE * took);
        if self.is_stale && is_due {
            let began = Instant::now();
            self.members = directory.members(&self.levels);
            (self.counted, self.is_stale) = (Some((began, began.elapsed())), false);
        }
    }

    /// The paths of nodes that have labels.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// Notes that labels have changed.
    pub(super) fn expire(&mut self) {
        self.is_stale = true;
    }

    /// The levels of the tree.
    pub(super) fn levels(&self) -> &Levels {
        &self.levels
    }

    /// The number of labels of a node.
    pub(super) fn members(&self, path: &str) -> usize {
        self.members.get(path).copied().unwrap_or_default()
    }
}

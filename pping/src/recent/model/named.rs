//! The members of nodes by the names: the labels that the groups file and the groups socket put there.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use foldhash::fast::RandomState;

use super::Model;
use crate::{
    foreign_text::sanitized,
    groups::Levels,
    spelling::{listed, similar},
};

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

impl Model {
    /// Takes the levels of the tree.
    pub(in crate::recent) fn list_levels(&mut self, levels: Levels) {
        self.named = Named { levels, is_stale: true, ..Named::default() };
    }

    /// Counts the labels of nodes again if they have changed, and if the last time was not too short ago for that.
    pub(in crate::recent) fn count_named(&mut self) {
        let named = &mut self.named;
        let is_due = named.counted.is_none_or(|(when, took)| took < QUICK || when.elapsed() >= SHARE * took);
        if named.is_stale && is_due {
            let began = Instant::now();
            named.members = self.directory.members(&named.levels);
            (named.counted, named.is_stale) = (Some((began, began.elapsed())), false);
        }
    }

    /// Says that there is no node with a path, and names the nearest; `None` if there is one.
    pub(in crate::recent) fn why_no_node(&self, path: &str) -> Option<String> {
        if self.nodes.contains_key(path) || self.named.members.contains_key(path) {
            return None;
        }
        let measured =
            self.nodes.keys().map(|path| &**path).filter(|it| !self.named.members.contains_key(*it));
        let (mut nodes, others) =
            similar(path, measured.chain(self.named.members.keys().map(String::as_str)));
        nodes.extend(others);
        let known = if nodes.is_empty() { "there is none yet".to_owned() } else { listed(&nodes) };
        Some(format!("there is no node `{}`; nodes: {known}", sanitized(path)))
    }
}

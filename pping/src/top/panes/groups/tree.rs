//! The tree of groups: which node's children the table has. The networks at the other end are a table beside it.

use std::sync::Arc;

use crate::{
    foreign_text::sanitized,
    groups::NETWORK,
    recent::{NodeAnswer, Query},
    top::text,
};

/// The tree of groups, whether or not it is open.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// The levels of the pping that is watched, the outermost first; none without `--roll-up`.
    levels: Vec<Arc<str>>,
    /// The paths of the nodes that are open, the outermost first; `None` while the table has all groups.
    open: Option<Vec<Arc<str>>>,
    /// Whether the pping that is watched tells networks at the other end apart, and whether the table has these.
    has_networks: bool,
    shows_networks: bool,
    /// The node that was left last. The cursor goes to it once it is in the table.
    left: Option<Arc<str>>,
}

impl Tree {
    /// Takes the levels, and whether there are networks. The tree is closed if any of that has changed.
    pub(super) fn set_levels(&mut self, levels: &[Arc<str>], has_networks: bool) {
        if self.levels != levels || self.has_networks != has_networks {
            *self = Self { levels: levels.to_vec(), has_networks, ..Self::default() };
        }
    }

    /// Whether there are networks at the other end.
    pub(super) fn has_networks(&self) -> bool {
        self.has_networks
    }

    /// Whether the table has them.
    pub(super) fn shows_networks(&self) -> bool {
        self.shows_networks
    }

    /// Shows networks, or all groups.
    pub(super) fn switch_networks(&mut self) {
        let shows_networks = !self.shows_networks && self.has_networks;
        *self = Self { shows_networks, open: None, left: None, ..std::mem::take(self) };
    }

    /// Whether there is a tree.
    pub(super) fn exists(&self) -> bool {
        !self.levels.is_empty()
    }

    /// Whether the table has a part of the tree.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Opens the tree at its outermost level, or closes it.
    pub(super) fn switch(&mut self) {
        self.open = if self.open.is_none() && self.exists() { Some(Vec::new()) } else { None };
        (self.shows_networks, self.left) = (false, None);
    }

    /// Opens a node of the level that the table has. Returns whether it did: rows may still be those of another level.
    pub(super) fn enter(&mut self, node: &NodeAnswer) -> bool {
        let is_shown = self.level().is_some_and(|level| *level == *node.level);
        if let Some(open) = self.open.as_mut().filter(|_| is_shown) {
            open.push(Arc::clone(&node.path));
        }
        is_shown
    }

    /// Goes back to the node that has the open one. Returns whether there is any.
    pub(super) fn leave(&mut self) -> bool {
        self.left = self.open.as_mut().and_then(Vec::pop);
        self.left.is_some()
    }

    /// Takes the path of the node that was left last.
    pub(super) fn take_left(&mut self, is_there: impl Fn(&str) -> bool) -> Option<Arc<str>> {
        self.left.take_if(|path| is_there(path))
    }

    /// The level whose nodes the table has, or [`NETWORK`]; `None` if it has groups.
    pub(super) fn level(&self) -> Option<&str> {
        if self.shows_networks {
            return Some(NETWORK);
        }
        self.levels.get(self.open.as_ref()?.len()).map(|level| &**level)
    }

    /// The path of the node whose children the table has.
    fn under(&self) -> Option<&Arc<str>> {
        self.open.as_ref()?.last()
    }

    /// Puts what the table has into a query.
    pub(super) fn choose(&self, query: &mut Query) {
        query.by = self.level().map(ToOwned::to_owned);
        query.under = self.under().map(ToString::to_string);
    }

    /// Describes what the table has, for this many groups or nodes: `3 ap under berlin`.
    pub(super) fn describe(&self, number: usize) -> String {
        let what = match self.level() {
            Some(NETWORK) if self.shows_networks => text::counted(number, "network"),
            Some(level) => format!("{number} {}", sanitized(level)),
            None => text::counted(number, "group"),
        };
        match self.under() {
            Some(path) => format!("{what} under {}", sanitized(path)),
            None => what,
        }
    }
}

//! The tree of groups: which node's children the table has.

use std::sync::Arc;

use crate::{
    foreign_text::sanitized,
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
    /// The node that was left last. The cursor goes to it once it is in the table.
    left: Option<Arc<str>>,
}

impl Tree {
    /// Takes the levels. The tree is closed if they have changed.
    pub(super) fn set_levels(&mut self, levels: &[Arc<str>]) {
        if self.levels != levels {
            *self = Self { levels: levels.to_vec(), ..Self::default() };
        }
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
        self.left = None;
    }

    /// Opens a node of the level that the table has. Returns whether it did: rows may still be those of another level.
    pub(super) fn enter(&mut self, node: &NodeAnswer) -> bool {
        let is_shown = self.level().is_some_and(|level| *level == node.level);
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

    /// The level whose nodes the table has; `None` if it has groups.
    pub(super) fn level(&self) -> Option<&Arc<str>> {
        self.levels.get(self.open.as_ref()?.len())
    }

    /// The path of the node whose children the table has.
    fn under(&self) -> Option<&Arc<str>> {
        self.open.as_ref()?.last()
    }

    /// Puts what the table has into a query.
    pub(super) fn choose(&self, query: &mut Query) {
        query.by = self.level().map(ToString::to_string);
        query.under = self.under().map(ToString::to_string);
    }

    /// Describes what the table has, for this many groups or nodes: `3 ap under berlin`.
    pub(super) fn describe(&self, number: usize) -> String {
        let what = match self.level() {
            Some(level) => format!("{number} {}", sanitized(level)),
            None => text::counted(number, "group"),
        };
        match self.under() {
            Some(path) => format!("{what} under {}", sanitized(path)),
            None => what,
        }
    }
}

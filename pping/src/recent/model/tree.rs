//! The members of the nodes of the tree of groups.

use std::{collections::HashMap, sync::Arc};

use foldhash::fast::RandomState;

use super::{
    super::{answers::NodeAnswer, order::SeriesQuery},
    Group, Model,
    named::Named,
};
use crate::{
    foreign_text::sanitized,
    groups::{GroupName, Levels},
    quality::scores_of,
    spelling::{listed, similar},
};

/// A group is bad if it scores less than this for the first profile.
const BAD: u8 = 50;

/// The groups of a node that were measured.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Members {
    active: usize,
    bad: usize,
    /// Whether a filter finds one of them.
    pub(super) is_found: bool,
}

impl Model {
    /// Takes the levels of the tree.
    pub(in crate::recent) fn list_levels(&mut self, levels: Levels) {
        self.named = Named::new(levels);
    }

    /// Counts the labels of nodes, if they may be others than last time.
    pub(in crate::recent) fn count_named(&mut self) {
        self.named.count(&self.directory);
    }

    /// Says that there is no node with a path, and names the nearest; `None` if there is one.
    pub(in crate::recent) fn why_no_node(&self, path: &str) -> Option<String> {
        if self.nodes.contains_key(path) || self.named.members(path) > 0 {
            return None;
        }
        let measured = self.nodes.keys().map(|path| &**path).filter(|path| self.named.members(path) == 0);
        let (mut nodes, others) = similar(path, measured.chain(self.named.paths()));
        nodes.extend(others);
        let known = if nodes.is_empty() { "there is none yet".to_owned() } else { listed(&nodes) };
        Some(format!("there is no node `{}`; nodes: {known}", sanitized(path)))
    }

    /// Returns the answer about a node with these members.
    pub(super) fn node(&self, name: &GroupName, members: &Members) -> NodeAnswer {
        let Members { active, bad, .. } = *members;
        NodeAnswer {
            level: name.level.clone().unwrap_or_default(),
            path: Arc::clone(&name.label),
            // Groups of two labels, of classes of service and of a past run have no label of that node.
            members: Some(self.named.members(&name.label).max(active)),
            active: Some(active),
            bad: Some(bad),
        }
    }

    /// Counts the groups of all nodes by their series that are asked for, by the path of the node.
    pub(super) fn members(
        &self,
        query: &SeriesQuery,
        is_found: impl Fn(&GroupName) -> bool,
    ) -> HashMap<Arc<str>, Members, RandomState> {
        let mut nodes: HashMap<_, Members, _> = HashMap::default();
        for group in self.groups.values().filter(|group| !group.name.above.is_empty()) {
            let Some(is_bad) = self.is_bad(group, query) else { continue };
            let is_found = is_found(&group.name);
            for node in &group.name.above {
                let members = nodes.entry(Arc::clone(&node.label)).or_default();
                members.active += 1;
                members.bad += usize::from(is_bad);
                members.is_found |= is_found;
            }
        }
        nodes
    }

    /// Whether a group is bad now, by its series that are asked for; `None` if it has none of these.
    fn is_bad(&self, group: &Group, query: &SeriesQuery) -> Option<bool> {
        let first = self.profiles.get(..1).unwrap_or_default();
        let mut series = group.series.iter().filter(|(key, _)| key.is_asked_for(query)).peekable();
        series.peek()?;
        let mut scores = series.filter_map(|(key, history)| {
            let scores = scores_of(&history.recent(self.number()), key.method, first);
            scores.values().copied().next().flatten()
        });
        Some(scores.any(|score| score < BAD))
    }
}

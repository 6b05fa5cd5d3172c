//! The answers about groups.

use std::sync::Arc;

use super::{
    super::{
        answers::{
            GroupAnswer, GroupDetail, GroupQueue, GroupsAnswer, LongestMatchAnswer, NodeAnswer, group_id,
        },
        columns::View,
        history::History,
        order::{Filter, PREFIXES, PREFIXES_OF_ONE, Query, SeriesQuery},
        residence::TimesAnswer,
    },
    Group, Key, Model,
};
use crate::groups::{GroupName, Kind, LongestMatch, NETWORK, UNLISTED};

impl Model {
    pub(in crate::recent) fn groups(&self, query: &Query) -> GroupsAnswer {
        let (filter, series) = (query.filter(&self.directory), query.series());
        let listed = |group: &Group, node: Option<NodeAnswer>| {
            let answer = self.answer(group, |key| key.is_asked_for(&series));
            let sides = (query.view == View::Sides).then(|| self.sides(group, &series));
            Some(GroupAnswer { node, sides, ..answer }).filter(|group| !group.series.is_empty())
        };
        let is_under = |name: &GroupName| {
            query.under.as_ref().is_none_or(|under| name.above.iter().any(|node| *node.label == **under))
        };
        let mut groups: Vec<GroupAnswer> = match &query.by {
            None => {
                let is_found =
                    |group: &&Group| is_under(&group.name) && filter.finds(&group.name, &self.directory);
                self.groups.values().filter(is_found).filter_map(|group| listed(group, None)).collect()
            }
            Some(level) => {
                let members = self.members(&series, |name| filter.finds(name, &self.directory));
                self.at_level(level)
                    .filter(|node| is_under(&node.name))
                    .filter_map(|node| {
                        let of_tree = if node.name.kind() == Kind::Network {
                            let is_found = self.is_network_found(&filter, &node.name);
                            is_found.then(|| NodeAnswer::of_network(&node.name))
                        } else {
                            let members = members.get(&node.name.label).filter(|members| members.is_found);
                            members.map(|members| self.node(&node.name, members))
                        };
                        listed(node, Some(of_tree?))
                    })
                    .collect()
            }
        };
        let found = groups.len();
        let longest_match =
            if query.is_of_networks() { None } else { self.directory.longest_match(&query.filter) };
        let note = if found == 0 { self.note(query, longest_match.as_ref()) } else { None };
        query.sort(&mut groups);
        for group in &mut groups {
            let kind = match &group.node {
                None => Kind::Group,
                Some(node) if *node.level == *NETWORK => Kind::Network,
                Some(_) => Kind::Node,
            };
            if let Some(of_model) = self.all_of(kind).get(&group.group) {
                self.list_prefixes(of_model, PREFIXES, group);
                // Only of the groups in the answer: the whole past of a series takes long to unpack.
                if let Some(sides) = &mut group.sides {
                    self.add_trends(of_model, sides);
                }
            }
        }
        GroupsAnswer {
            sequence: self.sequence,
            time: self.time,
            known: query.by.as_ref().map_or_else(|| self.known(), |level| self.at_level(level).count()),
            found,
            longest_match: longest_match.map(LongestMatchAnswer::from),
            note,
            groups,
        }
    }

    pub(in crate::recent) fn group(&self, asked: &str) -> Option<GroupDetail> {
        let group = self.all_groups().find(|group| group_id(&group.name) == asked)?;
        let mut answer = self.answer(group, |_| true);
        if group.name.kind() == Kind::Network {
            answer.node = Some(NodeAnswer::of_network(&group.name));
        } else if group.name.level.is_some() {
            let members = self.members(&SeriesQuery::default(), |_| true);
            let members = members.get(&group.name.label).copied().unwrap_or_default();
            answer.node = Some(self.node(&group.name, &members));
        }
        self.list_prefixes(group, PREFIXES_OF_ONE, &mut answer);
        Some(GroupDetail { group: answer, history: self.history(group.series.iter()) })
    }

    /// Says why nothing was found.
    fn note(&self, query: &Query, longest_match: Option<&LongestMatch>) -> Option<String> {
        let Some(under) = &query.under else { return query.note(longest_match) };
        self.why_no_node(under).or_else(|| {
            let is_in_node = |group: &str| self.directory.is_in_node(group, under, self.named.levels());
            let elsewhere = longest_match.filter(|found| !is_in_node(&found.group));
            let filter = query.filter.trim();
            Some(match elsewhere {
                Some(LongestMatch { group, prefix: Some(prefix) }) => {
                    format!("{filter} is in the group {group} ({prefix}), which is not under {under}")
                }
                Some(_) => format!("{filter} is in no prefix of the groups file, so it is not under {under}"),
                None => match query.note(longest_match) {
                    Some(note) => format!("under {under}: {note}"),
                    None => format!("nothing was measured recently under {under}"),
                },
            })
        })
    }

    /// Whether a filter finds a network: by an address of it, or by its label or columns.
    fn is_network_found(&self, filter: &Filter, name: &GroupName) -> bool {
        match filter.address() {
            Some(address) => match self.names_of_networks.label(address) {
                Some(label) => label == name.label,
                None => *name.label == *UNLISTED,
            },
            None => filter.finds_text(name),
        }
    }

    /// Lists the prefixes of a group in an answer, at most this many.
    fn list_prefixes(&self, group: &Group, limit: usize, answer: &mut GroupAnswer) {
        if group.name.kind() == Kind::Network {
            return;
        }
        let prefixes = self.directory.of_group(&group.name.key);
        answer.prefixes = prefixes.iter().take(limit).map(|prefix| prefix.to_string()).collect();
        answer.prefix_count = prefixes.count();
    }

    /// Returns the prefix that stands for a group, if it has one.
    pub(super) fn first_prefix(&self, name: &GroupName) -> Option<Arc<str>> {
        let of_file = || self.directory.of_group(&name.key).first();
        name.prefix.clone().or_else(|| if name.kind() == Kind::Group { of_file() } else { None })
    }

    /// Returns the answer about a group, without the list of its prefixes.
    pub(super) fn answer(&self, group: &Group, is_asked_for: impl Fn(&Key) -> bool) -> GroupAnswer {
        let GroupName { label, dscp, columns, .. } = &*group.name;
        GroupAnswer {
            id: group_id(&group.name),
            group: Arc::clone(label),
            node: None,
            prefix: self.first_prefix(&group.name),
            prefixes: Vec::new(),
            prefix_count: 0,
            dscp: *dscp,
            labels: columns.iter().cloned().collect(),
            series: self.series(group.series.iter().filter(|(key, _)| is_asked_for(key))),
            queues: self.queues(group),
            sides: None,
        }
    }

    /// Returns the last minute of a group's queues.
    fn queues(&self, group: &Group) -> Vec<GroupQueue> {
        let queue = |(interface, history): (&Option<Arc<str>>, &History)| {
            let times = TimesAnswer::of_rtts(history.recent(self.number()).rtts()?);
            Some(GroupQueue { interface: interface.clone(), times })
        };
        let mut queues: Vec<_> = group.queues.iter().filter_map(queue).collect();
        queues.sort_unstable_by(|one, other| one.interface.cmp(&other.interface));
        queues
    }
}

//! Which groups a query asks for, and in what order.

use std::net::IpAddr;

use pping_common::{group::Side, method::Method, parse::Direction};
use serde::{Deserialize as _, Deserializer, de::Error as _};

use super::{
    answers::GroupAnswer,
    columns::{Column, Order, View, value},
};
use crate::groups::{
    Addresses, Directory, GroupName, Levels, LongestMatch, NETWORK, address_in, is_mistyped, without_extras,
};
#[cfg(test)]
use crate::schemas;

/// The highest number of groups that a client may ask for at once. The server keeps an answer until the client has read
/// it.
const MAX_LIMIT: usize = 1_000;

/// The highest number of a group's prefixes in an answer with many groups.
pub(super) const PREFIXES: usize = 16;

/// The highest number of a group's prefixes in the answer about one group.
pub(super) const PREFIXES_OF_ONE: usize = 1_000;

/// Which series.
#[derive(Clone, Debug, Default, serde::Deserialize, serde::Serialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SeriesQuery {
    /// Only series of this interface.
    pub interface: Option<String>,
    /// Only series of this method.
    #[serde(deserialize_with = "method")]
    #[cfg_attr(test, schemars(with = "Option<schemas::MethodName>"))]
    pub method: Option<String>,
    /// Only series whose echoes passed in this direction.
    #[serde(deserialize_with = "matched")]
    #[cfg_attr(test, schemars(with = "Option<schemas::DirectionName>"))]
    pub matched: Option<String>,
    /// Only series whose hosts that reply are on this side of the network.
    #[serde(deserialize_with = "side")]
    #[cfg_attr(test, schemars(with = "Option<schemas::SideName>"))]
    pub side: Option<String>,
}

/// Which series, and of which time: the last 15 minutes in cells of ten seconds unless one of the last four is given.
#[derive(Clone, Debug, Default, serde::Deserialize, serde::Serialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HistoryQuery {
    /// Only series of this interface.
    pub interface: Option<String>,
    /// Only series of this method.
    #[serde(deserialize_with = "method")]
    #[cfg_attr(test, schemars(with = "Option<schemas::MethodName>"))]
    pub method: Option<String>,
    /// Only series whose echoes passed in this direction.
    #[serde(deserialize_with = "matched")]
    #[cfg_attr(test, schemars(with = "Option<schemas::DirectionName>"))]
    pub matched: Option<String>,
    /// Only series whose hosts that reply are on this side of the network.
    #[serde(deserialize_with = "side")]
    #[cfg_attr(test, schemars(with = "Option<schemas::SideName>"))]
    pub side: Option<String>,
    /// The first moment, from the files of --history: a time ago such as `-24h`, a time such as `2026-11-25T21:00:00Z`
    /// (without a zone it is that of the host that measures), or ns since the Unix epoch. `-24h` unless set.
    pub from: Option<String>,
    /// The moment after the last, as `from`. `now` unless set.
    pub to: Option<String>,
    /// Length of a cell, in whole minutes, such as `5m`. Unless set, by the range: at most some 400 cells.
    pub step: Option<String>,
    /// Only this group, by its label. All groups together unless set.
    pub group: Option<String>,
}

impl HistoryQuery {
    /// Whether it asks for a range of the past.
    pub fn is_of_past(&self) -> bool {
        [&self.from, &self.to, &self.step, &self.group].into_iter().any(Option::is_some)
    }

    /// Which series.
    pub fn series(&self) -> SeriesQuery {
        let Self { interface, method, matched, side, .. } = self.clone();
        SeriesQuery { interface, method, matched, side }
    }
}

/// Which groups, how many of them, and in what order.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Query {
    /// What groups have, `series` unless set.
    #[serde(skip_serializing_if = "View::is_series")]
    pub view: View,
    /// Column to sort by: `p95` unless set, and with `view=sides` `inside_p95`. RTTs are those of the group's worst series;
    /// packets and bytes are the sums of all its series. With `view=sides` all figures are those of `sides`; `count`, `min` and
    /// `p50` to `p99` are then rejected, as are those of the inside and outside otherwise. `members`, `active` and `bad` need `by`. Groups
    /// without a value come last.
    #[cfg_attr(test, schemars(with = "Column"))]
    pub sort: Option<Column>,
    /// Sort order.
    pub order: Order,
    /// An address: only the groups that it belongs to, by longest match. A prefix such as `10.1.0.0/16`: only the group that
    /// contains it, and those with prefixes inside it. Any other text: only groups that have it in the label, in one of the
    /// first 16 prefixes or in another column of the groups file; not case-sensitive. Labels and columns are searched for
    /// addresses too, except labels that are prefixes.
    pub filter: String,
    /// Only series of this interface.
    pub interface: Option<String>,
    /// Only series of this method.
    #[serde(deserialize_with = "method")]
    #[cfg_attr(test, schemars(with = "Option<schemas::MethodName>"))]
    pub method: Option<String>,
    /// Only series whose echoes passed in this direction.
    #[serde(deserialize_with = "matched")]
    #[cfg_attr(test, schemars(with = "Option<schemas::DirectionName>"))]
    pub matched: Option<String>,
    /// Only series whose hosts that reply are on this side of the network.
    #[serde(deserialize_with = "side")]
    #[cfg_attr(test, schemars(with = "Option<schemas::SideName>"))]
    pub side: Option<String>,
    /// Highest number of groups in the response. `offset` asks for the groups after those.
    #[serde(deserialize_with = "limit")]
    #[cfg_attr(test, schemars(range(max = MAX_LIMIT)))]
    pub limit: usize,
    /// Number of groups to skip at the beginning.
    pub offset: usize,
    /// Level of the tree of groups (`--roll-up`): its nodes are listed instead of groups, with the sums of their groups. A
    /// `filter` finds the nodes of the groups that it finds. `network` lists the networks at the other end (`--remote-groups`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Path of a node, such as `berlin/ap-3`: only its groups, or with `by` only the nodes under it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub under: Option<String>,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            view: View::default(),
            sort: None,
            order: Order::default(),
            filter: String::new(),
            interface: None,
            method: None,
            matched: None,
            side: None,
            limit: 100,
            offset: 0,
            by: None,
            under: None,
        }
    }
}

/// Checks that there is a level, which `parameter` names.
///
/// # Errors
/// What is wrong with the parameter.
pub(super) fn check_level(
    parameter: &str,
    level: &str,
    levels: &Levels,
    has_networks: bool,
) -> Result<(), String> {
    let names = levels.names();
    if names.iter().any(|known| **known == *level) || has_networks && level == NETWORK {
        return Ok(());
    }
    if level == NETWORK {
        return Err(format!(
            "{parameter}: this pping tells no networks apart; start it with --remote-groups"
        ));
    }
    if names.is_empty() && !has_networks {
        return Err(format!("{parameter}: this pping has no tree of groups; start it with --roll-up"));
    }
    let names = names.iter().map(|it| &**it).chain(has_networks.then_some(NETWORK));
    let known = names.map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ");
    Err(format!("{parameter}: unknown level `{level}`, expected one of {known}"))
}

/// Reads the highest number of groups.
fn limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let limit = usize::deserialize(deserializer)?;
    if limit > MAX_LIMIT {
        return Err(D::Error::custom(format_args!(
            "at most {MAX_LIMIT} groups can be listed at once; ask for the next ones with offset"
        )));
    }
    Ok(limit)
}

/// Reads the name of a method.
pub(super) fn method<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    one_of(deserializer, &Method::ALL.map(Method::name))
}

/// Reads the name of a direction.
pub(super) fn matched<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    one_of(deserializer, &Direction::ALL.map(Direction::name))
}

/// Reads the name of a side.
pub(super) fn side<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    one_of(deserializer, &Side::ALL.map(Side::name))
}

/// Reads one of these texts.
fn one_of<'de, D: Deserializer<'de>>(deserializer: D, known: &[&str]) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    if let Some(text) = text.as_deref().filter(|text| !known.contains(text)) {
        let known = known.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ");
        return Err(D::Error::custom(format_args!("unknown value `{text}`, expected one of {known}")));
    }
    Ok(text)
}

impl SeriesQuery {
    /// Whether a series is asked for.
    pub(crate) fn has(
        &self,
        interface: Option<&str>,
        method: &str,
        matched: Option<&str>,
        side: Option<&str>,
    ) -> bool {
        let is =
            |asked: &Option<String>, found: Option<&str>| asked.as_deref().is_none_or(|it| Some(it) == found);
        is(&self.interface, interface)
            && is(&self.method, Some(method))
            && is(&self.matched, matched)
            && is(&self.side, side)
    }

    /// Whether all series are asked for.
    fn is_all(&self) -> bool {
        let Self { interface, method, matched, side } = self;
        [interface, method, matched, side].into_iter().all(Option::is_none)
    }
}

impl Query {
    /// The column that groups are sorted by.
    pub fn column(&self) -> Column {
        self.sort.unwrap_or(self.view.first_column())
    }

    /// Returns the query for a pping that tells sides apart, or for one that does not: with the view that has most, and
    /// without a column that this view does not have.
    #[must_use]
    pub fn fitted(self, has_sides: bool) -> Self {
        let view = if has_sides { View::Sides } else { View::Series };
        let is_there = |column: &Column| column.is_in(view) && (self.by.is_some() || !column.is_of_nodes());
        Self { view, sort: self.sort.filter(is_there), ..self }
    }

    /// Checks that the view and the level are there, and have the column.
    ///
    /// # Errors
    /// What is wrong with which parameter.
    pub fn check(&self, has_sides: bool, levels: &Levels, has_networks: bool) -> Result<(), String> {
        if let Some(level) = &self.by {
            check_level("by", level, levels, has_networks)?;
        }
        if self.under.is_some() && levels.is_empty() {
            return Err("under: this pping has no tree of groups; start it with --roll-up".to_owned());
        }
        if let Some((level, under)) = self.by.as_deref().zip(self.under.as_deref())
            && let Some(reason) = levels.why_not_under(level, under)
        {
            return Err(format!("by: {reason}"));
        }
        if let Some(column) = self.sort.filter(|column| self.by.is_none() && column.is_of_nodes()) {
            let column = column.name();
            return Err(format!("sort: only nodes have `{column}`; name their level with by"));
        }
        if self.view == View::Sides && !has_sides {
            return Err("view: this pping does not tell sides apart; start it with --inside".to_owned());
        }
        match self.sort.filter(|column| !column.is_in(self.view)) {
            None => Ok(()),
            Some(column) => {
                let known = Column::ALL.iter().filter(|it| it.is_in(self.view));
                let known = known.map(|it| format!("`{}`", it.name())).collect::<Vec<_>>().join(", ");
                let (column, view) = (column.name(), self.view.name());
                Err(format!("sort: `{column}` is no column of view={view}, expected one of {known}"))
            }
        }
    }

    /// Which series of the groups are asked for.
    pub(super) fn series(&self) -> SeriesQuery {
        let Self { interface, method, matched, side, .. } = self.clone();
        SeriesQuery { interface, method, matched, side }
    }

    /// Whether networks at the other end are asked for.
    pub(super) fn is_of_networks(&self) -> bool {
        self.by.as_deref() == Some(NETWORK)
    }

    /// What the filter looks for.
    pub(super) fn filter(&self, directory: &Directory) -> Filter {
        Filter { text: self.filter.to_lowercase(), addresses: directory.find(&self.filter) }
    }

    /// Why the filter found no group, where `longest_match` is the one that its address belongs to.
    pub(super) fn note(&self, longest_match: Option<&LongestMatch>) -> Option<String> {
        let filter = self.filter.trim();
        if filter.is_empty() {
            return None;
        }
        if self.is_of_networks() {
            return Some(format!(
                "no network with {filter} in its name, or with that address, was measured recently"
            ));
        }
        let what = if self.series().is_all() {
            "nothing was measured recently"
        } else {
            "nothing was measured recently with this interface, method and direction"
        };
        let by = "groups are by the host that replies, unless --group-by says otherwise";
        Some(match longest_match {
            Some(LongestMatch { group, prefix: Some(prefix) }) => {
                format!("{filter} is in the group {group} ({prefix}), for which {what}; {by}")
            }
            Some(LongestMatch { prefix: None, .. }) => format!(
                "{filter} is in no prefix of the groups file, and for hosts that are unlisted {what}; {by}"
            ),
            None => match (address_in(filter), without_extras(filter)) {
                (Some(_), _) => format!("for {filter} {what}; {by}"),
                (None, Some(address)) => format!("{filter} is no address or prefix; look for {address}"),
                (None, None) if is_mistyped(filter) => format!(
                    "{filter} is no valid address or prefix, and no group has it in its label or columns"
                ),
                (None, None) => {
                    format!("no group with {filter} in its label, prefixes or columns was measured recently")
                }
            },
        })
    }

    /// Sorts groups, and keeps those asked for. Groups that are equal in the column keep the order of their labels, and those
    /// without a value come last.
    pub(super) fn sort(&self, groups: &mut Vec<GroupAnswer>) {
        groups.sort_by(|one, other| one.group.cmp(&other.group));
        let column = self.column();
        if column != Column::Group {
            let mut keyed: Vec<_> = groups.drain(..).map(|group| (value(column, &group), group)).collect();
            keyed.sort_by(|(one, _), (other, _)| match (one, other) {
                (Some(one), Some(other)) if self.order == Order::Desc => other.total_cmp(one),
                (Some(one), Some(other)) => one.total_cmp(other),
                (one, other) => other.is_some().cmp(&one.is_some()),
            });
            groups.extend(keyed.into_iter().map(|(_, group)| group));
        } else if self.order == Order::Desc {
            groups.reverse();
        }
        groups.drain(..self.offset.min(groups.len()));
        groups.truncate(self.limit);
    }
}

/// What a filter looks for.
#[derive(Debug)]
pub(super) struct Filter {
    /// In lower case.
    text: String,
    /// The addresses, if the text is an address or a prefix.
    addresses: Option<Addresses>,
}

impl Filter {
    /// The address that it looks for, if it is one.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.text.trim().parse().ok()
    }

    /// Whether it finds a name by its label or columns.
    pub(super) fn finds_text(&self, name: &GroupName) -> bool {
        self.is_in(&name.label) || name.columns.iter().any(|(_, value)| self.is_in(value))
    }

    fn is_in(&self, text: &str) -> bool {
        text.to_lowercase().contains(&self.text)
    }

    /// Whether it finds a group.
    pub(super) fn finds(&self, group: &GroupName, directory: &Directory) -> bool {
        let has_text = |text: &str| self.is_in(text);
        let has_column = || group.columns.iter().any(|(_, value)| has_text(value));
        match &self.addresses {
            _ if self.text.is_empty() => true,
            // `10.0.0.1` is part of the text `10.0.0.128/25`, but not in that network.
            Some(addresses) => {
                addresses.are_in(&group.key)
                    || has_column()
                    || group.prefix.is_none() && has_text(&group.label)
            }
            None => {
                let mut prefixes = directory.of_group(&group.key).iter().take(PREFIXES);
                has_text(&group.label) || has_column() || prefixes.any(|prefix| has_text(&prefix.to_string()))
            }
        }
    }
}

//! The rows of the table of groups: one for each group, and below it those of its series.

use std::{borrow::Cow, cmp::Reverse, sync::Arc};

use super::{
    sparkline::sparkline,
    text::{amount, percent, side, time},
};
use crate::foreign_text::sanitized;
use crate::recent::{
    Column, GroupAnswer, NodeAnswer, RttAnswer, SeriesAnswer, SideAnswer, SidesAnswer, TrafficAnswer, View,
};

/// A column of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Title {
    pub(super) name: &'static str,
    /// Its width on the screen; 0 for the column of groups, which takes what is left.
    pub(super) width: usize,
    /// Its width in text.
    pub(super) text_width: usize,
    /// What it sorts by, if it does.
    pub(super) sort: Option<Column>,
}

const fn column(name: &'static str, width: usize, text_width: usize, sort: Column) -> Title {
    Title { name, width, text_width, sort: Some(sort) }
}

const fn trend(name: &'static str) -> Title {
    Title { name, width: TREND, text_width: TREND, sort: None }
}

/// The width of a trend: a minute for each character.
const TREND: usize = 15;

/// The columns of a group's series.
const SERIES: [Title; 9] = [
    column("group", 0, 28, Column::Group),
    column("samples", 8, 9, Column::Count),
    column("min", 8, 9, Column::Min),
    column("p50", 8, 9, Column::P50),
    column("p95", 8, 9, Column::P95),
    column("p99", 8, 9, Column::P99),
    column("packets", 9, 9, Column::Packets),
    column("retx", 7, 8, Column::Retransmissions),
    column("quality", 8, 8, Column::Quality),
];

/// The columns of both sides of a group. An arrow has room beside the longest title.
const SIDES: [Title; 10] = [
    column("group", 0, 28, Column::Group),
    column("inside p50", 11, 11, Column::InsideP50),
    column("inside p95", 11, 11, Column::InsideP95),
    column("outside p50", 12, 11, Column::OutsideP50),
    column("outside p95", 12, 11, Column::OutsideP95),
    column("retx", 7, 8, Column::Retransmissions),
    column("quality", 8, 8, Column::Quality),
    column("bytes", 7, 7, Column::Bytes),
    trend("inside 15 min"),
    trend("outside 15 min"),
];

/// Returns the columns of a view.
pub(super) const fn titles(view: View) -> &'static [Title] {
    match view {
        View::Series => &SERIES,
        View::Sides => &SIDES,
    }
}

/// A row of the table of groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The texts of the columns of the view.
    pub(super) cells: Vec<String>,
    /// The label of the group.
    pub(super) label: String,
    /// The first prefix of the group and the number of the others, if that differs from the label.
    pub(super) prefix: Option<String>,
    pub(super) interface: String,
    pub(super) method: String,
    /// The side, in a word.
    pub(super) side: &'static str,
    /// The id of the group.
    pub(super) id: String,
    /// What a node of the tree of groups has beside.
    pub(super) node: Option<NodeAnswer>,
    /// The series of the group that is shown when the row is opened.
    pub(super) series: SeriesKey,
    /// Whether it stands for its group, and does not lie below the row that does.
    pub(super) is_of_group: bool,
    /// The number of rows that the group has below this one, shown or not.
    pub(super) below: usize,
}

/// A series of a group: its interface, method and side.
pub(super) type SeriesKey = (Option<Arc<str>>, String, Option<String>, Option<String>);

/// Returns the rows of the groups: one for each, and those of its series below it if the group with this id is unfolded. Series
/// without samples have no row.
pub(super) fn rows(groups: &[GroupAnswer], is_unfolded: impl Fn(&str) -> bool) -> Vec<Row> {
    groups.iter().flat_map(|group| rows_of(group, is_unfolded(&group.id))).collect()
}

fn rows_of(group: &GroupAnswer, is_unfolded: bool) -> Vec<Row> {
    let count = |series: &SeriesAnswer| series.rtt.map_or(0, |rtt| rtt.count);
    let mut series: Vec<_> = group.series.iter().filter(|series| count(series) > 0).collect();
    // The busiest stands for the others.
    let Some(busiest) = (0..series.len()).min_by_key(|&at| Reverse(count(series[at]))) else {
        return Vec::new();
    };
    let mut first = match &group.sides {
        Some(sides) => row_of_sides(group, sides, series[busiest]),
        None => row_of_series(group, series.remove(busiest)),
    };
    (first.is_of_group, first.below) = (true, series.len());
    let row = |series| match group.sides {
        Some(_) => row_below_sides(group, series),
        None => row_of_series(group, series),
    };
    let shown = if is_unfolded { series } else { Vec::new() };
    std::iter::once(first).chain(shown.into_iter().map(row)).collect()
}

/// Returns a row of both sides. If neither has RTTs, opening it shows `other`.
fn row_of_sides(group: &GroupAnswer, sides: &SidesAnswer, other: &SeriesAnswer) -> Row {
    let SidesAnswer { inside, outside, traffic, quality } = sides;
    let rtt = |side: &Option<SideAnswer>, of: fn(&RttAnswer) -> u64| {
        side.as_ref().and_then(|side| side.rtt.as_ref()).map_or("-".to_owned(), |rtt| time(of(rtt)))
    };
    let trend =
        |side: &Option<SideAnswer>| side.as_ref().map_or(String::new(), |side| sparkline(&side.trend, TREND));
    let cells = vec![
        name(group),
        rtt(inside, |rtt| rtt.p50),
        rtt(inside, |rtt| rtt.p95),
        rtt(outside, |rtt| rtt.p50),
        rtt(outside, |rtt| rtt.p95),
        share(traffic),
        score(quality.first().and_then(|(_, score)| *score)),
        amount(traffic.bytes as f64),
        trend(inside),
        trend(outside),
    ];
    let measured = [("inside", inside), ("outside", outside)].into_iter();
    let measured =
        measured.filter_map(|(name, side)| Some((name, side.as_ref()?, side.as_ref()?.rtt?.count)));
    let series = measured.max_by_key(|&(.., count)| count).and_then(|(name, side, _)| {
        let matched = side.matched.as_deref().map(ToOwned::to_owned);
        Some((side.interface.clone(), side.methods.first()?.to_string(), matched, Some(name.to_owned())))
    });
    row(group, cells, series.unwrap_or_else(|| key(other)))
}

/// Returns the row of a series below that of both sides, in its columns.
fn row_below_sides(group: &GroupAnswer, series: &SeriesAnswer) -> Row {
    let key = key(series);
    let rtt = |name: &str, of: fn(&RttAnswer) -> u64| match &series.rtt {
        Some(rtt) if series.side.as_deref() == Some(name) => time(of(rtt)),
        _ => String::new(),
    };
    let traffic = sum(series);
    let interface = sanitized(series.interface.as_deref().unwrap_or("-"));
    let cells = vec![
        format!("  {interface} {}", sanitized(&series.method)),
        rtt("inside", |rtt| rtt.p50),
        rtt("inside", |rtt| rtt.p95),
        rtt("outside", |rtt| rtt.p50),
        rtt("outside", |rtt| rtt.p95),
        share(&traffic),
        quality(series),
        amount(traffic.bytes as f64),
        String::new(),
        String::new(),
    ];
    row(group, cells, key)
}

fn row_of_series(group: &GroupAnswer, series: &SeriesAnswer) -> Row {
    let of =
        |value: fn(&RttAnswer) -> u64| series.rtt.as_ref().map_or("-".to_owned(), |rtt| time(value(rtt)));
    let traffic = sum(series);
    let cells = vec![
        name(group),
        series.rtt.map_or("0".to_owned(), |rtt| rtt.count.to_string()),
        of(|rtt| rtt.min),
        of(|rtt| rtt.p50),
        of(|rtt| rtt.p95),
        of(|rtt| rtt.p99),
        traffic.packets.to_string(),
        share(&traffic),
        quality(series),
    ];
    row(group, cells, key(series))
}

/// Returns a row that lies below another one.
fn row(group: &GroupAnswer, cells: Vec<String>, series: SeriesKey) -> Row {
    let (interface, method, matched, of_network) = &series;
    Row {
        cells,
        label: name(group),
        prefix: prefix(group),
        interface: sanitized(interface.as_deref().unwrap_or("-")),
        method: sanitized(method),
        side: side(matched.as_deref(), of_network.as_deref()),
        id: group.id.clone(),
        node: group.node.clone(),
        series,
        is_of_group: false,
        below: 0,
    }
}

/// Returns the label of a group; of a node the value of its level, because the table has only nodes of the same one.
fn name(group: &GroupAnswer) -> String {
    let value = group.node.as_ref().and_then(|node| group.labels.get(&node.level));
    sanitized(value.unwrap_or(&group.group))
}

/// Returns the traffic of a series in both flow directions.
fn sum(SeriesAnswer { sent, received, .. }: &SeriesAnswer) -> TrafficAnswer {
    TrafficAnswer {
        packets: sent.packets + received.packets,
        bytes: sent.bytes + received.bytes,
        retransmissions: sent.retransmissions + received.retransmissions,
    }
}

/// Returns the share of segments that were retransmitted.
fn share(&TrafficAnswer { packets, retransmissions, .. }: &TrafficAnswer) -> String {
    if packets == 0 { "-".to_owned() } else { percent(retransmissions as f64 / packets as f64) }
}

/// Returns the first prefix of a group and the number of the others, unless the group is named so.
fn prefix(group: &GroupAnswer) -> Option<String> {
    let first = group.prefix.as_ref().filter(|prefix| **prefix != group.group)?;
    Some(match group.prefix_count.saturating_sub(1) {
        0 => sanitized(first),
        others => format!("{} +{others}", sanitized(first)),
    })
}

/// Returns the score by the first profile, the only one that fits.
fn quality(series: &SeriesAnswer) -> String {
    score(series.quality.first().and_then(|(_, score)| *score))
}

fn score(score: Option<u8>) -> String {
    score.map_or("-".to_owned(), |score| score.to_string())
}

/// Returns the key of a series.
pub(super) fn key(series: &SeriesAnswer) -> SeriesKey {
    let owned = |name: &Option<Cow<'_, str>>| name.as_deref().map(ToOwned::to_owned);
    (series.interface.clone(), series.method.to_string(), owned(&series.matched), owned(&series.side))
}

impl Row {
    /// Returns the key of a row, which does not depend on its position: that of the group's own row is the same whichever
    /// series stands for the group.
    pub(super) fn key(&self) -> (&str, Option<&SeriesKey>) {
        (&self.id, (!self.is_of_group).then_some(&self.series))
    }

    /// Returns the name of the row in the column of groups.
    pub(super) fn name(&self, shows_prefixes: bool) -> &str {
        match &self.prefix {
            Some(prefix) if shows_prefixes && self.cells[0] == self.label => prefix,
            _ => &self.cells[0],
        }
    }
}

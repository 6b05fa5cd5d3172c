//! The columns of the tables of groups, and the values that groups are sorted by.

use super::{
    answers::{GroupAnswer, SeriesAnswer},
    figures::{RttAnswer, TrafficAnswer},
    sides::{SideAnswer, SidesAnswer},
};

/// The column that groups are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub enum Column {
    /// The label.
    Group,
    /// Number of samples.
    Count,
    /// The lowest RTT.
    Min,
    /// The median.
    P50,
    /// The 90th percentile.
    P90,
    /// The 95th percentile.
    P95,
    /// The 99th percentile.
    P99,
    /// Packets of both flow directions.
    Packets,
    /// Bytes of both flow directions.
    Bytes,
    /// The share of retransmissions among its packets.
    Retransmissions,
    /// The lowest score for the first profile.
    Quality,
    /// The number of a node's groups.
    Members,
    /// The number of these that are active.
    Active,
    /// The number of these that are bad.
    Bad,
    /// The median of the inside.
    InsideP50,
    /// The 95th percentile of the inside.
    InsideP95,
    /// The median of the outside.
    OutsideP50,
    /// The 95th percentile of the outside.
    OutsideP95,
}

impl Column {
    /// All columns, in the order of the tables.
    pub(super) const ALL: [Self; 18] = [
        Self::Group,
        Self::Count,
        Self::Min,
        Self::P50,
        Self::P90,
        Self::P95,
        Self::P99,
        Self::InsideP50,
        Self::InsideP95,
        Self::OutsideP50,
        Self::OutsideP95,
        Self::Packets,
        Self::Bytes,
        Self::Retransmissions,
        Self::Quality,
        Self::Members,
        Self::Active,
        Self::Bad,
    ];

    /// Whether a view has the column.
    pub fn is_in(self, view: View) -> bool {
        match self {
            Self::Group
            | Self::Packets
            | Self::Bytes
            | Self::Retransmissions
            | Self::Quality
            | Self::Members
            | Self::Active
            | Self::Bad => true,
            Self::Count | Self::Min | Self::P50 | Self::P90 | Self::P95 | Self::P99 => view == View::Series,
            Self::InsideP50 | Self::InsideP95 | Self::OutsideP50 | Self::OutsideP95 => view == View::Sides,
        }
    }

    /// Whether only nodes of the tree of groups have the column.
    pub(super) const fn is_of_nodes(self) -> bool {
        matches!(self, Self::Members | Self::Active | Self::Bad)
    }

    /// Its name in a query.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Count => "count",
            Self::Min => "min",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::Packets => "packets",
            Self::Bytes => "bytes",
            Self::Retransmissions => "retransmissions",
            Self::Quality => "quality",
            Self::Members => "members",
            Self::Active => "active",
            Self::Bad => "bad",
            Self::InsideP50 => "inside_p50",
            Self::InsideP95 => "inside_p95",
            Self::OutsideP50 => "outside_p50",
            Self::OutsideP95 => "outside_p95",
        }
    }
}

/// What groups have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub enum View {
    /// Their series.
    #[default]
    Series,
    /// Their series, and `sides`: one row for both sides of the network, which needs `--inside`.
    Sides,
}

impl View {
    /// The column that groups are sorted by unless another one is asked for.
    pub const fn first_column(self) -> Column {
        match self {
            Self::Series => Column::P95,
            Self::Sides => Column::InsideP95,
        }
    }

    /// Whether it is the one of a query that names none.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(super) fn is_series(&self) -> bool {
        *self == Self::Series
    }

    /// Its name in a query.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Series => "series",
            Self::Sides => "sides",
        }
    }
}

/// Sort order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub enum Order {
    /// The lowest first, labels by the alphabet.
    Asc,
    /// The highest first.
    #[default]
    Desc,
}

/// Returns the value of a group in a column, if it has one.
pub(super) fn value(column: Column, group: &GroupAnswer) -> Option<f64> {
    match (column, &group.node) {
        (Column::Members, Some(node)) => return node.members.map(|it| it as f64),
        (Column::Active, Some(node)) => return node.active.map(|it| it as f64),
        (Column::Bad, Some(node)) => return node.bad.map(|it| it as f64),
        _ => {}
    }
    match &group.sides {
        Some(sides) => of_sides(column, sides),
        None => of_series(column, &group.series),
    }
}

/// Returns the value of both sides in a column.
fn of_sides(column: Column, sides: &SidesAnswer) -> Option<f64> {
    let rtt = |side: &Option<SideAnswer>, of: fn(&RttAnswer) -> u64| side.as_ref()?.rtt.as_ref().map(of);
    let value = match column {
        Column::InsideP50 => rtt(&sides.inside, |rtt| rtt.p50),
        Column::InsideP95 => rtt(&sides.inside, |rtt| rtt.p95),
        Column::OutsideP50 => rtt(&sides.outside, |rtt| rtt.p50),
        Column::OutsideP95 => rtt(&sides.outside, |rtt| rtt.p95),
        Column::Packets => Some(sides.traffic.packets),
        Column::Bytes => Some(sides.traffic.bytes),
        Column::Retransmissions => {
            let TrafficAnswer { packets, retransmissions, .. } = sides.traffic;
            return share(retransmissions, packets);
        }
        Column::Quality => (*sides.quality.first()?.1).map(u64::from),
        Column::Group
        | Column::Members
        | Column::Active
        | Column::Bad
        | Column::Count
        | Column::Min
        | Column::P50
        | Column::P90
        | Column::P95
        | Column::P99 => None,
    };
    value.map(|value| value as f64)
}

/// Returns the value of series in a column: the worst RTT, or the sum of all.
fn of_series(column: Column, series: &[SeriesAnswer]) -> Option<f64> {
    let worst = |of: fn(&RttAnswer) -> u64| series.iter().filter_map(|it| it.rtt.as_ref()).map(of).max();
    let sum = |of: fn(&SeriesAnswer) -> u64| Some(series.iter().map(of).sum::<u64>());
    let value = match column {
        Column::Group
        | Column::Members
        | Column::Active
        | Column::Bad
        | Column::InsideP50
        | Column::InsideP95
        | Column::OutsideP50
        | Column::OutsideP95 => None,
        Column::Count => sum(|series| series.rtt.map_or(0, |rtt| rtt.count)),
        Column::Min => worst(|rtt| rtt.min),
        Column::P50 => worst(|rtt| rtt.p50),
        Column::P90 => worst(|rtt| rtt.p90),
        Column::P95 => worst(|rtt| rtt.p95),
        Column::P99 => worst(|rtt| rtt.p99),
        Column::Packets => sum(|series| series.sent.packets + series.received.packets),
        Column::Bytes => sum(|series| series.sent.bytes + series.received.bytes),
        Column::Retransmissions => {
            let packets = sum(|series| series.sent.packets + series.received.packets)?;
            let retransmissions =
                sum(|series| series.sent.retransmissions + series.received.retransmissions)?;
            return share(retransmissions, packets);
        }
        Column::Quality => {
            let scores = series.iter().filter_map(|it| *it.quality.first()?.1);
            return scores.min().map(f64::from);
        }
    };
    value.map(|value| value as f64)
}

/// Returns the share of retransmissions; `None` without packets.
fn share(retransmissions: u64, packets: u64) -> Option<f64> {
    (packets > 0).then(|| retransmissions as f64 / packets as f64)
}

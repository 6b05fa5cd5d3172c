//! The lines of output: a series in an interval, or the worst series of a group.

use std::{borrow::Cow, cmp::Reverse, sync::Arc};

use pping_common::series::Traffic;
use serde::Serialize;

use super::{place::Place, sums::GroupSum};
use crate::{
    aggregate::{Measurements, RttSummary},
    quality::Scores,
    recent::{GroupOfRange, HistoryAnswer, RttAnswer, SeriesAnswer, TrafficAnswer},
};

/// The fewest samples of the worst groups: with fewer, a percentile says little.
pub(super) const FEWEST: u64 = 20;

/// Where [`Line::names`] has the group.
pub(super) const GROUP: usize = 0;

/// A line of output: a series in an interval, or the worst series of a group.
#[derive(Debug, Default, Serialize)]
pub struct Line {
    /// The start of the interval, ns since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) time: Option<u64>,
    /// Its length, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) step: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) group: Option<Arc<str>>,
    pub(super) interface: Option<Arc<str>>,
    pub(super) method: Cow<'static, str>,
    pub(super) matched: Option<Cow<'static, str>>,
    pub(super) side: Option<Cow<'static, str>>,
    pub(super) count: u64,
    pub(super) p50: Option<u64>,
    pub(super) p95: Option<u64>,
    pub(super) p99: Option<u64>,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) retransmissions: u64,
}

/// The lines of an answer about a group, or about all, in the order of time.
pub(super) fn lines(answer: &HistoryAnswer, group: Option<&str>) -> Vec<Line> {
    let group: Option<Arc<str>> = group.map(Into::into);
    let mut lines = Vec::new();
    for series in &answer.series {
        lines.extend(series.cells.iter().map(|cell| {
            let line = Line {
                time: Some(cell.time),
                step: Some(answer.cell),
                group: group.clone(),
                interface: series.interface.clone(),
                method: series.method.clone(),
                matched: series.matched.clone(),
                side: series.side.clone(),
                ..Line::default()
            };
            line.with(cell.rtt, [cell.sent, cell.received])
        }));
    }
    lines.sort_by_key(|line| line.time);
    lines
}

/// The groups whose worst series have the highest 95th percentiles.
pub(super) fn worst(groups: &[GroupSum], limit: usize) -> Vec<Line> {
    let line = |Ranked { group, place, measured, rtts }| {
        let line = Line {
            group: Some(Arc::clone(&group.name.label)),
            interface: place.interface.clone(),
            method: place.method.name().into(),
            matched: place.matched.map(|it| it.name().into()),
            side: place.side.map(|it| it.name().into()),
            ..Line::default()
        };
        line.with(Some(RttAnswer::from(rtts)), measured.traffic.map(Traffic::into))
    };
    ranked(groups, limit).into_iter().map(line).collect()
}

/// The same groups, as the API lists them.
pub(super) fn worst_groups(groups: &[GroupSum], limit: usize) -> Vec<GroupOfRange> {
    let answer = |Ranked { group, place, measured, rtts }: Ranked<'_>| {
        let [sent, received] = measured.traffic.map(TrafficAnswer::from);
        let series = SeriesAnswer {
            interface: place.interface.clone(),
            method: place.method.name().into(),
            matched: place.matched.map(|it| it.name().into()),
            side: place.side.map(|it| it.name().into()),
            rtt: Some(rtts.into()),
            sent,
            received,
            quality: Scores::default(),
        };
        GroupOfRange::new(&group.name, series)
    };
    ranked(groups, limit).into_iter().map(answer).collect()
}

/// The worst series of a group.
struct Ranked<'a> {
    group: &'a GroupSum,
    place: &'a Place,
    measured: &'a Measurements,
    rtts: RttSummary,
}

/// Returns the series of a group with the highest rank, the first of several.
fn worst_of(group: &GroupSum) -> Option<Ranked<'_>> {
    let with_rtts = group.series.iter().filter_map(|(place, measured)| {
        let rtts = measured.rtts().filter(|rtts| rtts.count >= FEWEST)?;
        Some(Ranked { group, place, measured, rtts })
    });
    with_rtts.max_by_key(|ranked| (ranked.rtts.rank(), Reverse(ranked.place)))
}

/// Returns the groups whose worst series have the highest 95th percentiles, each with that series.
fn ranked(groups: &[GroupSum], limit: usize) -> Vec<Ranked<'_>> {
    let mut all: Vec<Ranked<'_>> = groups.iter().filter_map(worst_of).collect();
    all.sort_by(|one, other| {
        let labels = || one.group.name.label.cmp(&other.group.name.label);
        other.rtts.rank().cmp(&one.rtts.rank()).then_with(labels)
    });
    all.truncate(limit);
    all
}

impl Line {
    fn with(self, rtt: Option<RttAnswer>, [sent, received]: [TrafficAnswer; 2]) -> Self {
        Self {
            count: rtt.map_or(0, |rtt| rtt.count),
            p50: rtt.map(|rtt| rtt.p50),
            p95: rtt.map(|rtt| rtt.p95),
            p99: rtt.map(|rtt| rtt.p99),
            packets: sent.packets + received.packets,
            bytes: sent.bytes + received.bytes,
            retransmissions: sent.retransmissions + received.retransmissions,
            ..self
        }
    }

    /// The texts that come first, [`GROUP`] among them, each with the name of its column: without those that no line has.
    pub(super) fn names(&self) -> [(&'static str, Option<&str>); 5] {
        [
            ("group", self.group.as_deref()),
            ("interface", self.interface.as_deref()),
            ("method", Some(&self.method)),
            ("matched", self.matched.as_deref()),
            ("side", self.side.as_deref()),
        ]
    }
}

//! The lines of output: a series in an interval, or the worst series of a group.

use std::{borrow::Cow, sync::Arc};

use pping_common::series::Traffic;
use serde::Serialize;

use crate::{
    aggregate::Measurements,
    groups::{GroupName, SeriesName},
    recent::{HistoryAnswer, RttAnswer, TrafficAnswer},
};

/// What was measured of a group in a range.
pub(super) struct GroupSum {
    pub(super) name: Arc<GroupName>,
    pub(super) series: Vec<(SeriesName, Measurements)>,
}

/// The fewest samples of the worst groups: with fewer, a percentile says little.
const FEWEST: u64 = 20;

/// A line of output: a series in an interval, or the worst series of a group.
#[derive(Debug, Default, Serialize)]
pub struct Line {
    /// The start of the interval, ns since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) time: Option<u64>,
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

/// The lines of an answer, in the order of time.
pub(super) fn lines(answer: &HistoryAnswer) -> Vec<Line> {
    let mut lines = Vec::new();
    for series in &answer.series {
        lines.extend(series.cells.iter().map(|cell| {
            let line = Line {
                time: Some(cell.time),
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
    let worst_of = |group: &GroupSum| {
        let rtts = |measured: &Measurements| measured.rtts().filter(|rtts| rtts.count >= FEWEST);
        let ranked = group.series.iter().filter_map(|series| Some((series, rtts(&series.1)?)));
        let ((name, measured), rtts) = ranked.max_by_key(|(_, rtts)| rtts.percentiles[2])?;
        let line = Line {
            group: Some(Arc::clone(&group.name.label)),
            interface: name.interface.clone(),
            method: name.method.name().into(),
            matched: name.matched.map(|it| it.name().into()),
            side: name.side.map(|it| it.name().into()),
            ..Line::default()
        };
        Some(line.with(Some(rtts.into()), measured.traffic.map(Traffic::into)))
    };
    let mut lines: Vec<Line> = groups.iter().filter_map(worst_of).collect();
    lines.sort_by(|one, other| other.p95.cmp(&one.p95).then_with(|| one.group.cmp(&other.group)));
    lines.truncate(limit);
    lines
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

    /// The texts that come first, each with the name of its column: without those that no line has.
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

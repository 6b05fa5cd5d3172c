//! The metrics of a series.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use pping_common::{
    abi::PersistentTotals,
    group::Side,
    method::Method,
    parse::Direction,
    series::{SeriesCounts, Traffic},
};

use super::{
    export::{Attributes, ExportTotals},
    histogram::RttHistogram,
    inflation::Inflation,
    labels::FormattedLabels,
    persistent::EntryRef,
};
use crate::{
    fingerprint::fingerprint,
    groups::{Kind, NETWORK, SeriesName},
};

/// The identity of a series in metrics.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SeriesId {
    pub(super) interface: Option<Arc<str>>,
    pub(super) method: Method,
    matched: Option<Direction>,
    side: Option<Side>,
    /// The label of the group or network, or the path of the node.
    pub(super) group: Arc<str>,
    of: Of,
}

/// What a series is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Of {
    Group,
    Network,
    Node {
        level: Arc<str>,
        /// The path of the node above it, which is empty if there is none.
        above: Arc<str>,
    },
}

impl SeriesId {
    /// Identifies the series `name`, counted under the label `group`.
    pub(super) fn new(name: &SeriesName, group: &Arc<str>) -> Self {
        let SeriesName { interface, method, matched, side, group: _ } = name;
        let above = name.group.above.last().filter(|_| *group == name.group.label);
        let above = || above.map_or_else(Arc::default, |above| Arc::clone(&above.label));
        Self {
            interface: interface.clone(),
            method: *method,
            matched: *matched,
            side: *side,
            group: Arc::clone(group),
            of: match (name.group.kind(), &name.group.level) {
                (Kind::Network, _) => Of::Network,
                (Kind::Node, Some(level)) => Of::Node { level: Arc::clone(level), above: above() },
                _ => Of::Group,
            },
        }
    }

    /// Returns a hash that is the same in every run. Nodes and networks need none.
    pub(super) fn fingerprint(&self) -> u128 {
        let Self { interface, method, matched, side, group, of: _ } = self;
        let matched = matched.map_or("", Direction::name);
        let without_side = [interface.as_deref().unwrap_or_default(), method.name(), matched, group];
        match side {
            None => fingerprint(&without_side),
            Some(side) => fingerprint(&[&without_side[..], &[side.name()]].concat()),
        }
    }

    /// Returns the labels by name.
    pub(super) fn attributes(&self) -> Attributes {
        let matched = self.matched.map_or("", Direction::name);
        let mut attributes: Attributes = vec![
            ("interface".into(), self.interface.clone().unwrap_or_default()),
            ("method".into(), self.method.name().into()),
            ("matched".into(), matched.into()),
        ];
        let group = Arc::clone(&self.group);
        match &self.of {
            Of::Group => attributes.push(("group".into(), group)),
            Of::Network => attributes.push((NETWORK.into(), group)),
            Of::Node { level, above } => attributes.extend([
                ("level".into(), Arc::clone(level)),
                ("path".into(), group),
                ("under".into(), Arc::clone(above)),
            ]),
        }
        attributes.extend(self.side.map(|side| ("side".into(), side.name().into())));
        attributes
    }

    fn labels(&self) -> FormattedLabels {
        let mut labels = vec![
            ("interface", self.interface.as_deref().unwrap_or_default()),
            ("method", self.method.name()),
            ("matched", self.matched.map_or("", Direction::name)),
        ];
        match &self.of {
            Of::Group => labels.push(("group", &*self.group)),
            Of::Network => labels.push((NETWORK, &*self.group)),
            Of::Node { level, above } => {
                labels.extend([("level", &**level), ("path", &*self.group), ("under", &**above)]);
            }
        }
        // Only with `--inside`, so that nobody else's metrics get a label that is empty.
        let side = self.side.map(|side| ("side", side.name()));
        labels.extend(side);
        FormattedLabels::new(&labels)
    }
}

/// A series.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) labels: FormattedLabels,
    pub(super) rtts: RttHistogram,
    /// The traffic of the hosts whose packets are timed, and of those that reply.
    pub(super) traffic: [Traffic; 2],
    pub(super) inflation: Inflation,
    /// When it last had samples or traffic.
    pub(super) latest: Instant,
    /// Its entry in the persistent counts, if it has one.
    pub(super) entry: Option<EntryRef>,
    /// The counts for an exporter, if there is one.
    pub(super) pushed: Option<ExportTotals>,
}

impl Series {
    /// Creates a series without measurements; counting began at `since`.
    pub(super) fn new(id: &SeriesId, since: SystemTime, baseline: Duration, now: Instant) -> Self {
        Self {
            labels: id.labels(),
            rtts: RttHistogram::new(since),
            traffic: [Traffic::default(); 2],
            inflation: Inflation::new(baseline, now),
            latest: now,
            entry: None,
            pushed: None,
        }
    }

    /// Adds the measurements since the last call.
    pub(super) fn add(&mut self, counts: &SeriesCounts, now: Instant) {
        if !counts.is_empty() {
            self.latest = now;
        }
        self.traffic[0].add(&counts.sent);
        self.traffic[1].add(&counts.received);
        if let Some(pushed) = &mut self.pushed {
            pushed.add(counts);
        }
        self.inflation.add(counts, now);
        if counts.has_samples() {
            self.rtts.add(counts);
        }
    }

    /// Continues from the totals of an earlier run.
    pub(super) fn restore(&mut self, totals: &PersistentTotals) {
        self.rtts.restore(totals);
        self.traffic = totals.traffic;
    }

    /// Returns the counters to keep in the persistent counts.
    pub(super) fn totals(&self) -> PersistentTotals {
        let (buckets, sum) = self.rtts.totals();
        let sum = [sum as u64, (sum >> 64) as u64];
        PersistentTotals { buckets, sum, traffic: self.traffic, ..PersistentTotals::ZERO }
    }
}

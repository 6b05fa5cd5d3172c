//! The series of groups, of the nodes of the tree of groups, or of networks, under a bounded number of labels.

mod push;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use pping_common::{method::Method, series::SeriesCounts};

use super::{
    export::{Attributes, ExportState, ExportTotals},
    exposition::{Exposition, Value},
    families::{Families, OF_GROUPS, OF_NETWORKS, OF_NODES, SENDERS},
    inflation::{Inflated, PERCENTILES},
    labelled::{LabelledGroups, is_always_labelled},
    labels::FormattedLabels,
    metric::Metric,
    persistent::PersistentCounts,
    queues::Queues,
    series::{Series, SeriesId},
};
use crate::{
    groups::{GroupName, Kind, NETWORK, OTHER, OTHER_NODES, QueueName, SeriesName},
    quality::{Profiles, Scores},
};

/// How often nodes and networks without traffic are looked for.
const EXPIRY: Duration = Duration::from_secs(10);

/// All series, and the groups that they belong to. A node of the tree is a group here, with its path as label, and so is a network.
#[derive(Debug)]
pub(super) struct Groups {
    /// The metrics: those of groups, of nodes, or of networks.
    families: &'static Families,
    /// Which of these they are.
    kind: Kind,
    baseline: Duration,
    labelled: LabelledGroups,
    series: IndexMap<SeriesId, Series, RandomState>,
    /// Groups with series under their own label, whether or not these are exposed at present.
    known: HashMap<Arc<str>, NamedGroup, RandomState>,
    other: Arc<str>,
    /// The persistent counts, if counters outlive this process.
    persistent: Option<PersistentCounts>,
    /// The number of epochs committed to the persistent counts.
    committed: u32,
    /// The indexes of series that changed since the last commit.
    changed: Vec<usize>,
    clock: Clock,
    /// When series without traffic were last removed.
    expired: Instant,
    /// The times of packets in queues.
    pub(super) queues: Queues,
    /// The profiles that series are scored by.
    pub(super) profiles: Profiles,
    /// The counts for an exporter, if there is one.
    pub(super) exports: Option<ExportState>,
}

/// The beginning of the present epoch. The counters that the epoch creates begin there.
#[derive(Clone, Copy, Debug)]
struct Clock {
    began: Instant,
    since: SystemTime,
}

impl Clock {
    fn start(now: Instant) -> Self {
        Self { began: now, since: SystemTime::now() }
    }

    /// Begins the next epoch.
    fn advance(&mut self, now: Instant) {
        self.since += now.saturating_duration_since(self.began);
        self.began = now;
    }
}

#[derive(Debug)]
struct NamedGroup {
    name: Arc<GroupName>,
    series: usize,
}

impl Groups {
    pub(super) fn new(limit: u32, baseline: Duration, now: Instant) -> Self {
        Self {
            families: &OF_GROUPS,
            kind: Kind::Group,
            baseline,
            labelled: LabelledGroups::new(limit as usize, now),
            series: IndexMap::default(),
            known: HashMap::default(),
            other: OTHER.into(),
            persistent: None,
            committed: 0,
            changed: Vec::new(),
            clock: Clock::start(now),
            expired: now,
            queues: Queues::default(),
            profiles: Profiles::default(),
            exports: None,
        }
    }

    /// The series of nodes, at most `limit` of which have a label of their own.
    pub(super) fn of_nodes(limit: u32, baseline: Duration, now: Instant) -> Self {
        let other = OTHER_NODES.into();
        Self { families: &OF_NODES, kind: Kind::Node, other, ..Self::new(limit, baseline, now) }
    }

    /// The series of networks at the other end, at most `limit` of which have a label of their own.
    pub(super) fn of_networks(limit: u32, baseline: Duration, now: Instant) -> Self {
        Self { families: &OF_NETWORKS, kind: Kind::Network, ..Self::new(limit, baseline, now) }
    }

    /// Keeps counters in `persistent` from now on.
    pub(super) fn persist_in(&mut self, persistent: PersistentCounts) {
        self.persistent = Some(persistent);
    }

    /// Changes the highest number of labels and the window of the baseline.
    pub(super) fn change(&mut self, limit: u32, baseline: Duration) {
        self.labelled.set_limit(limit as usize);
        if baseline != self.baseline {
            self.baseline = baseline;
            for series in self.series.values_mut() {
                series.inflation.set_baseline(baseline);
            }
        }
        self.note_labels();
    }

    /// Continues the counters of these series from an earlier run, which committed this many epochs.
    pub(super) fn resume(&mut self, names: &[SeriesName], committed: u32, now: Instant) {
        self.committed = committed;
        let other = Arc::clone(&self.other);
        for name in names {
            for label in [&name.group.label, &other] {
                let id = SeriesId::new(name, label);
                let kept = self
                    .persistent
                    .as_ref()
                    .and_then(|persistent| persistent.find(id.fingerprint(), committed));
                let Some((entry, totals, is_labelled)) = kept else { continue };
                if *label == name.group.label {
                    self.labelled.resume(label, is_labelled);
                }
                let index = self.index_of(id, name, now);
                let series = &mut self.series[index];
                series.entry = Some(entry);
                series.restore(&totals);
            }
        }
    }

    /// Returns the index of a series, which is created if it does not exist. `name` is a series whose samples it counts.
    fn index_of(&mut self, id: SeriesId, name: &SeriesName, now: Instant) -> usize {
        let entry = match self.series.entry(id) {
            indexmap::map::Entry::Occupied(occupied) => return occupied.index(),
            indexmap::map::Entry::Vacant(vacant) => vacant,
        };
        let id = entry.key();
        if let Some(known) = self.known.get_mut(&id.group) {
            known.series += 1;
        } else if name.group.label == id.group {
            let known = NamedGroup { name: Arc::clone(&name.group), series: 1 };
            self.known.insert(Arc::clone(&id.group), known);
        }
        let mut series = Series::new(id, self.clock.since, self.baseline, now);
        if let Some(persistent) = &mut self.persistent {
            // A series with a reserved label may have been quiet since this run began.
            if let Some((entry, totals, _)) = persistent.find(id.fingerprint(), self.committed) {
                series.entry = Some(entry);
                series.restore(&totals);
            } else {
                series.entry = persistent.open(id.fingerprint(), &id.group, self.committed);
            }
        }
        series.pushed = self.exports.as_ref().map(|exports| ExportTotals::new(exports.series_began()));
        let index = entry.index();
        entry.insert(series);
        index
    }

    /// Writes the totals at the end of this epoch. They are current once the kernel's map says that it is committed.
    pub(super) fn commit(&mut self, epoch: u32) {
        let Self { persistent: Some(persistent), changed, series, labelled, .. } = self else { return };
        changed.sort_unstable();
        changed.dedup();
        // Totals that could not be written are written with the next epoch.
        changed.retain(|&index| {
            let Some((id, Series { entry: Some(entry), .. })) = series.get_index(index) else { return false };
            let mut entry = *entry;
            let totals = series[index].totals();
            let is_written = persistent.put(&mut entry, &totals, labelled.is_labelled(&id.group), epoch);
            series[index].entry = Some(entry);
            !is_written
        });
        self.committed = epoch;
    }

    /// Adds the measurements of those of these series that are of groups, of nodes, or of networks, since the last call.
    pub(super) fn add(&mut self, slices: &[(SeriesName, SeriesCounts)], now: Instant) {
        if self.labelled.roll(now) {
            self.note_labels();
        }
        let kind = self.kind;
        for (name, counts) in slices.iter().filter(|(name, _)| name.group.kind() == kind) {
            let group = &name.group.label;
            let is_labelled = self.labelled.count(group, counts.count());
            let id = SeriesId::new(name, if is_labelled { group } else { &self.other });
            let index = self.index_of(id, name, now);
            self.series[index].add(counts, now);
            if self.persistent.is_some() {
                self.changed.push(index);
            }
            if is_labelled
                && let Some(known) = self.known.get_mut(group)
                && !Arc::ptr_eq(&known.name, &name.group)
            {
                // Its columns in the groups file may have changed.
                known.name = Arc::clone(&name.group);
            }
        }
        self.clock.advance(now);
    }

    /// Adds the times of packets in queues since the last call.
    pub(super) fn add_queues(&mut self, queues: &[(QueueName, SeriesCounts)]) {
        let pushed = self.exports.as_ref().map(ExportState::series_began);
        for (name, counts) in queues {
            let group = &name.group.label;
            let label = if self.labelled.is_labelled(group) { group } else { &self.other };
            self.queues.add(name, label, counts, self.clock.since, pushed);
        }
    }

    /// Notes in the persistent counts which groups have a label, after some lost theirs.
    fn note_labels(&mut self) {
        let Self { persistent: Some(persistent), series, labelled, .. } = self else { return };
        for (id, series) in series {
            if let Some(entry) = series.entry {
                persistent.set_labelled(entry, labelled.is_labelled(&id.group));
            }
        }
    }

    /// Removes a series whose group expired, unless its label is reserved.
    pub(super) fn forget(&mut self, name: &SeriesName) {
        let group = &name.group.label;
        if !is_always_labelled(group) {
            self.remove(&SeriesId::new(name, group));
        }
    }

    /// Removes all series of an interface that lost its id. It must follow a commit, as [`Groups::forget`] does.
    pub(super) fn forget_interface(&mut self, interface: &str) {
        let is_of_interface = |id: &&SeriesId| id.interface.as_deref() == Some(interface);
        let gone: Vec<SeriesId> = self.series.keys().filter(is_of_interface).cloned().collect();
        for id in &gone {
            self.remove(id);
        }
        self.queues.forget_interface(interface);
    }

    /// Removes series that had no traffic for this time.
    pub(super) fn expire(&mut self, timeout: Duration, now: Instant) {
        if self.series.is_empty() || now.saturating_duration_since(self.expired) < EXPIRY {
            return;
        }
        self.expired = now;
        let is_idle = |series: &Series| now.saturating_duration_since(series.latest) > timeout;
        let idle: Vec<_> =
            self.series.iter().filter(|(_, series)| is_idle(series)).map(|(id, _)| id.clone()).collect();
        for id in &idle {
            self.remove(id);
        }
    }

    fn remove(&mut self, id: &SeriesId) {
        let was_there = self.series.swap_remove(id).is_some();
        if let Some(persistent) = &mut self.persistent {
            persistent.close(id.fingerprint());
        }
        if let Some(known) = self.known.get_mut(&id.group) {
            known.series -= usize::from(was_there);
            if known.series > 0 {
                return;
            }
            self.known.remove(&id.group);
        }
        self.labelled.forget(&id.group);
    }

    /// Counts for an exporter from now on.
    pub(super) fn begin_exports(&mut self, exports: ExportState) {
        for series in self.series.values_mut() {
            series.pushed = Some(ExportTotals::new(exports.series_began()));
        }
        self.queues.begin_exports(exports.series_began());
        self.exports = Some(exports);
    }

    /// Writes the metrics of all groups that have a label.
    pub(super) fn write(&mut self, page: &mut dyn Exposition, now: Instant) {
        let Self { families, kind, labelled, series, known, profiles, .. } = self;
        if *kind != Kind::Group && series.is_empty() {
            return;
        }
        let mut shown: Vec<LabelledSeries<'_>> = Vec::with_capacity(series.len());
        for (id, series) in series.iter_mut().filter(|(id, _)| labelled.is_labelled(&id.group)) {
            let inflated = series.inflation.report(now);
            let scores = series.inflation.recent.scores(profiles, id.method);
            shown.push(LabelledSeries { series, has_baseline: has_baseline(id), inflated, scores });
        }
        histogram(page, families, &shown);
        gauges(page, families, &shown);
        quality(page, families, profiles, &shown);
        traffic(page, families, &shown);
        self.queues.write(page, |group| labelled.is_labelled(group));
        let mut known: Vec<_> = known
            .values()
            .map(|known| &known.name)
            .filter(|name| !name.columns.is_empty() && labelled.is_labelled(&name.label))
            .collect();
        if !known.is_empty() {
            known.sort_unstable_by(|a, b| a.label.cmp(&b.label));
            page.family(&families.columns);
            let prefix = page.prefix(&[]);
            for name in known {
                page.value(&prefix, &info_labels(name), Value::Integer(1));
            }
        }
    }
}

/// Whether the RTTs of a series have a baseline. The groups in `other` change, and the pauses of applications lengthen
/// the times of spin bits, so these two have none.
fn has_baseline(id: &SeriesId) -> bool {
    ![OTHER, OTHER_NODES].contains(&&*id.group) && id.method != Method::QuicSpin
}

/// A series with a label, and its gauges.
struct LabelledSeries<'a> {
    series: &'a Series,
    has_baseline: bool,
    inflated: Inflated,
    scores: Scores,
}

fn histogram(page: &mut dyn Exposition, families: &Families, shown: &[LabelledSeries<'_>]) {
    page.family(&families.rtt);
    // Skips 30 lines of zeroes for series with traffic but no samples, such as those against the direction of a download.
    for LabelledSeries { series, .. } in shown.iter().filter(|it| it.series.rtts.has_samples()) {
        page.histogram(&series.labels, &series.rtts);
    }
}

fn gauges(page: &mut dyn Exposition, families: &Families, shown: &[LabelledSeries<'_>]) {
    let mut gauge = |metric: &Metric, value: &dyn Fn(&LabelledSeries<'_>) -> Option<u64>| {
        page.family(metric);
        let prefix = page.prefix(&[]);
        for it in shown {
            if let Some(value) = value(it) {
                page.value(&prefix, &it.series.labels, Value::Nanoseconds(value.into()));
            }
        }
    };
    gauge(&families.min_rtt, &|it| it.inflated.minimum);
    gauge(&families.baseline, &|it| it.inflated.baseline.filter(|_| it.has_baseline));
    page.family(&families.inflation);
    let prefixes = PERCENTILES.map(|percentile| page.prefix(&[("percentile", &percentile.to_string())]));
    for it in shown.iter().filter(|it| it.has_baseline) {
        for (prefix, above) in prefixes.iter().zip(it.inflated.above.into_iter().flatten()) {
            page.value(prefix, &it.series.labels, Value::Nanoseconds(above.into()));
        }
    }
}

fn quality(
    page: &mut dyn Exposition,
    families: &Families,
    profiles: &Profiles,
    shown: &[LabelledSeries<'_>],
) {
    if profiles.is_empty() {
        return;
    }
    page.family(&families.quality);
    let prefixes: Vec<_> = profiles.iter().map(|it| page.prefix(&[("profile", &it.name)])).collect();
    for it in shown {
        for (prefix, &score) in prefixes.iter().zip(it.scores.values()) {
            if let Some(score) = score {
                page.value(prefix, &it.series.labels, Value::Float(ratio(score)));
            }
        }
    }
}

/// Returns a score as a ratio: 1 is the best.
fn ratio(score: u8) -> f64 {
    f64::from(score) / 100.0
}

fn traffic(page: &mut dyn Exposition, families: &Families, shown: &[LabelledSeries<'_>]) {
    for (metric, read) in &families.traffic {
        page.family(metric);
        let senders = SENDERS.map(|sender| page.prefix(&[("sender", sender)]));
        for LabelledSeries { series, .. } in shown {
            for (prefix, traffic) in senders.iter().zip(&series.traffic) {
                page.value(prefix, &series.labels, Value::Integer(read(traffic)));
            }
        }
    }
}

/// Returns the columns of a group in the groups file, as labels.
fn info_labels(name: &GroupName) -> FormattedLabels {
    let columns = columns(name);
    let labels: Vec<_> = columns.iter().map(|(name, value)| (&**name, &**value)).collect();
    FormattedLabels::new(&labels)
}

/// Returns the columns by name. Changes names that are not valid for a label.
fn columns(name: &GroupName) -> Attributes {
    let label = Arc::clone(&name.label);
    let mut labels: Attributes = match (name.kind(), &name.level) {
        (Kind::Network, _) => vec![(NETWORK.into(), label)],
        (Kind::Node, Some(level)) => vec![("level".into(), Arc::clone(level)), ("path".into(), label)],
        _ => vec![("group".into(), label)],
    };
    let mut taken: HashSet<String> = labels.iter().map(|(name, _)| name.to_string()).collect();
    for (column, value) in &name.columns {
        let mut label = label_name(column);
        while !taken.insert(label.clone()) {
            label.push('_');
        }
        labels.push((label.into(), Arc::clone(value)));
    }
    labels
}

/// Returns the nearest valid name of a label. Prometheus reserves names that begin with two underscores.
fn label_name(column: &str) -> String {
    let word = |character: char| if character.is_ascii_alphanumeric() { character } else { '_' };
    let name: String = column.chars().map(word).collect();
    match name.trim_start_matches('_') {
        "" => "column".to_owned(),
        name if name.starts_with(|first: char| first.is_ascii_digit()) => format!("_{name}"),
        name => name.to_owned(),
    }
}

#[cfg(test)]
#[path = "groups_tests.rs"]
mod tests;

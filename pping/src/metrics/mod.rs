//! Metrics for Prometheus.
//!
//! Code that has metrics writes them to an [`Exposition`], which makes a page in one of three formats. A page of many
//! groups has up to half a million lines. Each line takes some nanoseconds, because labels are formatted once.

mod counters;
mod export;
mod exposition;
mod families;
mod groups;
mod histogram;
mod inflation;
mod labelled;
mod labels;
mod latest;
mod metric;
mod minimum;
mod packet_cost;
mod page;
mod persistent;
mod process;
mod protobuf;
mod queues;
mod recent;
mod residence;
mod series;
mod text;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use export::ExportState;
pub use export::{Attributes, Distribution, Export, Family, Point, Points, TimeSum};
use exposition::{Exposition, Value};
use groups::Groups;
use labels::FormattedLabels;
pub use latest::{Dropped, Failed, Fill, GroupChanges, HistoryCounts, Pushes};
use metric::IntegerFamily;
pub use metric::{Kind, Metric};
pub use page::{Encoding, Page, PageFormat};
pub use persistent::{PersistentCounts, Storage};
use pping_common::series::SeriesCounts;
use protobuf::Protobuf;
use text::Text;

use crate::{
    config::Temporality,
    deferred::Deferred,
    groups::{QueueName, SeriesName},
    quality::Profiles,
    residence::InterfaceTimes,
    snapshot::{ProgramRuns, Snapshot},
};

/// All metrics. Cloning gives another handle to the same ones.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    began: SystemTime,
    latest: latest::LatestStore,
    /// Whether the counters of groups outlive this process.
    is_persistent: AtomicBool,
    /// Changes wait while a page is being written.
    pages: Deferred<Pages>,
    /// The number of changes so far.
    generation: AtomicU64,
}

/// The series of groups, and the pages that are being read.
struct Pages {
    groups: Groups,
    /// The nodes of the tree of groups.
    nodes: Groups,
    /// The networks at the other end.
    networks: Groups,
    /// The last page by [`PageFormat`] and [`Encoding`], while a client reads it, and its generation.
    last: [[(u64, Weak<Page>); Encoding::COUNT]; PageFormat::COUNT],
}

impl Metrics {
    /// Creates metrics without measurements. At most `groups` groups have a label of their own; RTT inflation is the
    /// distance from the lowest RTT of the window `baseline`.
    pub fn new(groups: u32, baseline: Duration) -> Self {
        let now = Instant::now();
        let pages = Pages {
            groups: Groups::new(groups, baseline, now),
            nodes: Groups::of_nodes(groups, baseline, now),
            networks: Groups::of_networks(groups, baseline, now),
            last: Default::default(),
        };
        Self(Arc::new(Inner {
            began: SystemTime::now(),
            latest: latest::LatestStore::default(),
            is_persistent: AtomicBool::new(false),
            pages: Deferred::new(pages),
            generation: AtomicU64::new(1),
        }))
    }

    /// Adds the measurements of series of groups, of nodes of the tree, and of networks, since the last call. Does not wait for a page that
    /// is being written.
    pub fn add(&self, slices: &[(SeriesName, SeriesCounts)], now: Instant) {
        self.0.pages.change_by(slices, move |pages, slices| {
            pages.groups.add(slices, now);
            pages.nodes.add(slices, now);
            pages.networks.add(slices, now);
        });
        self.changed();
    }

    /// Removes the series of nodes and networks that had no traffic for this time.
    pub fn expire_nodes(&self, timeout: Duration) {
        let now = Instant::now();
        self.0.pages.change(move |pages| {
            pages.nodes.expire(timeout, now);
            pages.networks.expire(timeout, now);
        });
    }

    /// Adds the times of packets in queues since the last call. It comes before [`Self::add`], which ends the epoch.
    pub fn add_queues(&self, queues: &[(QueueName, SeriesCounts)]) {
        if queues.is_empty() {
            return;
        }
        self.0.pages.change_by(queues, |pages, queues| pages.groups.add_queues(queues));
        self.changed();
    }

    /// Keeps the counters of groups in `persistent` from now on.
    pub fn persist_in(&self, persistent: PersistentCounts) {
        self.0.pages.lock().groups.persist_in(persistent);
        self.0.is_persistent.store(true, Ordering::Relaxed);
    }

    /// Changes the highest number of groups with a label and the window of the baseline.
    pub fn change(&self, groups: u32, baseline: Duration) {
        let mut pages = self.0.pages.lock();
        pages.groups.change(groups, baseline);
        pages.nodes.change(groups, baseline);
        pages.networks.change(groups, baseline);
        drop(pages);
        self.changed();
    }

    /// Scores series by these profiles from now on.
    pub fn score_by(&self, profiles: Profiles) {
        let mut pages = self.0.pages.lock();
        pages.nodes.profiles = profiles.clone();
        pages.networks.profiles = profiles.clone();
        pages.groups.profiles = profiles;
        drop(pages);
        self.changed();
    }

    /// Adds the counters at the end of this epoch to the persistent counts, if there are any. Waits for a page that is being written.
    pub fn commit(&self, epoch: u32) {
        if self.0.is_persistent.load(Ordering::Relaxed) {
            self.0.pages.lock().groups.commit(epoch);
        }
    }

    /// Continues the counters of these series from an earlier run, which committed this many epochs.
    pub fn resume(&self, series: &[SeriesName], committed: u32, now: Instant) {
        self.0.pages.lock().groups.resume(series, committed, now);
        self.changed();
    }

    /// Removes a series whose group expired.
    pub fn forget(&self, series: &SeriesName) {
        self.0.pages.change_by(series, |pages, series| pages.groups.forget(series));
        self.changed();
    }

    /// Removes the queue times of a group that expired.
    pub fn forget_queue(&self, queue: &QueueName) {
        self.0.pages.change_by(queue, |pages, queue| pages.groups.queues.forget(queue));
        self.changed();
    }

    /// Removes all series of an interface whose id another interface got.
    pub fn forget_interface(&self, interface: &Arc<str>) {
        self.0.pages.change_by(interface, |pages, interface| {
            pages.groups.forget_interface(interface);
            pages.nodes.forget_interface(interface);
            pages.networks.forget_interface(interface);
        });
        self.changed();
    }

    /// Starts to count for an exporter, or continues if it already does.
    pub fn begin_exports(&self) {
        let mut pages = self.0.pages.lock();
        let mut latest = lock(&self.0.latest);
        latest.pushes.get_or_insert_default();
        if pages.groups.exports.is_some() {
            return;
        }
        // Pinned counters include earlier runs; others began with this process.
        let exports = if self.0.is_persistent.load(Ordering::Relaxed) {
            let counters = counters::families(&latest).chain(counters::run_times(&latest));
            let counters = counters.chain(packet_cost::counters(&latest.snapshot));
            ExportState::new(SystemTime::now(), &counters.collect::<Vec<_>>())
        } else {
            ExportState::new(self.0.began, &[])
        };
        drop(latest);
        pages.groups.begin_exports(exports);
        // The counts of nodes and networks begin with this process in any case.
        pages.nodes.begin_exports(ExportState::new(self.0.began, &[]));
        pages.networks.begin_exports(ExportState::new(self.0.began, &[]));
    }

    /// Returns all metrics as values. With many groups this takes some hundredths of a second.
    pub fn export(&self, temporality: Temporality) -> Export {
        let latest = lock(&self.0.latest).clone();
        let mut pages = self.0.pages.lock();
        let at = SystemTime::now();
        let mut families = pages.groups.take(temporality, Instant::now(), at);
        families.extend(pages.nodes.take(temporality, Instant::now(), at));
        families.extend(pages.networks.take(temporality, Instant::now(), at));
        if let Some(exports) = &mut pages.groups.exports {
            let process = process::Process::read();
            families.extend(exports.distributions(&latest.residence, temporality));
            let costs = packet_cost::counters(&latest.snapshot);
            families.push(exports.take_summary(&packet_cost::PACKET_COST, costs, temporality));
            let others = counters::families(&latest).chain(counters::run_times(&latest));
            let others = others.chain(process.iter().flat_map(process::Process::families));
            families.extend(exports.take(others, temporality, at));
        }
        Export { at, temporality, families }
    }

    /// Adds what an exporter counted since it last did this. While one ends, there may be another one already.
    pub fn add_push_counts(&self, more: Pushes) {
        *lock(&self.0.latest).pushes.get_or_insert_default() += more;
        self.changed();
    }

    /// Replaces the counters of the kernel programs.
    pub fn set_counters(&self, snapshot: Snapshot, fill: Fill) {
        let mut latest = lock(&self.0.latest);
        (latest.snapshot, latest.fill) = (snapshot, fill);
        drop(latest);
        self.changed();
    }

    /// Replaces the names of the interfaces that should be there.
    pub fn set_expected(&self, interfaces: BTreeSet<String>) {
        lock(&self.0.latest).expected = interfaces;
        self.changed();
    }

    /// Replaces the residence times of each interface; none without `--residence`.
    pub fn set_residence(&self, times: Vec<InterfaceTimes>) {
        lock(&self.0.latest).residence = times;
        self.changed();
    }

    /// Replaces the counts of the groups socket.
    pub fn set_group_changes(&self, changes: GroupChanges) {
        lock(&self.0.latest).group_changes = Some(changes);
        self.changed();
    }

    /// Replaces the run times of the kernel programs; none if the kernel keeps no statistics.
    pub fn set_program_runs(&self, runs: Vec<ProgramRuns>) {
        lock(&self.0.latest).programs = runs;
        self.changed();
    }

    /// Writes a page. With many groups this takes up to some tenths of a second, so call it from a thread that may
    /// block. Concurrent requests for the same page share it.
    pub fn page(&self, format: PageFormat, encoding: Encoding) -> Arc<Page> {
        // The generation is read first, so that a change that arrives later makes another page.
        let generation = self.0.generation.load(Ordering::Acquire);
        let mut pages = self.0.pages.lock();
        let Pages { groups, nodes, networks, last } = &mut *pages;
        let (of, last) = &mut last[format as usize][encoding as usize];
        if let Some(page) = last.upgrade().filter(|_| *of == generation) {
            return page;
        }
        let mut page: Box<dyn Exposition> = match format {
            PageFormat::OpenMetrics => Box::new(Text::new(true, encoding)),
            PageFormat::Classic => Box::new(Text::new(false, encoding)),
            PageFormat::Protobuf => Box::new(Protobuf::new(encoding)),
        };
        build(&mut *page);
        let latest = lock(&self.0.latest).clone();
        counters::families(&latest).for_each(|family| integers(&mut *page, &family));
        packet_cost::write(&mut *page, &latest.snapshot);
        if let Some(times) = counters::run_times(&latest) {
            integers(&mut *page, &times);
        }
        residence::write(&mut *page, &latest.residence, self.0.began);
        process::write(&mut *page);
        groups.write(&mut *page, Instant::now());
        nodes.write(&mut *page, Instant::now());
        networks.write(&mut *page, Instant::now());
        let page = Arc::new(page.finish());
        (*of, *last) = (generation, Arc::downgrade(&page));
        page
    }

    fn changed(&self) {
        self.0.generation.fetch_add(1, Ordering::Release);
    }
}

static BUILD: Metric = Metric::new(Kind::Info, "pping_build", "", "Version of the running pping");

/// Writes the version and the revision of this pping.
fn build(page: &mut dyn Exposition) {
    page.family(&BUILD);
    let labels =
        FormattedLabels::new(&[("version", env!("CARGO_PKG_VERSION")), ("revision", env!("PPING_REVISION"))]);
    let prefix = page.prefix(&[]);
    page.value(&prefix, &labels, Value::Integer(1));
}

/// Writes a metric. Times are in ns.
fn integers(page: &mut dyn Exposition, IntegerFamily { metric, series }: &IntegerFamily) {
    page.family(metric);
    let prefix = page.prefix(&[]);
    for (labels, value) in series {
        let value = match metric.unit {
            "s" => Value::Nanoseconds((*value).into()),
            _ => Value::Integer(*value),
        };
        page.value(&prefix, &labels.into(), value);
    }
}

/// Locks a mutex. A panic elsewhere leaves values valid: they are added or replaced as a whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pping_common::abi::Part;

    use super::*;

    const PAGE: &str = include_str!("../../../docs/metrics.md");

    /// Returns the metrics in the tables of docs/metrics.md, by the name of their series, with their type.
    fn documented() -> BTreeMap<&'static str, &'static str> {
        let mut documented = BTreeMap::new();
        for row in PAGE.lines() {
            let mut cells = row.split('|').map(str::trim);
            let (Some(""), Some(names), Some(kind)) = (cells.next(), cells.next(), cells.next()) else {
                continue;
            };
            if ["counter", "gauge", "histogram", "summary", "info"].contains(&kind) {
                documented.extend(
                    names.split('`').filter(|name| name.starts_with("pping_")).map(|name| (name, kind)),
                );
            }
        }
        documented
    }

    #[test]
    fn counters_are_described_before_there_is_anything_to_count() {
        let metrics = Metrics::new(1, Duration::from_mins(10));
        let page = metrics.page(PageFormat::OpenMetrics, Encoding::Identity).text();
        for described in ["pping_packets counter", "pping_samples counter"] {
            assert!(page.contains(&format!("# TYPE {described}\n")), "{page}");
        }
        for unmeasured in ["pping_otlp_requests", "pping_queue_followed_packets", "pping_bpf_run"] {
            assert!(!page.contains(unmeasured), "{page}");
        }
    }

    #[test]
    fn the_reference_page_has_each_metric_and_no_other() {
        let mut exposed = BTreeMap::new();
        let others = [&BUILD, &packet_cost::PACKET_COST, &queues::QUEUE];
        let of_parts = Part::ALL.map(residence::histogram);
        let of_groups = [&families::OF_GROUPS, &families::OF_NODES, &families::OF_NETWORKS]
            .into_iter()
            .flat_map(families::Families::all);
        for metric in counters::metrics().chain(of_groups).chain(others).chain(of_parts) {
            let (suffix, kind) = match metric.kind {
                Kind::Counter => ("_total", "counter"),
                Kind::Gauge => ("", "gauge"),
                Kind::Histogram => ("", "histogram"),
                Kind::Summary => ("", "summary"),
                Kind::Info => ("_info", "info"),
            };
            exposed.insert(metric.name_on_pages() + suffix, kind);
        }
        let exposed: BTreeMap<_, _> = exposed.iter().map(|(name, kind)| (name.as_str(), *kind)).collect();
        assert_eq!(exposed, documented());
    }
}

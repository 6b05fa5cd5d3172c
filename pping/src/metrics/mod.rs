//! Metrics for Prometheus.
//!
//! Metrics of interfaces and of the process go through the client library. Those of groups are written by hand: up to half
//! a million lines, each in some nanoseconds, from labels that were formatted once.

mod classic;
mod counters;
mod export;
mod family;
mod groups;
mod inflation;
mod labelled;
mod ledger;
mod minimum;
mod page;
mod process;
mod series;

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use classic::to_classic;
pub use counters::{Dropped, Failed, Fill, Pushes};
use export::Exports;
pub use export::{Attributes, Distribution, Export, Family, Point, Points};
use groups::Groups;
pub use ledger::{Ledger, Storage};
use page::Writer;
pub use page::{Encoding, Page, Text};
use pping_common::abi::Tally;
use prometheus_client::{encoding::text as client, metrics::info::Info, registry::Registry};

use crate::{
    config::Temporality,
    groups::SeriesName,
    snapshot::{ProgramRuns, Snapshot},
};

/// All metrics. Cloning gives another handle to the same ones.
#[derive(Clone)]
pub struct Metrics(Arc<Shared>);

struct Shared {
    began: SystemTime,
    registry: Registry,
    latest: counters::State,
    /// Whether the counters of groups outlive this process.
    is_persistent: AtomicBool,
    /// Changes that arrived while a page was being written.
    inbox: Mutex<Vec<Message>>,
    pages: Mutex<Pages>,
    /// The number of changes so far.
    generation: AtomicU64,
}

/// The series of groups, and the pages that are being read.
struct Pages {
    groups: Groups,
    /// The last page by [`Text`] and [`Encoding`], while a client reads it, and its generation.
    last: [(u64, Weak<Page>); 4],
}

enum Message {
    Add(Vec<(SeriesName, Tally)>, Instant),
    Forget(SeriesName),
}

impl Metrics {
    /// No measurements. At most `groups` groups have a label of their own; RTT inflation is the distance from the lowest RTT
    /// of the window `baseline`.
    pub fn new(groups: u32, baseline: Duration) -> Self {
        let mut registry = Registry::default();
        let latest = counters::State::default();
        registry.register_collector(Box::new(counters::CountersCollector(Arc::clone(&latest))));
        registry.register_collector(Box::new(process::ProcessCollector));
        registry.register(
            "pping_build",
            "Version of the running pping",
            Info::new([("version", env!("CARGO_PKG_VERSION")), ("revision", env!("PPING_REVISION"))]),
        );
        let groups = Groups::new(groups, baseline, Instant::now());
        Self(Arc::new(Shared {
            began: SystemTime::now(),
            registry,
            latest,
            is_persistent: AtomicBool::new(false),
            inbox: Mutex::default(),
            pages: Mutex::new(Pages { groups, last: Default::default() }),
            generation: AtomicU64::new(1),
        }))
    }

    /// Adds what series measured since the last time. Does not wait for a page that is being written.
    pub fn add(&self, slices: &[(SeriesName, Tally)], now: Instant) {
        match self.try_pages() {
            Some(mut pages) => pages.groups.add(slices, now),
            None => lock(&self.0.inbox).push(Message::Add(slices.to_vec(), now)),
        }
        self.changed();
    }

    /// Keeps the counters of groups in `ledger` from now on.
    pub fn persist_in(&self, ledger: Ledger) {
        lock(&self.0.pages).groups.persist_in(ledger);
        self.0.is_persistent.store(true, Ordering::Relaxed);
    }

    /// Changes the highest number of groups with a label and the window of the baseline.
    pub fn change(&self, groups: u32, baseline: Duration) {
        lock(&self.0.pages).groups.change(groups, baseline);
        self.changed();
    }

    /// Writes the counters at the end of this epoch to the ledger, if there is one. Waits for a page that is being written.
    pub fn commit(&self, epoch: u32) {
        if self.0.is_persistent.load(Ordering::Relaxed) {
            let mut pages = lock(&self.0.pages);
            self.empty_inbox(&mut pages.groups);
            pages.groups.commit(epoch);
        }
    }

    /// Continues the counters of these series from an earlier run, which committed this many epochs.
    pub fn resume(&self, series: &[SeriesName], committed: u32, now: Instant) {
        lock(&self.0.pages).groups.resume(series, committed, now);
        self.changed();
    }

    /// Removes a series whose group expired.
    pub fn forget(&self, series: &SeriesName) {
        match self.try_pages() {
            Some(mut pages) => pages.groups.forget(series),
            None => lock(&self.0.inbox).push(Message::Forget(series.clone())),
        }
        self.changed();
    }

    /// Counts for an exporter from now on, or goes on with that. Returns the counts of the exporter before.
    pub fn begin_exports(&self) -> Pushes {
        let mut pages = lock(&self.0.pages);
        self.empty_inbox(&mut pages.groups);
        let mut latest = lock(&self.0.latest);
        let pushes = *latest.pushes.get_or_insert_default();
        if pages.groups.exports.is_some() {
            return pushes;
        }
        // Pinned counters are those of earlier runs too; others began with this process.
        let exports = if self.0.is_persistent.load(Ordering::Relaxed) {
            Exports::new(SystemTime::now(), &counters::families(&latest))
        } else {
            Exports::new(self.0.began, &[])
        };
        drop(latest);
        pages.groups.begin_exports(exports);
        pushes
    }

    /// All metrics as values. With many groups this takes some hundredths of a second.
    pub fn export(&self, temporality: Temporality) -> Export {
        let latest = lock(&self.0.latest).clone();
        let mut pages = lock(&self.0.pages);
        self.empty_inbox(&mut pages.groups);
        let at = SystemTime::now();
        let mut families = pages.groups.take(temporality, Instant::now(), at);
        if let Some(exports) = &mut pages.groups.exports {
            let process = process::Process::read();
            let times = counters::times(&latest, process.as_ref());
            let mut others = counters::families(&latest);
            others.extend(process.iter().flat_map(process::Process::levels));
            families.extend(exports.take(others, times, temporality, at));
        }
        Export { at, temporality, families }
    }

    /// Replaces the counts of the exporter.
    pub fn pushed(&self, pushes: Pushes) {
        if let Some(latest) = &mut lock(&self.0.latest).pushes {
            *latest = pushes;
        }
        self.changed();
    }

    /// Replaces the counters of the kernel programs.
    pub fn counted(&self, snapshot: Snapshot, fill: Fill) {
        let mut latest = lock(&self.0.latest);
        (latest.snapshot, latest.fill) = (snapshot, fill);
        drop(latest);
        self.changed();
    }

    /// Replaces the cost of the kernel programs; nothing where the kernel keeps no statistics.
    pub fn programs(&self, runs: Vec<ProgramRuns>) {
        lock(&self.0.latest).programs = runs;
        self.changed();
    }

    /// Writes a page. With many groups this takes up to some tenths of a second, so it is not for a thread that must not
    /// block. Concurrent requests for the same page share it.
    ///
    /// # Errors
    /// When a metric cannot be written as text, which would be a defect.
    pub fn page(&self, text: Text, encoding: Encoding) -> Result<Arc<Page>, fmt::Error> {
        let mut pages = lock(&self.0.pages);
        // Read before the inbox: a change that arrives later makes another page.
        let generation = self.0.generation.load(Ordering::Acquire);
        let Pages { groups, last } = &mut *pages;
        let (of, last) = &mut last[2 * text as usize + encoding as usize];
        if let Some(page) = last.upgrade().filter(|_| *of == generation) {
            return Ok(page);
        }
        self.empty_inbox(groups);
        let mut small = String::new();
        client::encode_registry(&mut small, &self.0.registry)?;
        if text == Text::Classic {
            small = to_classic(&small);
        }
        let mut writer = Writer::new(text, encoding);
        writer.put(&[&small]);
        groups.write(&mut writer, Instant::now());
        let page = Arc::new(writer.finish());
        (*of, *last) = (generation, Arc::downgrade(&page));
        Ok(page)
    }

    /// The pages with all changes so far; `None` while one is being written.
    fn try_pages(&self) -> Option<MutexGuard<'_, Pages>> {
        let mut pages = match self.0.pages.try_lock() {
            Ok(pages) => pages,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        self.empty_inbox(&mut pages.groups);
        Some(pages)
    }

    fn empty_inbox(&self, groups: &mut Groups) {
        for message in std::mem::take(&mut *lock(&self.0.inbox)) {
            match message {
                Message::Add(slices, at) => groups.add(&slices, at),
                Message::Forget(series) => groups.forget(&series),
            }
        }
    }

    fn changed(&self) {
        self.0.generation.fetch_add(1, Ordering::Release);
    }
}

/// Locks a mutex. A panic elsewhere leaves values valid: they are added or replaced as a whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

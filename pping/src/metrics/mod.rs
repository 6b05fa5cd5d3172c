//! Metrics for Prometheus, by the names and labels of the project's contract.
//!
//! What there is once per interface or process goes through the client library. What there is of every group is written
//! by hand: that is up to half a million lines, at some nanoseconds each, from labels that were put into text once.

mod classic;
mod groups;
mod inflation;
mod kernel;
mod labelled;
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
    time::{Duration, Instant},
};

pub use classic::to_classic;
use groups::Groups;
use page::Writer;
pub use page::{Encoding, Page, Text};
use pping_common::abi::Tally;
use prometheus_client::{encoding::text as client, metrics::info::Info, registry::Registry};

use crate::{
    groups::SeriesName,
    kernel::{counters::Snapshot, ledger::Ledger, runs::ProgramRuns},
};

/// What the agent lost, and how full the kernel's maps are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    /// Lines that the writer had no room for.
    pub lines_lost: u64,
    /// Flows per address family that there is room for.
    pub max_flows: u32,
    /// Groups that the kernel tells apart.
    pub groups: u32,
    /// Groups that there is room for.
    pub max_groups: u32,
    /// Series of groups that there are.
    pub series: u32,
    /// Series that there is room for.
    pub max_series: u32,
}

/// All metrics. Cloning gives another handle to the same ones.
#[derive(Clone)]
pub struct Metrics(Arc<Shared>);

struct Shared {
    registry: Registry,
    counted: kernel::State,
    /// Whether series are kept for whoever comes after this run.
    are_kept: AtomicBool,
    /// What came while a page was being written.
    inbox: Mutex<Vec<Message>>,
    behind: Mutex<Behind>,
    /// Counts what changes a page.
    generation: AtomicU64,
}

/// What pages are made from.
struct Behind {
    groups: Groups,
    /// Pages that somebody may still be reading, by [`Text`] and [`Encoding`], and the generation they are of.
    pages: [(u64, Weak<Page>); 4],
}

enum Message {
    Slices(Vec<(SeriesName, Tally)>, Instant),
    Forget(SeriesName),
}

impl Metrics {
    /// Nothing measured yet. At most `groups` of them have a label of their own; `baseline` is the time of whose lowest
    /// RTT inflation is the distance.
    pub fn new(groups: u32, baseline: Duration) -> Self {
        let mut registry = Registry::default();
        let counted = kernel::State::default();
        registry.register_collector(Box::new(kernel::KernelCollector(Arc::clone(&counted))));
        registry.register_collector(Box::new(process::ProcessCollector));
        registry.register(
            "pping_build",
            "Version of the running pping",
            Info::new([("version", env!("CARGO_PKG_VERSION")), ("revision", env!("PPING_REVISION"))]),
        );
        let groups = Groups::new(groups, baseline, Instant::now());
        Self(Arc::new(Shared {
            registry,
            counted,
            are_kept: AtomicBool::new(false),
            inbox: Mutex::default(),
            behind: Mutex::new(Behind { groups, pages: Default::default() }),
            generation: AtomicU64::new(1),
        }))
    }

    /// Takes what series got since the last time. This never waits for a page that is being written.
    pub fn take(&self, slices: &[(SeriesName, Tally)], now: Instant) {
        match self.try_behind() {
            Some(mut behind) => behind.groups.take(slices, now),
            None => lock(&self.0.inbox).push(Message::Slices(slices.to_vec(), now)),
        }
        self.changed();
    }

    /// Keeps what is told of series for whoever comes after this run.
    pub fn keep_in(&self, ledger: Ledger) {
        lock(&self.0.behind).groups.keep_in(ledger);
        self.0.are_kept.store(true, Ordering::Relaxed);
    }

    /// Tells this many groups apart, and compares with the lowest RTT of this time, from now on.
    pub fn change(&self, groups: u32, baseline: Duration) {
        lock(&self.0.behind).groups.change(groups, baseline);
        self.changed();
    }

    /// Writes down what was taken up to the end of this turn, where series are kept. For that, this waits for a page that is
    /// being written.
    pub fn book(&self, turn: u32) {
        if self.0.are_kept.load(Ordering::Relaxed) {
            let mut behind = lock(&self.0.behind);
            self.empty_inbox(&mut behind.groups);
            behind.groups.book(turn);
        }
    }

    /// Goes on from what a run before this one told of these series, when `booked` turns had been booked.
    pub fn adopt(&self, series: &[SeriesName], booked: u32, now: Instant) {
        lock(&self.0.behind).groups.adopt(series, booked, now);
        self.changed();
    }

    /// Forgets a series, since its group expired.
    pub fn forget(&self, series: &SeriesName) {
        match self.try_behind() {
            Some(mut behind) => behind.groups.forget(series),
            None => lock(&self.0.inbox).push(Message::Forget(series.clone())),
        }
        self.changed();
    }

    /// Takes what the kernel programs have counted.
    pub fn counted(&self, snapshot: Snapshot, fill: Fill) {
        let mut counted = lock(&self.0.counted);
        (counted.snapshot, counted.fill) = (snapshot, fill);
        drop(counted);
        self.changed();
    }

    /// Takes what the kernel programs cost so far, where the kernel keeps statistics of that.
    pub fn programs(&self, runs: Vec<ProgramRuns>) {
        lock(&self.0.counted).programs = runs;
        self.changed();
    }

    /// Writes a page. This takes up to some tenths of a second where there are many groups: not for a thread that others
    /// wait for. Those who ask for the same at the same time share one page.
    ///
    /// # Errors
    /// When a metric cannot be written as text, which would be a defect.
    pub fn page(&self, text: Text, encoding: Encoding) -> Result<Arc<Page>, fmt::Error> {
        let mut behind = lock(&self.0.behind);
        // Before what has come is read: what comes later makes another page.
        let generation = self.0.generation.load(Ordering::Acquire);
        let Behind { groups, pages } = &mut *behind;
        let (of, last) = &mut pages[2 * text as usize + encoding as usize];
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
        writer.text(&small);
        groups.write(&mut writer, Instant::now());
        let page = Arc::new(writer.finish());
        (*of, *last) = (generation, Arc::downgrade(&page));
        Ok(page)
    }

    /// What pages are made from, up to date, unless one is being written.
    fn try_behind(&self) -> Option<MutexGuard<'_, Behind>> {
        let mut behind = match self.0.behind.try_lock() {
            Ok(behind) => behind,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        self.empty_inbox(&mut behind.groups);
        Some(behind)
    }

    fn empty_inbox(&self, groups: &mut Groups) {
        for message in std::mem::take(&mut *lock(&self.0.inbox)) {
            match message {
                Message::Slices(slices, at) => groups.take(&slices, at),
                Message::Forget(series) => groups.forget(&series),
            }
        }
    }

    fn changed(&self) {
        self.0.generation.fetch_add(1, Ordering::Release);
    }
}

/// A panic elsewhere does not make numbers wrong: they are added or replaced as a whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

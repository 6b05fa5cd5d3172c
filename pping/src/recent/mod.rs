//! The recent history of measurements, for people: the last 15 minutes, in memory, of the interfaces and the busiest groups.
//!
//! Once a second, the agent passes on the data that it has anyway. The recent history owns nothing of the kernel and writes
//! nothing, so tests use made-up input. The memory of its past is bounded: if the past takes more, the least busy
//! groups lose theirs first, except for the last minute.

mod answers;
mod cells;
mod columns;
mod figures;
mod history;
mod hosts;
mod model;
mod order;
mod range;
mod rates;
mod residence;
#[cfg(test)]
mod schema;
mod sides;
mod worst;

use std::sync::{
    Arc, PoisonError, RwLock,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use pping_common::series::SeriesCounts;
use tokio::sync::watch;

use self::model::Model;
pub use self::{
    answers::{
        CellAnswer, Cost, GroupAnswer, GroupDetail, GroupQueue, GroupsAnswer, HistoryAnswer, Interface,
        InterfaceRates, LongestMatchAnswer, Losses, NodeAnswer, Rate, SeriesAnswer, SeriesHistory, Summary,
    },
    cells::CELL,
    columns::{Column, Order, View},
    figures::{RttAnswer, TrafficAnswer},
    history::CELLS,
    order::{HistoryQuery, Query, SeriesQuery},
    range::{GroupOfRange, WorstOfRange, WorstOfRangeQuery},
    rates::Reading,
    residence::{OwnQueue, ResidenceAnswer, TimesAnswer},
    sides::{SideAnswer, SidesAnswer},
    worst::{WorstAnswer, WorstFlowAnswer, WorstGroupAnswer, WorstQuery},
};
#[cfg(feature = "history")]
use crate::aggregate::Measurements;
use crate::{
    deferred::Deferred,
    groups::{Directory, Levels, Networks, QueueName, SeriesName},
    quality::Profiles,
    residence::InterfaceTimes,
    worst::WorstFlow,
};

/// Memory for the past of groups unless set otherwise, bytes.
pub const MEMORY: usize = 16 << 20;

/// The recent history. Cloning gives another handle to the same one.
#[derive(Clone, Debug)]
pub struct RecentHistory(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Changes wait while an answer is being made.
    model: Deferred<Model>,
    /// The number of changes so far, those that wait included.
    sequence: AtomicU64,
    /// Whether sides of the network are told apart.
    has_sides: AtomicBool,
    /// Whether a history of months is kept.
    has_history: AtomicBool,
    /// The levels of the tree of groups.
    levels: RwLock<Levels>,
    /// The networks at the other end.
    networks: RwLock<Networks>,
    /// The end of the latest second, ns.
    seconds: watch::Sender<u64>,
}

impl RecentHistory {
    /// Creates an empty history. The past of groups may take this many bytes.
    pub fn new(memory: usize) -> Self {
        Self(Arc::new(Inner {
            model: Deferred::new(Model::new(memory)),
            sequence: AtomicU64::new(0),
            has_sides: AtomicBool::new(false),
            has_history: AtomicBool::new(false),
            levels: RwLock::default(),
            networks: RwLock::default(),
            seconds: watch::Sender::new(0),
        }))
    }

    /// Adds the measurements of series of groups, of nodes of the tree, and of networks, in the second before `at`, ns. Does not wait for an answer that is being made.
    pub fn add(&self, slices: &[(SeriesName, SeriesCounts)], at: u64) {
        self.0.model.change_by(slices, move |model, slices| model.add(slices, at));
        self.changed();
    }

    /// Adds what series measured in a longer time of the past, which ended at `at`, ns.
    #[cfg(feature = "history")]
    pub(crate) fn restore(&self, series: &[(SeriesName, Measurements)], at: u64) {
        self.0.model.lock().restore(series, at);
        self.changed();
    }

    /// Adds the times that packets of groups spent in queues in the second before `at`, ns. It comes after [`Self::add`].
    pub fn add_queues(&self, queues: &[(QueueName, SeriesCounts)], at: u64) {
        self.0.model.change_by(queues, move |model, queues| model.add_queues(queues, at));
    }

    /// Takes the reading at the end of a second, at `at`, ns. It comes last in a second, and announces its end.
    pub fn take_reading(&self, reading: Reading, at: u64) {
        self.0.model.change(move |model| model.take_reading(reading, at));
        self.changed();
        self.0.seconds.send_replace(at);
    }

    /// Takes the worst flows of a second, at `at`, ns.
    pub fn rank(&self, flows: &[WorstFlow], at: u64) {
        self.0.model.change_by(flows, move |model, flows| model.rank(flows, at));
    }

    /// Sets how many samples or packets a group needs to rank among the worst.
    pub fn set_min_samples(&self, min_samples: u64) {
        self.0.model.change(move |model| model.min_samples = min_samples);
    }

    /// Sets whether sides of the network are told apart, by `--inside`.
    pub fn tell_sides_apart(&self, has_sides: bool) {
        self.0.has_sides.store(has_sides, Ordering::Release);
    }

    /// Whether sides of the network are told apart, by `--inside`. There may be no samples of either yet.
    pub fn has_sides(&self) -> bool {
        self.0.has_sides.load(Ordering::Acquire)
    }

    /// Sets whether a history of months is kept, by `--history`.
    pub fn tell_of_history(&self, has_history: bool) {
        self.0.has_history.store(has_history, Ordering::Release);
    }

    /// Takes the residence times of each interface, read at `at`, ns. It comes before [`Self::take_reading`].
    pub fn set_residence(&self, times: Vec<InterfaceTimes>, at: u64) {
        self.0.model.change(move |model| model.residence.take(times, at));
    }

    /// Changes how many bytes the past of groups may take, from the next cell on.
    pub fn limit(&self, memory: usize) {
        self.0.model.change(move |model| model.memory = memory);
    }

    /// Scores series by these profiles from now on.
    pub fn score_by(&self, profiles: Profiles) {
        self.0.model.change(move |model| model.profiles = profiles);
    }

    /// Takes the prefixes of the groups file, to find groups by address.
    pub fn list_groups(&self, directory: Directory) {
        self.0.model.change(move |model| model.list_groups(directory));
    }

    /// Takes the levels of the tree of groups.
    pub fn list_levels(&self, levels: Levels) {
        *self.0.levels.write().unwrap_or_else(PoisonError::into_inner) = levels.clone();
        self.0.model.change(move |model| model.list_levels(levels));
        self.changed();
    }

    /// Takes the names of networks at the other end from here.
    pub fn name_networks(&self, networks: Networks) {
        *self.0.networks.write().unwrap_or_else(PoisonError::into_inner) = networks.clone();
        self.0.model.change(move |model| model.names_of_networks = networks);
    }

    /// Whether networks at the other end are told apart.
    pub fn has_networks(&self) -> bool {
        self.0.networks.read().unwrap_or_else(PoisonError::into_inner).are_known()
    }

    /// Returns the levels of the tree of groups.
    pub fn levels(&self) -> Levels {
        self.0.levels.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets everything.
    #[cfg(any(feature = "top", test))]
    pub(crate) fn clear(&self) {
        self.0.model.lock().clear();
        self.changed();
    }

    /// Forgets a series whose group expired.
    pub fn forget(&self, series: &SeriesName) {
        self.0.model.change_by(series, Model::forget);
    }

    /// Forgets the queue times of a group that expired.
    pub fn forget_queue(&self, queue: &QueueName) {
        self.0.model.change_by(queue, Model::forget_queue);
    }

    /// Returns a receiver that changes as soon as a second is over.
    pub fn seconds(&self) -> watch::Receiver<u64> {
        self.0.seconds.subscribe()
    }

    /// Returns the number of changes so far, without waiting for an answer that is being made. An answer from now on has
    /// this sequence or a later one.
    pub fn sequence(&self) -> u64 {
        self.0.sequence.load(Ordering::Acquire)
    }

    /// Returns the current rates, round-trip times and losses of all interfaces.
    pub fn summary(&self) -> Summary {
        let summary =
            self.0.model.lock().summary(self.has_sides(), self.0.has_history.load(Ordering::Acquire));
        Summary { levels: self.levels().names().to_vec(), ..summary }
    }

    /// Returns the recent past of the interfaces, for the series that are asked for.
    pub fn history(&self, query: &SeriesQuery) -> HistoryAnswer {
        self.0.model.lock().interfaces(query)
    }

    /// Returns the groups that are asked for; none if they are to be under a node that does not exist.
    pub fn groups(&self, query: &Query) -> GroupsAnswer {
        let mut model = self.0.model.lock();
        model.count_named();
        model.groups(query)
    }

    /// Returns the same.
    ///
    /// # Errors
    /// If they are to be under a node that does not exist.
    pub fn groups_under(&self, query: &Query) -> Result<GroupsAnswer, String> {
        let mut model = self.0.model.lock();
        model.count_named();
        match query.under.as_ref().and_then(|under| model.why_no_node(under)) {
            Some(reason) => Err(format!("under: {reason}")),
            None => Ok(model.groups(query)),
        }
    }

    /// Returns the group with an id, if it exists.
    pub fn group(&self, id: &str) -> Option<GroupDetail> {
        let mut model = self.0.model.lock();
        model.count_named();
        model.group(id)
    }

    /// Returns the worst flows and groups.
    pub fn worst(&self, query: &WorstQuery) -> WorstAnswer {
        self.0.model.lock().worst(query)
    }

    /// Counts a change, after it was made or waits.
    fn changed(&self) {
        self.0.sequence.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;

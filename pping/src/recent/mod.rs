//! The recent history of measurements, for people: the last 15 minutes, in memory, of the interfaces and the busiest groups.
//!
//! Once a second, the agent passes on the data that it has anyway. The recent history owns nothing of the kernel and writes
//! nothing, so tests use made-up input. The memory of its past is bounded: if the past takes more, the least busy
//! groups lose theirs first, except for the last minute.

mod answers;
mod cells;
mod history;
mod hosts;
mod model;
mod order;
mod rates;
mod residence;
mod worst;

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, TryLockError,
    atomic::{AtomicU64, Ordering},
};

use pping_common::series::SeriesCounts;
use tokio::sync::watch;

use self::model::Model;
pub use self::{
    answers::{
        CellAnswer, Cost, GroupAnswer, GroupDetail, GroupQueue, GroupsAnswer, HistoryAnswer, Interface,
        InterfaceRates, LongestMatchAnswer, Losses, Rate, RttAnswer, SeriesAnswer, SeriesHistory, Summary,
        TrafficAnswer,
    },
    cells::CELL,
    history::CELLS,
    order::{Column, Order, Query, SeriesQuery},
    rates::Reading,
    residence::{OwnQueue, ResidenceAnswer, TimesAnswer},
    worst::{WorstAnswer, WorstFlowAnswer, WorstGroupAnswer, WorstQuery},
};
use crate::{
    groups::{Directory, QueueName, SeriesName},
    quality::Profiles,
    residence::InterfaceTimes,
    worst::WorstFlow,
};

/// Memory for the past of groups unless set otherwise, bytes.
pub const MEMORY: usize = 16 << 20;

/// The recent history. Cloning gives another handle to the same one.
#[derive(Clone, Debug)]
pub struct RecentHistory(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    model: Mutex<Model>,
    /// Messages that arrived while an answer was being made.
    inbox: Mutex<Vec<Message>>,
    /// The number of changes so far, those in the inbox included.
    sequence: AtomicU64,
    /// The end of the latest second, ns.
    seconds: watch::Sender<u64>,
}

#[derive(Debug)]
enum Message {
    Add(Vec<(SeriesName, SeriesCounts)>, u64),
    AddQueues(Vec<(QueueName, SeriesCounts)>, u64),
    TakeReading(Reading, u64),
    Rank(Vec<WorstFlow>, u64),
    SetResidence(Vec<InterfaceTimes>, u64),
    Forget(SeriesName),
    ForgetQueue(QueueName),
    Limit(usize),
    ScoreBy(Profiles),
    ListGroups(Directory),
}

impl RecentHistory {
    /// Creates an empty history. The past of groups may take this many bytes.
    pub fn new(memory: usize) -> Self {
        let model = Model::new(memory);
        let seconds = watch::Sender::new(0);
        Self(Arc::new(Shared {
            model: Mutex::new(model),
            inbox: Mutex::default(),
            sequence: AtomicU64::new(0),
            seconds,
        }))
    }

    /// Adds the measurements of series in the second before `at`, ns. Does not wait for an answer that is being made.
    pub fn add(&self, slices: &[(SeriesName, SeriesCounts)], at: u64) {
        match self.try_model() {
            Some(mut model) => model.add(slices, at),
            None => self.enqueue(Message::Add(slices.to_vec(), at)),
        }
        self.changed();
    }

    /// Adds the times that packets of groups spent in queues in the second before `at`, ns. It comes after [`Self::add`].
    pub fn add_queues(&self, queues: &[(QueueName, SeriesCounts)], at: u64) {
        match self.try_model() {
            Some(mut model) => model.add_queues(queues, at),
            None => self.enqueue(Message::AddQueues(queues.to_vec(), at)),
        }
    }

    /// Takes the reading at the end of a second, at `at`, ns. It comes last in a second, and announces its end.
    pub fn take_reading(&self, reading: Reading, at: u64) {
        match self.try_model() {
            Some(mut model) => model.take_reading(reading, at),
            None => self.enqueue(Message::TakeReading(reading, at)),
        }
        self.changed();
        self.0.seconds.send_replace(at);
    }

    /// Takes the worst flows of a second, at `at`, ns.
    pub fn rank(&self, flows: &[WorstFlow], at: u64) {
        match self.try_model() {
            Some(mut model) => model.rank(flows, at),
            None => self.enqueue(Message::Rank(flows.to_vec(), at)),
        }
    }

    /// Sets how many samples or packets a group needs to rank among the worst.
    pub fn set_min_samples(&self, min_samples: u64) {
        self.model().min_samples = min_samples;
    }

    /// Takes the residence times of each interface, read at `at`, ns. It comes before [`Self::take_reading`].
    pub fn set_residence(&self, times: Vec<InterfaceTimes>, at: u64) {
        match self.try_model() {
            Some(mut model) => model.residence.take(times, at),
            None => self.enqueue(Message::SetResidence(times, at)),
        }
    }

    /// Changes how many bytes the past of groups may take, from the next cell on.
    pub fn limit(&self, memory: usize) {
        match self.try_model() {
            Some(mut model) => model.memory = memory,
            None => self.enqueue(Message::Limit(memory)),
        }
    }

    /// Scores series by these profiles from now on.
    pub fn score_by(&self, profiles: Profiles) {
        match self.try_model() {
            Some(mut model) => model.profiles = profiles,
            None => self.enqueue(Message::ScoreBy(profiles)),
        }
    }

    /// Takes the prefixes of the groups file, to find groups by address.
    pub fn list_groups(&self, directory: Directory) {
        match self.try_model() {
            Some(mut model) => model.directory = directory,
            None => self.enqueue(Message::ListGroups(directory)),
        }
    }

    /// Forgets everything.
    #[cfg(any(feature = "top", test))]
    pub(crate) fn clear(&self) {
        self.model().clear();
        self.changed();
    }

    /// Forgets a series whose group expired.
    pub fn forget(&self, series: &SeriesName) {
        match self.try_model() {
            Some(mut model) => model.forget(series),
            None => self.enqueue(Message::Forget(series.clone())),
        }
    }

    /// Forgets the queue times of a group that expired.
    pub fn forget_queue(&self, queue: &QueueName) {
        match self.try_model() {
            Some(mut model) => model.forget_queue(queue),
            None => self.enqueue(Message::ForgetQueue(queue.clone())),
        }
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

    /// Returns everything at a glance.
    pub fn summary(&self) -> Summary {
        self.model().summary()
    }

    /// Returns the recent past of the interfaces, for the series that are asked for.
    pub fn history(&self, query: &SeriesQuery) -> HistoryAnswer {
        self.model().interfaces(query)
    }

    /// Returns the groups that are asked for.
    pub fn groups(&self, query: &Query) -> GroupsAnswer {
        self.model().groups(query)
    }

    /// Returns the group with an id, if it exists.
    pub fn group(&self, id: &str) -> Option<GroupDetail> {
        self.model().group(id)
    }

    /// Returns the worst flows and groups.
    pub fn worst(&self, query: WorstQuery) -> WorstAnswer {
        self.model().worst(query)
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        let mut model = lock(&self.0.model);
        self.empty_inbox(&mut model);
        model
    }

    fn try_model(&self) -> Option<MutexGuard<'_, Model>> {
        let mut model = match self.0.model.try_lock() {
            Ok(model) => model,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        self.empty_inbox(&mut model);
        Some(model)
    }

    /// Counts a change, after the model or the inbox has it.
    fn changed(&self) {
        self.0.sequence.fetch_add(1, Ordering::Release);
    }

    fn enqueue(&self, message: Message) {
        lock(&self.0.inbox).push(message);
    }

    fn empty_inbox(&self, model: &mut Model) {
        for message in std::mem::take(&mut *lock(&self.0.inbox)) {
            match message {
                Message::Add(slices, at) => model.add(&slices, at),
                Message::TakeReading(reading, at) => model.take_reading(reading, at),
                Message::Rank(flows, at) => model.rank(&flows, at),
                Message::SetResidence(times, at) => model.residence.take(times, at),
                Message::AddQueues(queues, at) => model.add_queues(&queues, at),
                Message::Forget(series) => model.forget(&series),
                Message::ForgetQueue(queue) => model.forget_queue(&queue),
                Message::Limit(memory) => model.memory = memory,
                Message::ScoreBy(profiles) => model.profiles = profiles,
                Message::ListGroups(directory) => model.directory = directory,
            }
        }
    }
}

/// Locks a mutex. A panic elsewhere leaves values valid: each is replaced or added to as a whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;

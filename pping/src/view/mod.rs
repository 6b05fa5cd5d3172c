//! What people look at: what is measured now, and the last 15 minutes of it, for the interfaces and the busiest groups.
//!
//! It takes what the agent has anyway once a second, owns nothing of the kernel and writes nothing. So it is tested with made-up
//! input. The memory of its past is bounded: where there is too much, the least busy groups lose theirs first.

mod answers;
mod cells;
mod order;
mod rates;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError},
};

use foldhash::fast::RandomState;
use pping_common::{
    abi::{Direction, Tally, Traffic},
    parse::Untracked,
    rtt::Method,
};
use tokio::sync::watch;

pub use self::{
    answers::{
        CellAnswer, Cost, GroupAnswer, GroupDetail, GroupsAnswer, HistoryAnswer, Interface, InterfaceRates,
        Losses, Rate, RttAnswer, SeriesAnswer, SeriesHistory, Summary, TrafficAnswer,
    },
    cells::{CELL, CELLS},
    order::{Column, Order, Query},
};
use self::{
    cells::{Cell, History, Rtts},
    rates::Rates,
};
use crate::{
    fingerprint::fingerprint,
    groups::{GroupName, SeriesName},
    records::{direction_name, method_name, untracked_name},
    snapshot::{Snapshot, Usage},
};

/// Memory for the past of groups unless set otherwise, bytes.
pub const MEMORY: usize = 16 << 20;

/// What is looked at. Cloning gives another handle to the same.
#[derive(Clone, Debug)]
pub struct View(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    model: Mutex<Model>,
    /// What arrived while an answer was being made.
    inbox: Mutex<Vec<Message>>,
    /// The times of the seconds that are over.
    seconds: watch::Sender<u64>,
}

#[derive(Debug)]
enum Message {
    Add(Vec<(SeriesName, Tally)>, u64),
    Count(Reading, u64),
    Forget(SeriesName),
    Limit(usize),
}

/// What is read once a second.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The counters of interfaces.
    pub snapshot: Snapshot,
    /// Lines of output that were lost so far.
    pub lines_lost: u64,
    /// What pping took so far.
    pub usage: Usage,
}

/// What a series is known by beside its group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    interface: Option<Arc<str>>,
    method: Method,
    matched: Option<Direction>,
}

#[derive(Debug)]
struct Model {
    /// Bytes that the past of groups may take.
    memory: usize,
    sequence: u64,
    /// The time of the latest change, ns.
    time: u64,
    /// All groups of an interface together.
    totals: HashMap<Key, History, RandomState>,
    groups: HashMap<Arc<str>, Group, RandomState>,
    rates: Rates,
    losses: Losses,
}

#[derive(Debug)]
struct Group {
    name: Arc<GroupName>,
    series: HashMap<Key, History, RandomState>,
}

impl View {
    /// Nothing yet; the past of groups may take this many bytes.
    pub fn new(memory: usize) -> Self {
        let model = Model::new(memory);
        let seconds = watch::Sender::new(0);
        Self(Arc::new(Shared { model: Mutex::new(model), inbox: Mutex::default(), seconds }))
    }

    /// Adds what series measured in the second before `at`, ns. Does not wait for an answer that is being made.
    pub fn add(&self, slices: &[(SeriesName, Tally)], at: u64) {
        match self.try_model() {
            Some(mut model) => model.add(slices, at),
            None => self.later(Message::Add(slices.to_vec(), at)),
        }
    }

    /// Takes what was read at the end of a second, at `at`, ns. It comes last in that second, whose end is announced.
    pub fn count(&self, reading: Reading, at: u64) {
        match self.try_model() {
            Some(mut model) => model.count(reading, at),
            None => self.later(Message::Count(reading, at)),
        }
        self.0.seconds.send_replace(at);
    }

    /// Changes how many bytes the past of groups may take, from the next cell on.
    pub fn limit(&self, memory: usize) {
        match self.try_model() {
            Some(mut model) => model.memory = memory,
            None => self.later(Message::Limit(memory)),
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        let mut model = self.model();
        let (memory, sequence) = (model.memory, model.sequence + 1);
        *model = Model { sequence, ..Model::new(memory) };
    }

    /// Forgets a series whose group expired.
    pub fn forget(&self, series: &SeriesName) {
        match self.try_model() {
            Some(mut model) => model.forget(series),
            None => self.later(Message::Forget(series.clone())),
        }
    }

    /// Changes as soon as a second is over.
    pub fn seconds(&self) -> watch::Receiver<u64> {
        self.0.seconds.subscribe()
    }

    /// The number of changes so far.
    pub fn sequence(&self) -> u64 {
        self.model().sequence
    }

    /// Everything at a glance.
    pub fn summary(&self) -> Summary {
        self.model().summary()
    }

    /// The recent past of the interfaces: of the series that are asked for.
    pub fn history(&self, query: &Query) -> HistoryAnswer {
        let model = self.model();
        model.history(model.totals.iter().filter(|(key, _)| key.is_asked_for(query)))
    }

    /// The groups that are asked for.
    pub fn groups(&self, query: &Query) -> GroupsAnswer {
        self.model().groups(query)
    }

    /// The group with an id, if there is one.
    pub fn group(&self, id: &str) -> Option<GroupDetail> {
        self.model().group(id)
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

    fn later(&self, message: Message) {
        lock(&self.0.inbox).push(message);
    }

    fn empty_inbox(&self, model: &mut Model) {
        for message in std::mem::take(&mut *lock(&self.0.inbox)) {
            match message {
                Message::Add(slices, at) => model.add(&slices, at),
                Message::Count(reading, at) => model.count(reading, at),
                Message::Forget(series) => model.forget(&series),
                Message::Limit(memory) => model.memory = memory,
            }
        }
    }
}

/// Locks a mutex. A panic elsewhere leaves values valid: each is replaced or added to as a whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Key {
    fn new(name: &SeriesName) -> Self {
        Self { interface: name.interface.clone(), method: name.method, matched: name.matched }
    }

    fn is_asked_for(&self, query: &Query) -> bool {
        query.has_series(
            self.interface.as_deref(),
            method_name(self.method),
            self.matched.map(direction_name),
        )
    }
}

impl Model {
    fn new(memory: usize) -> Self {
        Self {
            memory,
            sequence: 0,
            time: 0,
            totals: HashMap::default(),
            groups: HashMap::default(),
            rates: Rates::default(),
            losses: Losses::default(),
        }
    }

    fn add(&mut self, slices: &[(SeriesName, Tally)], at: u64) {
        let number = at / CELL;
        if number > self.time / CELL {
            self.expire(number);
        }
        self.changed(at);
        for (name, tally) in slices.iter().filter(|(_, tally)| !tally.is_empty()) {
            let key = Key::new(name);
            self.totals.entry(key.clone()).or_default().add(number, tally);
            let new = || Group { name: Arc::clone(&name.group), series: HashMap::default() };
            let group = self.groups.entry(Arc::clone(&name.group.label)).or_insert_with(new);
            // The columns of a group change with the groups file.
            if !Arc::ptr_eq(&group.name, &name.group) {
                group.name = Arc::clone(&name.group);
            }
            group.series.entry(key).or_default().add(number, tally);
        }
    }

    /// Forgets what is too old, and of groups what is too much.
    fn expire(&mut self, number: u64) {
        let retain = |histories: &mut HashMap<Key, History, RandomState>| {
            histories.retain(|_, history| {
                history.expire(number);
                !history.is_empty()
            });
        };
        retain(&mut self.totals);
        self.groups.retain(|_, group| {
            retain(&mut group.series);
            !group.series.is_empty()
        });
        let mut size: usize = self.groups.values().map(Group::size).sum();
        if size <= self.memory {
            return;
        }
        let mut busy: Vec<(u64, Arc<str>)> =
            self.groups.iter().map(|(label, group)| (group.count(), Arc::clone(label))).collect();
        busy.sort_unstable();
        for (_, label) in busy {
            if size <= self.memory {
                break;
            }
            size -= self.groups.remove(&label).map_or(0, |group| group.size());
        }
    }

    fn count(&mut self, reading: Reading, at: u64) {
        let total = reading.snapshot.total();
        let untracked = |reason: Untracked| (untracked_name(reason).into(), total.untracked[reason as usize]);
        self.losses = Losses {
            untracked: Untracked::ALL
                .into_iter()
                .map(untracked)
                .filter(|&(_, packets)| packets > 0)
                .collect(),
            recordings_skipped: total.contended + total.pending_full + total.no_pending,
            unaggregated: total.unaggregated,
            events_lost: total.lost.iter().sum::<u64>() + reading.lines_lost,
        };
        self.rates.count(reading, at);
        self.changed(at);
    }

    fn forget(&mut self, name: &SeriesName) {
        if let Some(group) = self.groups.get_mut(&name.group.label) {
            group.series.remove(&Key::new(name));
            if group.series.is_empty() {
                self.groups.remove(&name.group.label);
            }
        }
    }

    fn changed(&mut self, at: u64) {
        self.sequence += 1;
        self.time = at;
    }

    /// The number of the present cell.
    fn number(&self) -> u64 {
        self.time / CELL
    }

    fn summary(&self) -> Summary {
        let interfaces = self.rates.interfaces().map(|(interface, rates)| Interface {
            interface: Arc::clone(&interface.name),
            is_up: interface.is_up,
            attach_points: interface.attach_points.iter().map(|&point| point.into()).collect(),
            rates,
            series: self.series(
                self.totals.iter().filter(|(key, _)| key.interface.as_ref() == Some(&interface.name)),
            ),
        });
        Summary {
            version: env!("CARGO_PKG_VERSION").into(),
            sequence: self.sequence,
            time: self.time,
            interfaces: interfaces.collect(),
            groups: self.groups.len(),
            losses: self.losses.clone(),
            cost: self.rates.cost(),
        }
    }

    /// The last minute of series.
    fn series<'a>(&self, histories: impl Iterator<Item = (&'a Key, &'a History)>) -> Vec<SeriesAnswer> {
        let mut series: Vec<_> = histories.collect();
        series.sort_unstable_by_key(|(key, _)| *key);
        let answer = |(key, history): (&Key, &History)| {
            let recent = history.recent(self.number());
            let [sent, received] = recent.traffic.map(traffic);
            SeriesAnswer {
                interface: key.interface.clone(),
                method: method_name(key.method).into(),
                matched: key.matched.map(|direction| direction_name(direction).into()),
                rtt: recent.rtts().map(rtt),
                sent,
                received,
            }
        };
        series.into_iter().map(answer).collect()
    }

    fn history<'a>(&self, histories: impl Iterator<Item = (&'a Key, &'a History)>) -> HistoryAnswer {
        let mut series: Vec<_> = histories.collect();
        series.sort_unstable_by_key(|(key, _)| *key);
        let answer = |(key, history): (&Key, &History)| SeriesHistory {
            interface: key.interface.clone(),
            method: method_name(key.method).into(),
            matched: key.matched.map(|direction| direction_name(direction).into()),
            cells: history.cells().map(cell).collect(),
        };
        HistoryAnswer {
            sequence: self.sequence,
            time: self.time,
            cell: CELL,
            series: series.into_iter().map(answer).collect(),
        }
    }

    fn groups(&self, query: &Query) -> GroupsAnswer {
        let mut groups: Vec<GroupAnswer> = self
            .groups
            .values()
            .map(|group| self.answer(group, |key| key.is_asked_for(query)))
            .filter(|group| !group.series.is_empty() && query.has_group(group))
            .collect();
        let found = groups.len();
        query.sort(&mut groups);
        GroupsAnswer { sequence: self.sequence, time: self.time, known: self.groups.len(), found, groups }
    }

    fn group(&self, asked: &str) -> Option<GroupDetail> {
        let group = self.groups.values().find(|group| id(&group.name.label) == asked)?;
        Some(GroupDetail { group: self.answer(group, |_| true), history: self.history(group.series.iter()) })
    }

    fn answer(&self, group: &Group, is_asked_for: impl Fn(&Key) -> bool) -> GroupAnswer {
        let GroupName { label, prefix, dscp, more } = &*group.name;
        GroupAnswer {
            id: id(label),
            group: Arc::clone(label),
            prefix: prefix.clone(),
            dscp: *dscp,
            labels: more.iter().cloned().collect(),
            series: self.series(group.series.iter().filter(|(key, _)| is_asked_for(key))),
        }
    }
}

impl Group {
    fn size(&self) -> usize {
        size_of::<Self>() + self.series.iter().map(|(key, it)| size_of_val(key) + it.size()).sum::<usize>()
    }

    fn count(&self) -> u64 {
        self.series.values().map(History::count).sum()
    }
}

/// The id of a group: of its label, which may have anything in it, and be long.
fn id(label: &str) -> String {
    format!("{:032x}", fingerprint(&[label]))
}

fn rtt(rtts: Rtts) -> RttAnswer {
    let Rtts { count, min, mean, max, percentiles: [p50, p90, p95, p99] } = rtts;
    RttAnswer { count, min, mean, p50, p90, p95, p99, max }
}

fn traffic(traffic: Traffic) -> TrafficAnswer {
    let Traffic { packets, bytes, retransmissions, .. } = traffic;
    TrafficAnswer { packets, bytes, retransmissions }
}

fn cell(cell: &Cell) -> CellAnswer {
    let [sent, received] = cell.traffic.map(traffic);
    CellAnswer {
        time: cell.number * CELL,
        rtt: cell.rtts().map(rtt),
        histogram: cell.histogram().collect(),
        sent,
        received,
    }
}

#[cfg(test)]
mod tests;

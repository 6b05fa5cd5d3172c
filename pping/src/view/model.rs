//! The model: what is known of each series and group, and the answers made of it.

use std::{collections::HashMap, sync::Arc};

use foldhash::fast::RandomState;
use pping_common::{
    abi::{Direction, Tally, Traffic},
    parse::Untracked,
    rtt::Method,
};

use super::{
    answers::{
        CellAnswer, GroupAnswer, GroupDetail, GroupsAnswer, HistoryAnswer, Interface, Losses, RttAnswer,
        SeriesAnswer, SeriesHistory, Summary, TrafficAnswer,
    },
    cells::{CELL, Cell, Rtts},
    history::History,
    order::Query,
    rates::Rates,
    reading::Reading,
};
use crate::{
    fingerprint::fingerprint,
    groups::{GroupName, SeriesName},
    records::{direction_name, method_name, untracked_name},
};

/// What a series is known by beside its group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    interface: Option<Arc<str>>,
    method: Method,
    matched: Option<Direction>,
}

#[derive(Debug)]
pub(super) struct Model {
    /// Bytes that the past of groups may take.
    pub(super) memory: usize,
    pub(super) sequence: u64,
    /// The time of the latest change, ns.
    time: u64,
    /// All groups of an interface together.
    totals: HashMap<Key, History, RandomState>,
    pub(super) groups: HashMap<Arc<str>, Group, RandomState>,
    rates: Rates,
    losses: Losses,
}

#[derive(Debug)]
pub(super) struct Group {
    name: Arc<GroupName>,
    series: HashMap<Key, History, RandomState>,
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
    pub(super) fn new(memory: usize) -> Self {
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

    /// Forgets everything but how many changes there were.
    pub(super) fn clear(&mut self) {
        *self = Self { sequence: self.sequence + 1, ..Self::new(self.memory) };
    }

    pub(super) fn add(&mut self, slices: &[(SeriesName, Tally)], at: u64) {
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
        // Their past goes before themselves.
        for (_, label) in &busy {
            if size <= self.memory {
                return;
            }
            if let Some(group) = self.groups.get_mut(label) {
                size -= group.size();
                group.series.values_mut().for_each(|history| history.keep_recent(number));
                size += group.size();
            }
        }
        for (_, label) in &busy {
            if size <= self.memory {
                return;
            }
            size -= self.groups.remove(label).map_or(0, |group| group.size());
        }
    }

    pub(super) fn count(&mut self, reading: Reading, at: u64) {
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

    pub(super) fn forget(&mut self, name: &SeriesName) {
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

    pub(super) fn summary(&self) -> Summary {
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
            cells: history.cells().map(|it| cell(&it)).collect(),
        };
        HistoryAnswer {
            sequence: self.sequence,
            time: self.time,
            cell: CELL,
            series: series.into_iter().map(answer).collect(),
        }
    }

    /// The recent past of the interfaces.
    pub(super) fn interfaces(&self, query: &Query) -> HistoryAnswer {
        self.history(self.totals.iter().filter(|(key, _)| key.is_asked_for(query)))
    }

    pub(super) fn groups(&self, query: &Query) -> GroupsAnswer {
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

    pub(super) fn group(&self, asked: &str) -> Option<GroupDetail> {
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
    pub(super) fn size(&self) -> usize {
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

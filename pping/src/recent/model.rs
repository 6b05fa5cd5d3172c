//! The model: what is known of each series and group, and the answers made from it.

mod groups;
mod named;
mod ranking;
mod sides;
mod tree;

use std::{collections::HashMap, sync::Arc};

use foldhash::fast::RandomState;
use pping_common::{
    group::Side,
    method::Method,
    parse::{Direction, Untracked},
    series::SeriesCounts,
};

use self::named::Named;
use super::{
    answers::{CellAnswer, HistoryAnswer, Interface, Losses, SeriesAnswer, SeriesHistory, Summary},
    cells::CELL,
    figures::{RttAnswer, TrafficAnswer},
    history::History,
    order::SeriesQuery,
    rates::Rates,
    rates::Reading,
    residence::Recent,
    worst::WorstFlows,
};
#[cfg(feature = "history")]
use crate::aggregate::Measurements;
use crate::{
    groups::{Directory, GroupName, Kind, Networks, QueueName, SeriesName},
    labels::untracked_name,
    quality::{Profiles, scores_of},
    worst::{DEFAULT_MIN_SAMPLES, WorstFlow},
};

/// The key of a series within its group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    interface: Option<Arc<str>>,
    method: Method,
    matched: Option<Direction>,
    side: Option<Side>,
}

#[derive(Debug)]
pub(super) struct Model {
    /// Bytes that the past of groups may take.
    pub(super) memory: usize,
    /// The profiles that series are scored by.
    pub(super) profiles: Profiles,
    /// The number of samples or packets that a group needs to be among the worst.
    pub(super) min_samples: u64,
    /// The number of changes so far.
    sequence: u64,
    /// The time of the latest change, ns.
    time: u64,
    /// The series of interfaces, over all groups.
    totals: HashMap<Key, History, RandomState>,
    pub(super) groups: HashMap<Arc<str>, Group, RandomState>,
    /// The nodes of the tree of groups, by path.
    pub(super) nodes: HashMap<Arc<str>, Group, RandomState>,
    /// The networks at the other end.
    pub(super) networks: HashMap<Arc<str>, Group, RandomState>,
    /// Their names, by address.
    pub(super) names_of_networks: Networks,
    worst: WorstFlows,
    rates: Rates,
    losses: Losses,
    pub(super) residence: Recent,
    /// The prefixes of the groups file.
    directory: Directory,
    named: Named,
}

/// A group, a node of the tree of groups, or a network at the other end.
#[derive(Debug)]
pub(super) struct Group {
    name: Arc<GroupName>,
    series: HashMap<Key, History, RandomState>,
    /// The times in the queues of interfaces.
    queues: HashMap<Option<Arc<str>>, History, RandomState>,
}

impl Key {
    fn new(name: &SeriesName) -> Self {
        let SeriesName { method, matched, side, .. } = *name;
        Self { interface: name.interface.clone(), method, matched, side }
    }

    fn is_asked_for(&self, query: &SeriesQuery) -> bool {
        let (matched, side) = (self.matched.map(Direction::name), self.side.map(Side::name));
        query.has(self.interface.as_deref(), self.method.name(), matched, side)
    }
}

impl Model {
    pub(super) fn new(memory: usize) -> Self {
        Self {
            memory,
            profiles: Profiles::default(),
            min_samples: DEFAULT_MIN_SAMPLES,
            sequence: 0,
            time: 0,
            totals: HashMap::default(),
            groups: HashMap::default(),
            nodes: HashMap::default(),
            networks: HashMap::default(),
            names_of_networks: Networks::default(),
            worst: WorstFlows::default(),
            rates: Rates::default(),
            losses: Losses::default(),
            residence: Recent::default(),
            directory: Directory::default(),
            named: Named::default(),
        }
    }

    /// Forgets all measurements. Keeps the settings, and continues the sequence.
    #[cfg(any(feature = "top", test))]
    pub(super) fn clear(&mut self) {
        let (sequence, profiles, min_samples) =
            (self.sequence + 1, Arc::clone(&self.profiles), self.min_samples);
        let (directory, named) = (self.directory.clone(), std::mem::take(&mut self.named));
        let names_of_networks = self.names_of_networks.clone();
        *self = Self {
            profiles,
            min_samples,
            sequence,
            names_of_networks,
            directory,
            named,
            ..Self::new(self.memory)
        };
    }

    /// Takes the prefixes of groups.
    pub(super) fn list_groups(&mut self, directory: Directory) {
        self.directory = directory;
        self.named.expire();
    }

    pub(super) fn add(&mut self, slices: &[(SeriesName, SeriesCounts)], at: u64) {
        let number = at / CELL;
        if number > self.time / CELL {
            self.expire(number);
        }
        self.changed(at);
        for (name, counts) in slices.iter().filter(|(_, counts)| !counts.is_empty()) {
            let key = Key::new(name);
            // The samples of nodes and of networks are those of the groups.
            if name.group.kind() == Kind::Group {
                self.totals.entry(key.clone()).or_default().add(number, counts);
            }
            let groups = self.all_of_mut(name.group.kind());
            Self::group_of(groups, &name.group).series.entry(key).or_default().add(number, counts);
        }
    }

    /// Adds what series measured in a longer time, which ended at `at`, ns.
    #[cfg(feature = "history")]
    pub(super) fn restore(&mut self, series: &[(SeriesName, Measurements)], at: u64) {
        self.changed(at);
        // The cell of `at` begins only then.
        let number = (at / CELL).saturating_sub(1);
        for (name, measured) in series {
            let key = Key::new(name);
            self.totals.entry(key.clone()).or_default().restore(number, measured);
            let group = Self::group_of(&mut self.groups, &name.group);
            group.series.entry(key).or_default().restore(number, measured);
        }
    }

    pub(super) fn add_queues(&mut self, queues: &[(QueueName, SeriesCounts)], at: u64) {
        for (name, counts) in queues {
            let group = Self::group_of(&mut self.groups, &name.group);
            group.queues.entry(name.interface.clone()).or_default().add(at / CELL, counts);
        }
    }

    fn group_of<'a>(
        groups: &'a mut HashMap<Arc<str>, Group, RandomState>,
        name: &Arc<GroupName>,
    ) -> &'a mut Group {
        let group = groups.entry(Arc::clone(&name.label)).or_insert_with(|| Group::new(name));
        // The columns of a group change with the groups file.
        if !Arc::ptr_eq(&group.name, name) {
            group.name = Arc::clone(name);
        }
        group
    }

    /// Drops old cells, and the past of groups if it takes too much memory.
    fn expire(&mut self, number: u64) {
        let is_left = |history: &mut History| {
            history.expire(number);
            !history.is_empty()
        };
        self.totals.retain(|_, history| is_left(history));
        for groups in [&mut self.groups, &mut self.nodes, &mut self.networks] {
            groups.retain(|_, group| {
                group.series.retain(|_, history| is_left(history));
                group.queues.retain(|_, history| is_left(history));
                !group.is_empty()
            });
        }
        let mut size: usize = self.all_groups().map(Group::size).sum();
        if size <= self.memory {
            return;
        }
        let mut busy: Vec<(u64, Arc<str>, Kind)> = self
            .all_groups()
            .map(|group| (group.count(), Arc::clone(&group.name.label), group.name.kind()))
            .collect();
        busy.sort_unstable_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
        // Groups lose their past before any of them is removed. A node is busier than most of its groups.
        for (_, label, kind) in &busy {
            if size <= self.memory {
                return;
            }
            if let Some(group) = self.all_of_mut(*kind).get_mut(label) {
                size -= group.size();
                group.histories_mut().for_each(|history| history.keep_recent(number));
                size += group.size();
            }
        }
        for (_, label, kind) in &busy {
            if size <= self.memory {
                return;
            }
            size -= self.all_of_mut(*kind).remove(label).map_or(0, |group| group.size());
        }
    }

    /// Returns all groups, all nodes of the tree, and all networks.
    fn all_groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.values().chain(self.nodes.values()).chain(self.networks.values())
    }

    /// Returns all of a kind, by label.
    fn all_of(&self, kind: Kind) -> &HashMap<Arc<str>, Group, RandomState> {
        match kind {
            Kind::Group => &self.groups,
            Kind::Node => &self.nodes,
            Kind::Network => &self.networks,
        }
    }

    fn all_of_mut(&mut self, kind: Kind) -> &mut HashMap<Arc<str>, Group, RandomState> {
        match kind {
            Kind::Group => &mut self.groups,
            Kind::Node => &mut self.nodes,
            Kind::Network => &mut self.networks,
        }
    }

    /// Returns the nodes of a level, or the networks.
    fn at_level<'a>(&'a self, level: &'a str) -> impl Iterator<Item = &'a Group> {
        self.nodes
            .values()
            .chain(self.networks.values())
            .filter(move |it| it.name.level.as_deref() == Some(level))
    }

    pub(super) fn take_reading(&mut self, reading: Reading, at: u64) {
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
        self.rates.take(reading, at);
        self.changed(at);
    }

    pub(super) fn rank(&mut self, flows: &[WorstFlow], at: u64) {
        self.worst.add(at / CELL, flows);
    }

    pub(super) fn forget(&mut self, name: &SeriesName) {
        if let Some(group) = self.groups.get_mut(&name.group.label) {
            group.series.remove(&Key::new(name));
            if group.is_empty() {
                self.groups.remove(&name.group.label);
            }
        }
    }

    pub(super) fn forget_queue(&mut self, name: &QueueName) {
        if let Some(group) = self.groups.get_mut(&name.group.label) {
            group.queues.remove(&name.interface);
            if group.is_empty() {
                self.groups.remove(&name.group.label);
            }
        }
    }

    /// Notes a change at `at`, ns. Forgets the past if the clock was set back by more than a cell. Otherwise the cells of
    /// the later time would count as recent until the clock catches up, and would take all new samples.
    fn changed(&mut self, at: u64) {
        if at / CELL + 1 < self.number() {
            self.totals.clear();
            self.groups.clear();
            self.nodes.clear();
            self.networks.clear();
        }
        self.sequence += 1;
        self.time = at;
    }

    /// Returns the number of the present cell.
    fn number(&self) -> u64 {
        self.time / CELL
    }

    pub(super) fn summary(&self, has_sides: bool, has_history: bool) -> Summary {
        let mut totals: HashMap<_, Vec<_>> = HashMap::new();
        for (key, history) in &self.totals {
            totals.entry(key.interface.as_ref()).or_default().push((key, history));
        }
        let interfaces = self.rates.interfaces().map(|(interface, rates)| {
            let totals = totals.remove(&Some(&interface.name)).unwrap_or_default();
            Interface {
                interface: Arc::clone(&interface.name),
                is_up: interface.is_up,
                attach_points: interface.attach_points.iter().map(|&point| point.into()).collect(),
                rates,
                residence: self.residence.answer(&interface.name, self.inflation_beyond(&totals)),
                series: self.series(totals.into_iter()),
            }
        });
        Summary {
            version: env!("CARGO_PKG_VERSION").into(),
            sequence: self.sequence,
            time: self.time,
            sides: has_sides,
            history: has_history,
            levels: Vec::new(),
            networks: self.names_of_networks.are_known(),
            interfaces: interfaces.collect(),
            groups: self.known(),
            losses: self.losses.clone(),
            warnings: self.rates.warnings().to_vec(),
            cost: self.rates.cost(),
        }
    }

    /// Returns the number of groups with series. Only these are listed: a group like `other` may have queues alone.
    fn known(&self) -> usize {
        self.groups.values().filter(|group| !group.series.is_empty()).count()
    }

    /// Returns the median round trip beyond an interface with these series in the last minute, less the lowest known one, ns, by the
    /// method with the most samples of those that [show queues](shows_queues).
    fn inflation_beyond(&self, series: &[(&Key, &History)]) -> Option<u64> {
        let is_beyond = |key: &Key| key.matched == Some(Direction::Ingress) && shows_queues(key.method);
        let beyond = series.iter().filter(|(key, _)| is_beyond(key));
        let recent = beyond.filter_map(|(_, it)| Some((it, it.recent(self.number()).rtts()?)));
        let (history, rtts) = recent.max_by_key(|(_, rtts)| rtts.count)?;
        let lowest = history.cells().filter_map(|cell| cell.measured.lowest()).min()?;
        Some(rtts.percentiles[0].saturating_sub(lowest))
    }

    /// Returns the last minute of series.
    fn series<'a>(&self, histories: impl Iterator<Item = (&'a Key, &'a History)>) -> Vec<SeriesAnswer> {
        let mut series: Vec<_> = histories.collect();
        series.sort_unstable_by_key(|(key, _)| *key);
        let answer = |(key, history): (&Key, &History)| {
            let recent = history.recent(self.number());
            let [sent, received] = recent.traffic.map(TrafficAnswer::from);
            SeriesAnswer {
                interface: key.interface.clone(),
                method: key.method.name().into(),
                matched: key.matched.map(|direction| direction.name().into()),
                side: key.side.map(|side| side.name().into()),
                rtt: recent.rtts().map(RttAnswer::from),
                sent,
                received,
                quality: scores_of(&recent, key.method, &self.profiles),
            }
        };
        series.into_iter().map(answer).collect()
    }

    fn history<'a>(&self, histories: impl Iterator<Item = (&'a Key, &'a History)>) -> HistoryAnswer {
        let mut series: Vec<_> = histories.collect();
        series.sort_unstable_by_key(|(key, _)| *key);
        let answer = |(key, history): (&Key, &History)| SeriesHistory {
            interface: key.interface.clone(),
            method: key.method.name().into(),
            matched: key.matched.map(|direction| direction.name().into()),
            side: key.side.map(|side| side.name().into()),
            rtt: None,
            cells: history.cells().map(|it| CellAnswer::new(it.number * CELL, &it.measured)).collect(),
        };
        HistoryAnswer {
            sequence: self.sequence,
            time: self.time,
            cell: CELL,
            series: series.into_iter().map(answer).collect(),
            damaged: Vec::new(),
        }
    }

    /// Returns the recent past of the interfaces.
    pub(super) fn interfaces(&self, query: &SeriesQuery) -> HistoryAnswer {
        self.history(self.totals.iter().filter(|(key, _)| key.is_asked_for(query)))
    }
}

impl Group {
    pub(super) fn size(&self) -> usize {
        let series = self.series.iter().map(|(key, it)| size_of_val(key) + it.size());
        let queues = self.queues.iter().map(|(interface, it)| size_of_val(interface) + it.size());
        size_of::<Self>() + series.chain(queues).sum::<usize>()
    }

    fn new(name: &Arc<GroupName>) -> Self {
        Self { name: Arc::clone(name), series: HashMap::default(), queues: HashMap::default() }
    }

    fn is_empty(&self) -> bool {
        self.series.is_empty() && self.queues.is_empty()
    }

    fn histories_mut(&mut self) -> impl Iterator<Item = &mut History> {
        self.series.values_mut().chain(self.queues.values_mut())
    }

    fn count(&self) -> u64 {
        self.series.values().map(History::count).sum()
    }
}

/// Whether inflation of a method's RTTs is the work of queues. Resolvers take time to ask other servers, and the pauses of
/// an application lengthen the RTTs of spin bits.
const fn shows_queues(method: Method) -> bool {
    match method {
        Method::TcpTs | Method::IcmpEcho | Method::TcpSeq | Method::TcpHandshake | Method::QuicHandshake => {
            true
        }
        Method::Dns | Method::QuicSpin => false,
    }
}

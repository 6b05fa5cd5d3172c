//! The series of the kernel programs, and their rotation.
//!
//! Each series has two sets of sums and bins. The programs write to the set that [`Control::rotations`] selects; the other
//! one is the agent's. To take an epoch the agent switches the buffer, waits until every program that may have seen the
//! old buffer is done, and then reads and empties the old set. So each sample is in exactly one epoch, with its count,
//! its sum and the extremes. No program waits, and none takes a lock. Traffic needs no second set, because only the
//! sweep adds to it, and the agent runs the sweep.
//!
//! A series without samples for a while is freed in three steps. First it is removed from the index, so that no program
//! finds it any more. Then its `generation` is counted up, which makes every series reference to it void. Then its last counts
//! are taken, and its series index is free. The buffer switches between two steps, so no program is still at an earlier
//! one.
//!
//! A series is emptied only after the caller has committed its counts. With pinned maps, an agent may be killed at any
//! time in between. The next agent finds the epoch in them if it is not committed, and empties it if it is.

mod access;
mod bins;
mod control;
mod generations;

use std::{collections::HashMap as StdHashMap, io, mem, sync::atomic::Ordering};

use aya::{
    Ebpf,
    maps::{HashMap, MapData, MapError, Queue},
};
use pping_common::{
    abi::{Control, RttEvent},
    field,
    group::GroupKey,
    method::Method,
    parse::Direction,
    series::{Series, SeriesCounts, SeriesKey},
};

pub use self::generations::Generations;
use self::{
    access::{counts, empty, generation, key, used, wait_for_programs},
    bins::Bins,
};
use super::{
    load_options::LoadOptions,
    memory::{Array, Elements, Parts},
    object::{array, take_map},
};
use crate::kernel::Error;

/// The interface of series whose interface lost its id: no interface has this one.
const NO_INTERFACE: u16 = u16::MAX;

/// The series at an index of the array.
#[derive(Clone, Copy, Debug)]
struct SeriesState {
    /// The key of its series.
    key: SeriesKey,
    lifecycle: Lifecycle,
}

/// The stage of a series on its way to giving up its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lifecycle {
    /// It is in use, and has been empty for this many epochs.
    Idle(u32),
    /// It is never freed.
    Permanent,
    /// It is removed from the index: no program finds it any more.
    Unlinked,
    /// No series reference to it is valid any more, either.
    Forgotten,
}

/// The series.
pub struct SeriesTable {
    control: Elements<Control>,
    series: Parts<Series, 64>,
    bins: Bins,
    /// By [`SeriesKey::hash`].
    index: HashMap<MapData, u64, u32>,
    groups: HashMap<MapData, GroupKey, u32>,
    /// Those that only flows have that are not proved yet. It is not pinned: what an earlier run knew of them only leaves more
    /// room.
    unproved: HashMap<MapData, GroupKey, u32>,
    /// The networks at the other end that have their own series. It is not pinned: a run finds them again.
    networks: HashMap<MapData, GroupKey, u32>,
    unproved_networks: HashMap<MapData, GroupKey, u32>,
    free: Queue<MapData, u32>,
    /// By series index; `None` where it is free or was never used.
    states: Vec<Option<SeriesState>>,
    /// The groups of the permanent series.
    permanent_groups: Vec<GroupKey>,
    /// The numbers of the sides that they have.
    permanent_sides: &'static [u32],
    /// The number of series of each group.
    members: StdHashMap<GroupKey, usize>,
    used: usize,
    /// The series that were taken last, and are still to be emptied.
    taken: Vec<usize>,
    /// The series whose indexes are free after that.
    to_free: Vec<usize>,
}

/// The fill of the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    /// Series in use.
    pub series: usize,
    /// Series that there is room for.
    pub max_series: usize,
    /// Groups in use.
    pub groups: usize,
}

impl SeriesTable {
    /// Takes the maps.
    ///
    /// # Errors
    /// If a map is missing or cannot be mapped.
    pub(super) fn new(programs: &mut Ebpf, options: &LoadOptions) -> Result<Self, Error> {
        let control = Elements::new(array(programs, "CONTROL")?, 1)?;
        let series = Parts::new(Array::new(array(programs, "SERIES")?, options.max_series() as usize));
        let mut table = Self {
            control,
            series,
            bins: Bins::new(programs)?,
            index: HashMap::try_from(take_map(programs, "SERIES_INDEX")?)?,
            groups: HashMap::try_from(take_map(programs, "GROUPS")?)?,
            unproved: HashMap::try_from(take_map(programs, "UNPROVED")?)?,
            networks: HashMap::try_from(take_map(programs, "NETWORKS")?)?,
            unproved_networks: HashMap::try_from(take_map(programs, "UNPROVED_NETWORKS")?)?,
            free: Queue::try_from(take_map(programs, "FREE_SERIES")?)?,
            states: Vec::new(),
            permanent_groups: options.permanent_groups(),
            permanent_sides: options.grouping.sides(),
            members: StdHashMap::new(),
            used: 0,
            taken: Vec::new(),
            to_free: Vec::new(),
        };
        table.find()?;
        table.empty_committed()?;
        Ok(table)
    }

    /// Finds the existing series, if the maps are those of an earlier run.
    fn find(&mut self) -> io::Result<()> {
        let secret = self.secret();
        for index in 0..self.used_indexes() {
            let Some(series) = self.series.get(index)?.filter(|&it| used(it).load(Ordering::Acquire) != 0)
            else {
                continue;
            };
            let key = key(series);
            let is_linked = self.index.get(&key.hash(secret), 0).is_ok_and(|of_key| of_key as usize == index);
            let lifecycle = if is_linked { Lifecycle::Idle(0) } else { Lifecycle::Unlinked };
            self.occupy(index, SeriesState { key, lifecycle });
        }
        Ok(())
    }

    /// Returns the keys of all series.
    pub fn keys(&self) -> impl Iterator<Item = &SeriesKey> {
        self.states.iter().flatten().map(|state| &state.key)
    }

    /// Returns how many indexes are, or were, in use.
    fn used_indexes(&self) -> usize {
        let count = self.number(field!(Control, unused)).load(Ordering::Relaxed);
        self.series.len().min(count as usize)
    }

    /// Makes the permanent series of an interface that is about to be watched, and with `has_queue` that of its queue.
    ///
    /// # Errors
    /// If the kernel does not accept them.
    pub(super) fn add_interface(&mut self, interface: u16, has_queue: bool) -> Result<(), Error> {
        for method in Method::ALL {
            for direction in Direction::ALL {
                for &side in self.permanent_sides {
                    for group in self.permanent_groups.clone() {
                        let key = SeriesKey::new(group, interface, method, direction);
                        self.add_permanent(SeriesKey { side, ..key })?;
                    }
                }
            }
        }
        if has_queue {
            let [group, ..] = self.permanent_groups[..] else { return Ok(()) };
            self.add_permanent(SeriesKey::of_queue(group, interface))
        } else {
            Ok(())
        }
    }

    /// Makes a series that is never freed.
    fn add_permanent(&mut self, key: SeriesKey) -> Result<(), Error> {
        let hash = key.hash(self.secret());
        let known = self.index.get(&hash, 0).ok();
        let index = known.unwrap_or_else(|| self.new_index());
        let Some(series) = self.series.get(index as usize)? else {
            // Groups have all series. The interface is measured without this one: its samples count as unaggregated.
            return Ok(());
        };
        if known.is_none() {
            // No program finds it yet.
            series.at(field!(Series, key)).store(&key);
            self.index.insert(hash, index, 0)?;
        }
        // An earlier run may have been killed before it got here.
        used(series).store(1, Ordering::Release);
        self.occupy(index as usize, SeriesState { key, lifecycle: Lifecycle::Permanent });
        Ok(())
    }

    /// Begins to free the series of an interface whose id is given to another.
    ///
    /// # Errors
    /// If the map cannot be written.
    pub(super) fn remove_interface(&mut self, interface: u16) -> Result<(), Error> {
        let secret = self.secret();
        for state in self.states.iter_mut().flatten().filter(|state| state.key.interface == interface) {
            if matches!(state.lifecycle, Lifecycle::Permanent | Lifecycle::Idle(_)) {
                self.index.remove(&state.key.hash(secret)).or_else(absent_is_fine)?;
                state.lifecycle = Lifecycle::Unlinked;
            }
            // Otherwise the series would end under the name of the interface that gets the id.
            state.key.interface = NO_INTERFACE;
        }
        Ok(())
    }

    /// Exchanges sums and bins, which ends an epoch. [`SeriesTable::take`] has to follow.
    pub fn rotate(&mut self) {
        self.number(field!(Control, rotations)).fetch_add(1, Ordering::SeqCst);
        wait_for_programs();
    }

    /// Passes the counts of each series of the last epoch that is not empty to `take`. [`SeriesTable::commit`] has to follow.
    ///
    /// # Errors
    /// If the memory of a series cannot be mapped.
    pub fn take(&mut self, mut take: impl FnMut(&SeriesKey, &SeriesCounts)) -> Result<(), Error> {
        let ended = self.rotations().wrapping_sub(1);
        let mut blocks = self.bins.taken_in(ended)?.into_iter().peekable();
        for index in 0..self.used_indexes() {
            let Some(series) = self.series.get(index)? else { continue };
            if used(series).load(Ordering::Acquire) == 0 {
                continue;
            }
            let known = self.states.get(index).copied().flatten();
            let mut state =
                known.unwrap_or_else(|| SeriesState { key: key(series), lifecycle: Lifecycle::Idle(0) });
            let mut counts = counts(series, ended);
            while let Some((tag, block)) = blocks.next_if(|(tag, _)| tag.index() as usize <= index) {
                if tag.index() as usize == index {
                    counts.add_block(tag, &block);
                }
            }
            let was_empty = counts.is_empty();
            if !was_empty {
                take(&state.key, &counts);
                self.taken.push(index);
            }
            state.lifecycle = match state.lifecycle {
                Lifecycle::Permanent => Lifecycle::Permanent,
                Lifecycle::Idle(epochs) => Lifecycle::Idle(if was_empty { epochs + 1 } else { 0 }),
                Lifecycle::Unlinked => {
                    generation(series).fetch_add(1, Ordering::SeqCst);
                    Lifecycle::Forgotten
                }
                Lifecycle::Forgotten => {
                    self.to_free.push(index);
                    Lifecycle::Forgotten
                }
            };
            self.occupy(index, state);
        }
        Ok(())
    }

    /// Marks the last epoch as committed, and removes it from the series. Returns the keys of series that are freed.
    ///
    /// # Errors
    /// If a map cannot be written, or the memory of a series cannot be mapped.
    pub fn commit(&mut self) -> Result<Vec<SeriesKey>, Error> {
        self.number(field!(Control, committed)).store(self.rotations(), Ordering::SeqCst);
        let taken = mem::take(&mut self.taken);
        self.empty(taken)?;
        let mut left = Vec::new();
        for index in mem::take(&mut self.to_free) {
            if let (Some(series), Some(state)) = (self.series.get(index)?, self.states[index]) {
                used(series).store(0, Ordering::Release);
                self.vacate(index, &state.key)?;
                left.push(state.key);
            }
        }
        Ok(left)
    }

    /// Removes the last epoch from the series if an agent committed it, but was killed before it removed it. This must
    /// come before any sweep, whose additions would be removed, too.
    fn empty_committed(&mut self) -> io::Result<()> {
        let committed = self.committed();
        let is_left = committed != self.number(field!(Control, emptied)).load(Ordering::Relaxed);
        if is_left && committed == self.rotations() { self.empty(0..self.used_indexes()) } else { Ok(()) }
    }

    /// Removes the last epoch from these series.
    fn empty(&mut self, series: impl IntoIterator<Item = usize>) -> io::Result<()> {
        let rotations = self.rotations();
        let ended = rotations.wrapping_sub(1);
        for index in series {
            if let Some(series) = self.series.get(index)? {
                empty(series, ended);
            }
        }
        self.bins.empty(ended)?;
        self.number(field!(Control, emptied)).store(rotations, Ordering::SeqCst);
        Ok(())
    }

    /// Begins to free the series that had nothing in the last `epochs` epochs. Their groups end with them.
    ///
    /// # Errors
    /// If a map cannot be written.
    pub fn expire(&mut self, epochs: u32) -> Result<(), Error> {
        let secret = self.secret();
        for state in self.states.iter_mut().flatten() {
            if matches!(state.lifecycle, Lifecycle::Idle(idle) if idle >= epochs) {
                self.index.remove(&state.key.hash(secret)).or_else(absent_is_fine)?;
                state.lifecycle = Lifecycle::Unlinked;
            }
        }
        Ok(())
    }

    /// Removes the groups that have no series, because there was no room for one.
    ///
    /// # Errors
    /// If a map cannot be read or written.
    pub fn forget_empty_groups(&mut self) -> Result<(), Error> {
        let empty: Vec<GroupKey> =
            self.groups.keys().filter_map(Result::ok).filter(|key| !self.members.contains_key(key)).collect();
        for key in empty {
            self.groups.remove(&key).or_else(absent_is_fine)?;
        }
        Ok(())
    }

    /// Queues all indexes that were never used for the programs, which cannot count them up themselves.
    ///
    /// # Errors
    /// If the kernel does not accept them.
    pub(super) fn hand_out_indexes(&mut self) -> Result<(), Error> {
        let max_series = self.series.len() as u32;
        for index in self.number(field!(Control, unused)).swap(max_series, Ordering::Relaxed)..max_series {
            self.free.push(index, 0)?;
        }
        Ok(())
    }

    /// Returns the key of the series that an event names, unless it is long gone.
    pub fn key(&self, index: u32) -> Option<SeriesKey> {
        if index == RttEvent::NO_SERIES {
            return None;
        }
        if let Some(state) = self.states.get(index as usize).copied().flatten() {
            return Some(state.key);
        }
        // If its memory cannot be mapped, the next rotation reports that.
        let series = self.series.get(index as usize).ok()??;
        (used(series).load(Ordering::Acquire) != 0).then(|| key(series))
    }

    /// The fill of the tables.
    pub fn fill(&self) -> Fill {
        let groups = self.members.keys().filter(|key| !key.is_network()).count();
        Fill { series: self.used, max_series: self.series.len(), groups }
    }

    /// Returns a free index, else the next one that was never used. The latter may be beyond the end of the array.
    fn new_index(&mut self) -> u32 {
        let free = self.free.pop(0);
        free.unwrap_or_else(|_| self.number(field!(Control, unused)).fetch_add(1, Ordering::Relaxed))
    }

    fn occupy(&mut self, index: usize, state: SeriesState) {
        if self.states.len() <= index {
            self.states.resize(index + 1, None);
        }
        if self.states[index].replace(state).is_none() {
            self.used += 1;
            *self.members.entry(state.key.group).or_default() += 1;
        }
    }

    fn vacate(&mut self, index: usize, key: &SeriesKey) -> Result<(), Error> {
        self.free.push(index as u32, 0)?;
        self.states[index] = None;
        self.used -= 1;
        if let Some(members) = self.members.get_mut(&key.group) {
            *members -= 1;
            if *members == 0 {
                self.members.remove(&key.group);
                // A series made meanwhile stays, without this entry: the limit is off by one for a while.
                let (all, unproved) = if key.group.is_network() {
                    (&mut self.networks, &mut self.unproved_networks)
                } else {
                    (&mut self.groups, &mut self.unproved)
                };
                all.remove(&key.group).or_else(absent_is_fine)?;
                unproved.remove(&key.group).or_else(absent_is_fine)?;
            }
        }
        Ok(())
    }
}

fn absent_is_fine(error: MapError) -> Result<(), MapError> {
    match &error {
        MapError::KeyNotFound => Ok(()),
        MapError::SyscallError(error) if error.io_error.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    }
}

//! What the kernel programs aggregate, and how an interval of it is taken.
//!
//! Each series has two tallies. The programs write to the one that [`Control::phase`] says; the other is the agent's. To
//! take an interval the agent changes the phase, waits until every program that may have seen the old one is done, and
//! reads and empties the tally that nobody writes to any more. So each sample is in exactly one interval, whole: its
//! count, its sum, and the extremes. No program waits, and none takes a lock.
//!
//! A series that had nothing for a while gives its place to another in three turns. It is taken out of the index, so that
//! no program finds it any more; then its `life` is counted up, so that what flows remember of it is void; then what was
//! still written to it is reported, and its place is free. Between two of these there is a change of phase, and so no
//! program that is still at an earlier step.

use std::{
    collections::HashMap as StdHashMap,
    io,
    mem::offset_of,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

use aya::{
    Ebpf,
    maps::{HashMap, Map, MapData, MapError, Queue},
};
use pping_common::{
    abi::{Control, Hook, RttEvent, Series, SeriesKey, Tally},
    group::{GroupKey, Grouping},
    rtt::Method,
};

use super::{load::take_map, memory::Elements};
use crate::Error;

/// How long programs that run are given to end, where the kernel cannot say when they have: many times as long as they take.
const QUIESCENCE: Duration = Duration::from_millis(50);

/// What is known of a place in the array.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// What series it has.
    key: SeriesKey,
    stage: Stage,
}

/// How far a series is from giving up its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It had something in the last interval, or nothing for so many.
    Idle(u32),
    /// It stays, whatever comes.
    Kept,
    /// No program finds it any more.
    Unlinked,
    /// Nor does any flow remember it.
    Forgotten,
}

/// The series.
pub struct SeriesTable {
    control: Elements<Control>,
    series: Elements<Series>,
    index: HashMap<MapData, SeriesKey, u32>,
    groups: HashMap<MapData, GroupKey, u32>,
    free: Queue<MapData, u32>,
    /// By place. Those that are free or not used yet have none.
    places: Vec<Option<Place>>,
    /// The group whose series are there from the start: of everything, or of what there is no room for.
    rest: GroupKey,
    /// How many series each group has.
    members: StdHashMap<GroupKey, usize>,
    used: usize,
}

/// How full the tables are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    /// Series that there are.
    pub series: usize,
    /// Series that there is room for.
    pub max_series: usize,
    /// Groups that there are.
    pub groups: usize,
}

impl SeriesTable {
    /// Takes the maps.
    ///
    /// # Errors
    /// When they are not to be had, or their memory is not.
    pub(super) fn new(programs: &mut Ebpf, max_series: u32, grouping: Grouping) -> Result<Self, Error> {
        let control = Elements::of(array(programs, "CONTROL")?, 1)?;
        let series = Elements::of(array(programs, "SERIES")?, max_series as usize)?;
        Ok(Self {
            control,
            series,
            index: HashMap::try_from(take_map(programs, "SERIES_INDEX")?)?,
            groups: HashMap::try_from(take_map(programs, "GROUPS")?)?,
            free: Queue::try_from(take_map(programs, "FREE_SERIES")?)?,
            places: Vec::new(),
            rest: if grouping.is_on() { GroupKey::OTHER } else { GroupKey::ALL },
            members: StdHashMap::new(),
            used: 0,
        })
    }

    /// Makes the series that the programs count on, of an interface that is about to be watched.
    ///
    /// # Errors
    /// When the kernel does not take them.
    pub(super) fn keep(&mut self, interface: u16) -> Result<(), Error> {
        for method in Method::ALL {
            for hook in Hook::ALL {
                let key = SeriesKey::new(self.rest, interface, method, hook);
                if self.index.get(&key, 0).is_ok() {
                    continue;
                }
                let index = self.number(offset_of!(Control, unused)).fetch_add(1, Ordering::Relaxed);
                let series = self
                    .series
                    .get(index as usize)
                    .ok_or(MapError::OutOfBounds { index, max_entries: self.series.len() as u32 })?;
                // SAFETY: inside the mapping, and nobody else's before it can be found.
                unsafe { (&raw mut (*series).key).write_volatile(key) };
                self.index.insert(key, index, 0)?;
                used(series).store(1, Ordering::Release);
                self.take_place(index as usize, Place { key, stage: Stage::Kept });
            }
        }
        Ok(())
    }

    /// Ends the interval, and hands over what each series got in it. Returns those that are no more.
    ///
    /// # Errors
    /// When a map cannot be written.
    pub fn turn(&mut self, mut take: impl FnMut(&SeriesKey, &Tally)) -> Result<Vec<SeriesKey>, Error> {
        let phase = self.number(offset_of!(Control, phase));
        let ended = phase.load(Ordering::Relaxed) & 1;
        phase.store(ended ^ 1, Ordering::SeqCst);
        wait_for_programs();
        let made = self.number(offset_of!(Control, unused)).load(Ordering::Relaxed);
        let mut freed = Vec::new();
        for index in 0..self.series.len().min(made as usize) {
            freed.extend(self.end(index, ended as usize, &mut take)?);
        }
        Ok(freed)
    }

    /// Ends the interval of one series. Returns it if it is no more.
    fn end(
        &mut self,
        index: usize,
        phase: usize,
        take: &mut impl FnMut(&SeriesKey, &Tally),
    ) -> Result<Option<SeriesKey>, Error> {
        let Some(series) = self.series.get(index) else { return Ok(None) };
        if used(series).load(Ordering::Acquire) == 0 {
            return Ok(None);
        }
        let known = self.places.get(index).copied().flatten();
        let mut place = known.unwrap_or_else(|| {
            // SAFETY: inside the mapping, and written before `used` was.
            let key = unsafe { (&raw const (*series).key).read_volatile() };
            Place { key, stage: Stage::Idle(0) }
        });
        let was_empty = empty(series, phase, |tally| take(&place.key, tally));
        place.stage = match place.stage {
            Stage::Kept => Stage::Kept,
            Stage::Idle(intervals) => Stage::Idle(if was_empty { intervals + 1 } else { 0 }),
            Stage::Unlinked => {
                life(series).fetch_add(1, Ordering::SeqCst);
                Stage::Forgotten
            }
            Stage::Forgotten => {
                empty(series, phase ^ 1, |tally| take(&place.key, tally));
                used(series).store(0, Ordering::Release);
                self.leave_place(index, &place.key)?;
                return Ok(Some(place.key));
            }
        };
        self.take_place(index, place);
        Ok(None)
    }

    /// Begins to free the series that had nothing in the last `intervals`. Their groups end with them.
    ///
    /// # Errors
    /// When a map cannot be written.
    pub fn expire(&mut self, intervals: u32) -> Result<(), Error> {
        for place in self.places.iter_mut().flatten() {
            if matches!(place.stage, Stage::Idle(idle) if idle >= intervals) {
                self.index.remove(&place.key)?;
                place.stage = Stage::Unlinked;
            }
        }
        Ok(())
    }

    /// Forgets groups that were told apart but got no series, as there was no room for one.
    ///
    /// # Errors
    /// When a map cannot be read or written.
    pub fn forget_empty_groups(&mut self) -> Result<(), Error> {
        let empty: Vec<GroupKey> =
            self.groups.keys().filter_map(Result::ok).filter(|key| !self.members.contains_key(key)).collect();
        for key in empty {
            self.groups.remove(&key).or_else(absent_is_fine)?;
        }
        Ok(())
    }

    /// Makes each flow look for its series again, as there may be room now where there was none.
    pub fn resolve_again(&self) {
        self.number(offset_of!(Control, epoch)).fetch_add(1, Ordering::SeqCst);
    }

    /// Says that no more packets come, so that sweeps report and delete all flows that there still are.
    pub fn set_over(&self) {
        self.number(offset_of!(Control, is_over)).store(1, Ordering::SeqCst);
    }

    /// The set of prefixes in force.
    pub fn generation(&self) -> u32 {
        self.number(offset_of!(Control, generation)).load(Ordering::Relaxed)
    }

    /// Puts a set of prefixes into force, from one packet to the next. No program looks at the one before any more.
    pub fn set_generation(&self, generation: u32) {
        self.number(offset_of!(Control, generation)).store(generation, Ordering::SeqCst);
        self.resolve_again();
        wait_for_programs();
    }

    /// The series in a place that an event tells, unless it is long gone.
    pub fn key(&self, index: u32) -> Option<SeriesKey> {
        if index == RttEvent::NO_SERIES {
            return None;
        }
        if let Some(place) = self.places.get(index as usize).copied().flatten() {
            return Some(place.key);
        }
        let series = self.series.get(index as usize)?;
        // SAFETY: inside the mapping, and written before `used` was.
        (used(series).load(Ordering::Acquire) != 0)
            .then(|| unsafe { (&raw const (*series).key).read_volatile() })
    }

    /// How full the tables are.
    pub fn fill(&self) -> Fill {
        Fill { series: self.used, max_series: self.series.len(), groups: self.members.len() }
    }

    fn take_place(&mut self, index: usize, place: Place) {
        if self.places.len() <= index {
            self.places.resize(index + 1, None);
        }
        if self.places[index].replace(place).is_none() {
            self.used += 1;
            *self.members.entry(place.key.group).or_default() += 1;
        }
    }

    fn leave_place(&mut self, index: usize, key: &SeriesKey) -> Result<(), Error> {
        self.free.push(index as u32, 0)?;
        self.places[index] = None;
        self.used -= 1;
        if let Some(members) = self.members.get_mut(&key.group) {
            *members -= 1;
            if *members == 0 {
                self.members.remove(&key.group);
                // Whoever came in between is told apart all the same: only the bound is off by one for a while.
                self.groups.remove(&key.group).or_else(absent_is_fine)?;
            }
        }
        Ok(())
    }

    /// The number at an offset of [`Control`].
    fn number(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: inside the mapping of one `Control`, which lives as long as `self`; all its fields are aligned numbers
        // of this size, and only accessed as atomics.
        unsafe { AtomicU32::from_ptr(self.control.first().byte_add(offset).cast()) }
    }
}

/// Waits until every program that runs at present has ended.
fn wait_for_programs() {
    // This waits for what the kernel calls an RCU grace period (kernel/sched/membarrier.c, since Linux 4.3), and BPF
    // programs run within RCU read-side critical sections.
    const MEMBARRIER_CMD_GLOBAL: libc::c_int = 1;
    // SAFETY: it takes no pointers.
    if unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) } != 0 {
        // Where CPUs run without ticks (nohz_full) there is no such thing.
        thread::sleep(QUIESCENCE);
    }
}

/// Hands over a tally that nobody else uses, unless it is empty, and empties it. Whether it was.
fn empty(series: *mut Series, phase: usize, take: impl FnOnce(&Tally)) -> bool {
    // SAFETY: inside the mapping. No program writes to this tally, which the caller has seen to, so there may be a
    // reference to it for as long as this takes.
    let tally = unsafe { &mut (*series).tallies[phase & 1] };
    if tally.is_empty() {
        return true;
    }
    take(tally);
    *tally = Tally::EMPTY;
    false
}

fn used<'a>(series: *mut Series) -> &'a AtomicU32 {
    // SAFETY: inside the mapping, which lives as long as the table, aligned, and only accessed as an atomic.
    unsafe { AtomicU32::from_ptr(&raw mut (*series).used) }
}

fn life<'a>(series: *mut Series) -> &'a AtomicU32 {
    // SAFETY: as above.
    unsafe { AtomicU32::from_ptr(&raw mut (*series).life) }
}

fn absent_is_fine(error: MapError) -> Result<(), MapError> {
    match &error {
        MapError::KeyNotFound => Ok(()),
        MapError::SyscallError(error) if error.io_error.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    }
}

fn array(programs: &mut Ebpf, name: &str) -> Result<MapData, Error> {
    match take_map(programs, name)? {
        Map::Array(map) => Ok(map),
        _ => Err(Error::Load { what: name.to_owned(), source: "it is no array".into() }),
    }
}

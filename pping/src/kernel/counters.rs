//! The counters of the kernel programs.

use std::{fs, io, sync::Arc};

use aya::maps::MapData;
use pping_common::{
    abi::{Counters, InterfaceRoom},
    shared::Shared,
};

use super::{attach_point::AttachPoints, memory::Elements};
use crate::{
    kernel::Error,
    snapshot::{InterfaceCounters, Place, Snapshot},
};

/// An interface that is being watched, or was until it went away.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Its name.
    pub name: Arc<str>,
    /// Its interface id.
    pub id: u16,
    /// The current attach points, or the last ones; `None` if it stands for joined interfaces.
    pub attach_points: Option<AttachPoints>,
    /// Whether it exists at present.
    pub is_up: bool,
    /// What it has to do with joined interfaces.
    pub place: Place,
}

/// The counters of all CPUs and interfaces, mapped into memory.
pub struct CounterMap {
    /// By CPU, then by interface id.
    elements: Elements<Counters>,
    room: InterfaceRoom,
}

impl CounterMap {
    /// Maps the counters.
    ///
    /// # Errors
    /// If the kernel does not map them.
    pub(super) fn new(map: MapData, room: InterfaceRoom) -> Result<Self, Error> {
        Ok(Self { elements: Elements::new(map, len(room)? as usize)?, room })
    }

    /// Returns the counters of an interface, one set for each CPU.
    pub fn of_cpus(&self, id: u16) -> impl Iterator<Item = Counters> {
        // Word by word, because programs add to them at the same time.
        self.of(id).map(Shared::load)
    }

    /// The counters of an interface, all CPUs added up.
    pub fn sum(&self, id: u16) -> Counters {
        let mut sum = Counters::ZERO;
        self.of_cpus(id).for_each(|counters| sum.add(&counters));
        sum
    }

    /// Reads the counters of the watched interfaces.
    pub fn snapshot(&self, watched: &[Watched]) -> Snapshot {
        let read = |watched: &Watched| InterfaceCounters {
            name: Arc::clone(&watched.name),
            attach_points: watched.attach_points.map(AttachPoints::names).unwrap_or_default(),
            is_up: watched.is_up,
            counters: self.sum(watched.id),
            place: watched.place.clone(),
        };
        Snapshot { interfaces: watched.iter().map(read).collect() }
    }

    /// Sets the counters of an interface to zero, while no packet passes it.
    pub fn clear(&mut self, id: u16) {
        for counters in self.of(id) {
            counters.store(&Counters::ZERO);
        }
    }

    fn of(&self, id: u16) -> impl Iterator<Item = Shared<'_, Counters>> {
        self.elements.iter().skip(id.into()).step_by(self.room.ids as usize)
    }
}

/// Returns the number of elements that the map needs: one for each interface and each number that a CPU can have.
///
/// # Errors
/// If the kernel does not list its CPUs.
pub(super) fn len(room: InterfaceRoom) -> io::Result<u32> {
    const POSSIBLE: &str = "/sys/devices/system/cpu/possible";
    let highest = highest(&fs::read_to_string(POSSIBLE)?);
    let unknown = || io::Error::new(io::ErrorKind::InvalidData, format!("{POSSIBLE} does not list any CPU"));
    Ok((highest.ok_or_else(unknown)? + 1) * room.ids)
}

/// The highest number in a list of CPUs, such as `0-3,8-11`.
fn highest(list: &str) -> Option<u32> {
    list.trim_end().rsplit([',', '-']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_cpu_is_found() {
        for (list, cpu) in [("0\n", Some(0)), ("0-3\n", Some(3)), ("0-3,8-11\n", Some(11)), ("\n", None)] {
            assert_eq!(highest(list), cpu, "{list}");
        }
    }
}

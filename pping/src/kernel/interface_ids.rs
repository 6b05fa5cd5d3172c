//! The interface ids: the numbers of interfaces in flows, counters and series.
//!
//! An id belongs to a name. An interface that is deleted and made again, like those of dial-in links, has another ifindex
//! but the same id, so its counters continue. The id of an interface that has been gone for long is reused only when no
//! unused id is left.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use aya::maps::{Array, MapData, MapError};
use pping_common::{
    abi::{Interface, InterfaceName, entry},
    limits::{IDLE_SECONDS, INTERFACE_PROBES, INTERFACE_TABLE, MAX_INTERFACES},
    table::Table,
};

use super::memory::Elements;
use crate::kernel::Error;

/// How long an interface must be gone before another one may get its id. Until then flows that were seen on it may
/// exist.
const REST: Duration = Duration::from_secs(IDLE_SECONDS as u64 + 30);

/// The table of interfaces and their ids.
pub struct InterfaceIds {
    table: Elements<Interface>,
    /// The entries that are not empty.
    taken: BTreeSet<u32>,
    notes: Array<MapData, InterfaceName>,
    /// By id.
    owners: Vec<Option<Owner>>,
    /// The numbers of buckets of the flow tables, by address family.
    buckets: [u32; 2],
    /// The seeds of the flow tables, by address family.
    seeds: [u64; 2],
}

struct Owner {
    name: Arc<str>,
    /// When it went away; `None` while it exists.
    gone: Option<Instant>,
}

/// An id, for an interface that is about to be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The id.
    pub id: u16,
    /// Whether another interface had it before.
    pub is_second_hand: bool,
}

impl InterfaceIds {
    /// Takes the maps, and reads from them which interface has which id. The two flow tables are those of all
    /// interfaces.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) fn new(
        table: MapData,
        notes: Array<MapData, InterfaceName>,
        [v4, v6]: &[Table; 2],
    ) -> Result<Self, Error> {
        let now = Instant::now();
        let owners = notes
            .iter()
            .map(|note| Ok(name(&note?).map(|name| Owner { name: name.into(), gone: Some(now) })))
            .collect::<Result<_, MapError>>()?;
        let table = Elements::of(table, INTERFACE_TABLE as usize)?;
        let (buckets, seeds) = ([v4.buckets, v6.buckets], [v4.seed, v6.seed]);
        let mut ids = Self { table, taken: BTreeSet::new(), notes, owners, buckets, seeds };
        ids.taken = (0..INTERFACE_TABLE).filter(|&entry| ids.ifindex(entry) != 0).collect();
        Ok(ids)
    }

    /// The entries of watched interfaces.
    pub(super) fn entries(&self) -> impl ExactSizeIterator<Item = u32> {
        self.taken.iter().copied()
    }

    /// The id of an interface by its name, if it has or had one.
    pub fn of(&self, name: &str) -> Option<u16> {
        let of_name = |owner: &Option<Owner>| owner.as_ref().is_some_and(|owner| *owner.name == *name);
        self.owners.iter().position(of_name).map(|id| id as u16)
    }

    /// The name of the interface that has, or had, an id.
    pub fn name(&self, id: u16) -> Option<&Arc<str>> {
        self.owners.get(usize::from(id))?.as_ref().map(|owner| &owner.name)
    }

    /// The interfaces that have, or had, an id.
    pub fn names(&self) -> impl Iterator<Item = (u16, &Arc<str>)> {
        (0..).zip(&self.owners).filter_map(|(id, owner)| Some((id, &owner.as_ref()?.name)))
    }

    /// Chooses the id of an interface: the one it had, an unused one, or that of the interface that has been gone for longest;
    /// `None` when all are in use.
    pub(super) fn choose(&self, name: &str) -> Option<Taken> {
        if let Some(id) = self.of(name) {
            return Some(Taken { id, is_second_hand: false });
        }
        if let Some(id) = self.owners.iter().position(Option::is_none) {
            return Some(Taken { id: id as u16, is_second_hand: false });
        }
        let gone = (0..).zip(&self.owners).filter_map(|(id, owner)| Some((owner.as_ref()?.gone?, id)));
        let (since, id) = gone.min()?;
        (since.elapsed() >= REST).then_some(Taken { id, is_second_hand: true })
    }

    /// Makes the kernel programs watch an interface, and gives its entry the buckets and seeds of the flow tables.
    /// Returns `false` if the table has no room for its ifindex.
    ///
    /// # Errors
    /// If the names cannot be written.
    pub(super) fn enter(&mut self, interface: Interface, name: &str) -> Result<bool, MapError> {
        let candidates = (0..INTERFACE_PROBES).map(|probe| entry(interface.ifindex, probe));
        let own = candidates.clone().find(|&entry| self.ifindex(entry) == interface.ifindex);
        let mut candidates = candidates.filter(|&entry| self.ifindex(entry) == 0);
        let Some(entry) = own.or_else(|| candidates.next()) else { return Ok(false) };
        // The name is written first, so that an id with counts always has a name.
        self.notes.set(u32::from(interface.id), note(name), 0)?;
        self.write(entry, interface);
        self.taken.insert(entry);
        self.owners[usize::from(interface.id)] = Some(Owner { name: name.into(), gone: None });
        Ok(true)
    }

    /// Writes an entry. The ifindex comes last, because the programs ignore an entry without one.
    fn write(&mut self, entry: u32, interface: Interface) {
        let Some(there) = self.table.get(entry as usize) else { return };
        let Interface { ifindex, id, link_type, lease_end, sweep, .. } = interface;
        // SAFETY: inside the mapping. If the entry is in use already, programs read it meanwhile, one number at a time.
        // The sweep writes to it only while the agent runs the sweep.
        unsafe {
            (&raw mut (*there).id).write_volatile(id);
            (&raw mut (*there).link_type).write_volatile(link_type);
            (&raw mut (*there).lease_end).write_volatile(lease_end);
            (&raw mut (*there).sweep).write_volatile(sweep);
            (&raw mut (*there).buckets).write_volatile(self.buckets);
            (&raw mut (*there).seeds).write_volatile(self.seeds);
        }
        self.set_ifindex(entry, ifindex);
    }

    /// Removes an interface that is gone from the table. It keeps its id.
    pub fn leave(&mut self, ifindex: u32) {
        for entry in (0..INTERFACE_PROBES).map(|probe| entry(ifindex, probe)) {
            if self.ifindex(entry) != ifindex {
                continue;
            }
            let Some(there) = self.table.get(entry as usize) else { continue };
            // SAFETY: inside the mapping, and the programs do not write there.
            let id = unsafe { (&raw const (*there).id).read_volatile() };
            self.set_ifindex(entry, 0);
            self.taken.remove(&entry);
            if let Some(Some(owner)) = self.owners.get_mut(usize::from(id)) {
                owner.gone = Some(Instant::now());
            }
        }
    }

    /// Removes the interfaces that `is_watched` does not know: an earlier run left them.
    pub fn clear_others(&mut self, is_watched: impl Fn(u32) -> bool) {
        for entry in self.taken.clone() {
            let ifindex = self.ifindex(entry);
            if !is_watched(ifindex) {
                self.leave(ifindex);
            }
        }
    }

    /// The ifindex in an entry, 0 if it is empty.
    fn ifindex(&self, entry: u32) -> u32 {
        self.ifindex_of(entry).map_or(0, |ifindex| ifindex.load(Ordering::Acquire))
    }

    fn set_ifindex(&mut self, entry: u32, ifindex: u32) {
        if let Some(there) = self.ifindex_of(entry) {
            there.store(ifindex, Ordering::Release);
        }
    }

    fn ifindex_of(&self, entry: u32) -> Option<&AtomicU32> {
        let there = self.table.get(entry as usize)?;
        // SAFETY: inside the mapping, which lives as long as `self`, aligned, and only accessed as an atomic.
        Some(unsafe { AtomicU32::from_ptr(&raw mut (*there).ifindex) })
    }
}

fn note(name: &str) -> InterfaceName {
    let mut note = InterfaceName::default();
    // The kernel's names have 15 bytes at most.
    for (byte, of_name) in note.name.iter_mut().zip(name.bytes()) {
        *byte = of_name;
    }
    note
}

fn name(note: &InterfaceName) -> Option<String> {
    let len = note.name.iter().position(|&byte| byte == 0).unwrap_or(note.name.len());
    (len > 0).then(|| String::from_utf8_lossy(&note.name[..len]).into_owned())
}

const _: () = assert!(MAX_INTERFACES <= 1 << 16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_noted_as_they_are() {
        for text in ["", "eth0", "a-name-of-15-oct"] {
            let found = name(&note(text));
            assert_eq!(found.as_deref().unwrap_or_default(), text);
        }
    }
}

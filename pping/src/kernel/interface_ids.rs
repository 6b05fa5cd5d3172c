//! The interface ids: the numbers of interfaces in flows, counters and series.
//!
//! An id belongs to a name. An interface that is deleted and made again, like those of dial-in links, has another ifindex
//! but the same id, so its counters continue. The id of an interface that has been gone for long is reused only when no
//! unused id is left.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use aya::maps::{Array, MapData, MapError};
use pping_common::{
    abi::{Interface, InterfaceName, entry},
    limits::{IDLE_SECONDS, INTERFACE_PROBES, INTERFACE_TABLE, MAX_INTERFACES},
    parse::LinkType,
};

/// The time that an interface has to be gone before another may have its id: until then there may be flows that were seen on
/// it.
const REST: Duration = Duration::from_secs(IDLE_SECONDS as u64 + 30);

/// The table of interfaces and their ids.
pub struct InterfaceIds {
    table: Array<MapData, Interface>,
    notes: Array<MapData, InterfaceName>,
    /// By id.
    owners: Vec<Option<Owner>>,
}

struct Owner {
    name: Arc<str>,
    /// Since when it is gone, if it is.
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
    /// Takes the maps, and reads from them which interface has which id.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(super) fn new(
        table: Array<MapData, Interface>,
        notes: Array<MapData, InterfaceName>,
    ) -> Result<Self, MapError> {
        let now = Instant::now();
        let owners = notes
            .iter()
            .map(|note| Ok(name(&note?).map(|name| Owner { name: name.into(), gone: Some(now) })))
            .collect::<Result<_, MapError>>()?;
        Ok(Self { table, notes, owners })
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

    /// Has the kernel programs watch an interface from its id; `false` when the table has no room for its ifindex.
    ///
    /// # Errors
    /// When the maps cannot be written.
    pub(super) fn enter(
        &mut self,
        ifindex: u32,
        link_type: LinkType,
        id: u16,
        name: &str,
    ) -> Result<bool, MapError> {
        let mut free = None;
        for probe in 0..INTERFACE_PROBES {
            let entry = entry(ifindex, probe);
            match self.table.get(&entry, 0)?.ifindex {
                it if it == ifindex => {
                    free = Some(entry);
                    break;
                }
                0 if free.is_none() => free = Some(entry),
                _ => {}
            }
        }
        let Some(entry) = free else { return Ok(false) };
        // The name is written first, so that an id with counts always has a name.
        self.notes.set(u32::from(id), note(name), 0)?;
        self.table.set(entry, Interface { ifindex, id, link_type: link_type as u16 }, 0)?;
        self.owners[usize::from(id)] = Some(Owner { name: name.into(), gone: None });
        Ok(true)
    }

    /// Takes an interface that is gone out of the table. Its id stays its own.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn leave(&mut self, ifindex: u32) -> Result<(), MapError> {
        for probe in 0..INTERFACE_PROBES {
            let entry = entry(ifindex, probe);
            let interface = self.table.get(&entry, 0)?;
            if interface.ifindex == ifindex {
                self.table.set(entry, Interface::default(), 0)?;
                if let Some(Some(owner)) = self.owners.get_mut(usize::from(interface.id)) {
                    owner.gone = Some(Instant::now());
                }
            }
        }
        Ok(())
    }

    /// Takes out of the table whatever `is_watched` does not know: it is from a run before this one.
    ///
    /// # Errors
    /// When the map cannot be read or written.
    pub fn clear_others(&mut self, is_watched: impl Fn(u32) -> bool) -> Result<(), MapError> {
        for entry in 0..INTERFACE_TABLE {
            let ifindex = self.table.get(&entry, 0)?.ifindex;
            if ifindex != 0 && !is_watched(ifindex) {
                self.leave(ifindex)?;
            }
        }
        Ok(())
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

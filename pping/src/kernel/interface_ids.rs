//! The interface ids: the numbers of interfaces in flows, counters and series.
//!
//! An id belongs to a name, which is that of an interface or of [joined ones](JOINT). An interface that is deleted and made
//! again, like those of dial-in links, has another ifindex but the same id, so its counters continue. The id of an interface
//! that has been gone for long is reused only when no unused id is left.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    mem,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use aya::maps::{Array, MapData, MapError};
use pping_common::{
    abi::{Interface, InterfaceName, InterfaceRoom},
    field,
    limits::{IDLE_SECONDS, INTERFACE_PROBES},
    table::Table,
};

use super::{
    interface_names::{escape, unescape},
    memory::{Elements, atomic},
};
use crate::{fingerprint::fingerprint, kernel::Error, spelling::JOINT};

/// How long an interface must be gone before another one may get its id. Until then flows that were seen on it may
/// exist.
const REUSE_AFTER: Duration = Duration::from_secs(IDLE_SECONDS as u64 + 30);

/// The table of interfaces and their ids.
pub struct InterfaceIds {
    table: Elements<Interface>,
    room: InterfaceRoom,
    /// The entries that are not empty.
    taken: BTreeSet<u32>,
    names: Array<MapData, InterfaceName>,
    /// By id.
    owners: Vec<Option<IdOwner>>,
    /// The names whose ids other interfaces got since [`InterfaceIds::take_replaced`].
    replaced: Vec<Arc<str>>,
    /// The numbers of buckets of the flow tables, by address family.
    buckets: [u32; 2],
}

struct IdOwner {
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
    pub is_reused: bool,
}

impl InterfaceIds {
    /// Takes the maps, and reads from them which interface has which id. The two flow tables are those of all
    /// interfaces.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) fn new(
        table: MapData,
        names: Array<MapData, InterfaceName>,
        room: InterfaceRoom,
        [v4, v6]: &[Table; 2],
    ) -> Result<Self, Error> {
        let now = Instant::now();
        let owners = names
            .iter()
            .map(|encoded| {
                Ok(decode_name(&encoded?).map(|name| IdOwner { name: name.into(), gone: Some(now) }))
            })
            .collect::<Result<_, MapError>>()?;
        let table = Elements::new(table, room.table() as usize)?;
        let buckets = [v4.buckets, v6.buckets];
        let mut ids =
            Self { table, room, taken: BTreeSet::new(), names, owners, replaced: Vec::new(), buckets };
        ids.taken = (0..room.table()).filter(|&entry| ids.ifindex(entry) != 0).collect();
        Ok(ids)
    }

    /// The entries of watched interfaces.
    pub(super) fn entries(&self) -> impl ExactSizeIterator<Item = u32> {
        self.taken.iter().copied()
    }

    /// The id of an interface by its name, if it has or had one.
    pub fn of(&self, name: &str) -> Option<u16> {
        let short = shortened(name);
        let is_of_name = |owner: &IdOwner| *owner.name == *name || *owner.name == *short;
        let of_name = |owner: &Option<IdOwner>| owner.as_ref().is_some_and(is_of_name);
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

    /// The number of ids that no other interface could get now.
    pub fn in_use(&self) -> usize {
        let is_needed = |owner: &&IdOwner| owner.gone.is_none_or(|since| since.elapsed() < REUSE_AFTER);
        self.owners.iter().flatten().filter(is_needed).count()
    }

    /// Chooses the id of an interface: the one it had, an unused one, or that of the interface that has been gone for longest;
    /// `None` when all are in use.
    pub(super) fn choose(&self, name: &str) -> Option<Taken> {
        if let Some(id) = self.of(name) {
            return Some(Taken { id, is_reused: false });
        }
        if let Some(id) = self.owners.iter().position(Option::is_none) {
            return Some(Taken { id: id as u16, is_reused: false });
        }
        let gone = (0..).zip(&self.owners).filter_map(|(id, owner)| Some((owner.as_ref()?.gone?, id)));
        let (since, id) = gone.min()?;
        (since.elapsed() >= REUSE_AFTER).then_some(Taken { id, is_reused: true })
    }

    /// Makes the kernel programs watch an interface, and gives its entry the buckets of the flow tables.
    /// Returns `false` if the table has no room for its ifindex.
    ///
    /// # Errors
    /// If the names cannot be written.
    pub(super) fn insert(&mut self, interface: Interface, name: &str) -> Result<bool, MapError> {
        let candidates = self.candidates(interface.ifindex);
        let own = candidates.clone().find(|&entry| self.ifindex(entry) == interface.ifindex);
        let mut candidates = candidates.filter(|&entry| self.ifindex(entry) == 0);
        let Some(entry) = own.or_else(|| candidates.next()) else { return Ok(false) };
        // The name is written first, so that an id with counts always has a name.
        self.own(interface.id, name)?;
        self.write(entry, interface);
        self.taken.insert(entry);
        Ok(true)
    }

    /// Gives an id to a name.
    ///
    /// # Errors
    /// If the names cannot be written.
    pub(super) fn own(&mut self, id: u16, name: &str) -> Result<(), MapError> {
        self.names.set(u32::from(id), encode_name(&shortened(name)), 0)?;
        let owner = self.owners[usize::from(id)].replace(IdOwner { name: name.into(), gone: None });
        let is_other = |owner: &Arc<str>| **owner != *name && **owner != *shortened(name);
        self.replaced.extend(owner.map(|owner| owner.name).filter(is_other));
        Ok(())
    }

    /// Gives the id of joined interfaces up, which are not selected any more.
    pub fn disown(&mut self, id: u16) {
        if let Some(Some(owner)) = self.owners.get_mut(usize::from(id)) {
            owner.gone = Some(Instant::now());
        }
    }

    /// Returns the names whose ids other interfaces got since the last call.
    pub fn take_replaced(&mut self) -> Vec<Arc<str>> {
        mem::take(&mut self.replaced)
    }

    /// Writes an entry. The ifindex comes last, because the programs ignore an entry without one.
    fn write(&mut self, entry: u32, interface: Interface) {
        let Some(there) = self.table.get(entry as usize) else { return };
        let Interface { ifindex, id, link_type, lease_end, sweep, .. } = interface;
        // If the entry is in use already, programs read it meanwhile, one number at a time. The sweep writes to it only
        // while the agent runs the sweep.
        there.at(field!(Interface, id)).write(id);
        there.at(field!(Interface, link_type)).write(link_type);
        there.at(field!(Interface, lease_end)).write(lease_end);
        there.at(field!(Interface, sweep)).write(sweep);
        there.at(field!(Interface, buckets)).store(&self.buckets);
        there.at(field!(Interface, has_two_arms)).write(interface.has_two_arms);
        there.at(field!(Interface, later.joined)).write(interface.later.joined);
        self.set_ifindex(entry, ifindex);
    }

    /// Tells the kernel programs of which interfaces each host of a flow is on another side, by their ids.
    pub fn set_two_arms(&self, has_two_arms: impl Fn(u16) -> bool) {
        for entry in self.entries() {
            let Some(there) = self.table.get(entry as usize) else { continue };
            let id = there.at(field!(Interface, id)).read();
            there.at(field!(Interface, has_two_arms)).write(has_two_arms(id).into());
        }
    }

    /// Removes an interface that is gone from the table. It keeps its id.
    pub fn remove(&mut self, ifindex: u32) {
        for entry in self.taken.clone() {
            if self.ifindex(entry) == ifindex {
                self.clear(entry);
            }
        }
    }

    /// Removes the interfaces that `is_watched` does not know, which an earlier run left, and the entries in which programs
    /// do not look for their interface: those of another version look elsewhere.
    pub fn clear_others(&mut self, is_watched: impl Fn(u32) -> bool) {
        for entry in self.taken.clone() {
            let ifindex = self.ifindex(entry);
            if !is_watched(ifindex) || !self.candidates(ifindex).any(|candidate| candidate == entry) {
                self.clear(entry);
            }
        }
    }

    fn clear(&mut self, entry: u32) {
        let Some(id) = self.id(entry) else { return };
        self.set_ifindex(entry, 0);
        self.taken.remove(&entry);
        // An interface that was made again while no pping ran has its id in two entries until the old one is removed.
        let is_in_use = self.taken.iter().any(|&other| self.id(other) == Some(id));
        if let Some(Some(owner)) = self.owners.get_mut(usize::from(id))
            && !is_in_use
        {
            owner.gone = Some(Instant::now());
        }
    }

    /// The entries in which the programs look for an interface.
    fn candidates(&self, ifindex: u32) -> impl Iterator<Item = u32> + Clone + use<> {
        let room = self.room;
        (0..INTERFACE_PROBES).map(move |probe| InterfaceRoom::entry(room.last_entry, ifindex, probe))
    }

    /// The ifindex in an entry, 0 if it is empty.
    fn ifindex(&self, entry: u32) -> u32 {
        self.ifindex_of(entry).map_or(0, |ifindex| ifindex.load(Ordering::Acquire))
    }

    /// The interface id in an entry.
    fn id(&self, entry: u32) -> Option<u16> {
        Some(self.table.get(entry as usize)?.at(field!(Interface, id)).read())
    }

    fn set_ifindex(&mut self, entry: u32, ifindex: u32) {
        if let Some(there) = self.ifindex_of(entry) {
            there.store(ifindex, Ordering::Release);
        }
    }

    fn ifindex_of(&self, entry: u32) -> Option<&AtomicU32> {
        Some(atomic(self.table.get(entry as usize)?.at(field!(Interface, ifindex))))
    }
}

/// The longest name that is noted, bytes: that of the kernel's interfaces.
const LONGEST: usize = 15;

/// Returns a name, or what stands for it if it is longer than the kernel's names, as that of joined interfaces may be.
fn shortened(name: &str) -> Cow<'_, str> {
    if name.len() <= LONGEST || !name.contains(JOINT) {
        return name.into();
    }
    let digest = fingerprint(&[name]);
    format!("{JOINT}{:014x}", (digest as u64) >> 8).into()
}

fn encode_name(name: &str) -> InterfaceName {
    let mut encoded = InterfaceName::default();
    for (byte, of_name) in encoded.name.iter_mut().zip(unescape(name)) {
        *byte = of_name;
    }
    encoded
}

fn decode_name(encoded: &InterfaceName) -> Option<String> {
    let len = encoded.name.iter().position(|&byte| byte == 0).unwrap_or(encoded.name.len());
    (len > 0).then(|| escape(&encoded.name[..len]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_noted_as_they_are() {
        for text in ["", "eth0", "a-name-of-15-oct", "eth\\xff\\xfe\\xfd\\xfc0"] {
            let found = decode_name(&encode_name(text));
            assert_eq!(found.as_deref().unwrap_or_default(), text);
        }
    }
}

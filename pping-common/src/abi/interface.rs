//! The table of watched interfaces.

use crate::{
    hash::GOLDEN_RATIO,
    layout::layout,
    limits::{HIGHEST_MAX_INTERFACES, INTERFACE_PROBES},
    parse::LinkType,
};

/// How many interfaces there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct InterfaceRoom {
    /// The number of interface ids.
    pub ids: u32,
    /// The number of the last entry of the table of interfaces: all of its bits are ones.
    pub last_entry: u32,
}

/// A watched interface: one cache line with all that a packet needs to know before it finds its flow. Flows and counters
/// carry the interface id, which is 16 bits wide, needs no hashing, and stays the same if an interface of the same name
/// comes back under another ifindex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Interface {
    /// The kernel's number of the interface; 0 in an empty entry.
    pub ifindex: u32,
    /// The interface id in counters; also in flows and series, unless the interface is joined with others.
    pub id: u16,
    /// [`LinkType`] as a number.
    pub link_type: u16,
    /// [`super::Control::lease_end`] as of the present sweep.
    pub lease_end: u64,
    /// The number of the present sweep, [`super::Control::sweep`].
    pub sweep: u32,
    /// [`crate::table::Table::buckets`] of each [`crate::parse::Family`].
    pub buckets: [u32; 2],
    /// Not 0 if each host of a flow is at another side of the interface. Then packets of both that come in by one hook are
    /// forged, unless the interface forwards them to itself.
    pub has_two_arms: u32,
    /// What releases after 0.2.0 added.
    pub later: Later,
}

layout!(Interface { ifindex, id, link_type, lease_end, sweep, buckets, has_two_arms, later as unused });

/// What releases after 0.2.0 added to [`Interface`]. All of it is 0 in an entry that an older one made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Later {
    /// [`Interface::joined_id`] and [`Interface::id`], exclusive-or: 0 if the interface counts by itself.
    pub joined: u32,
    /// Fills up the cache line.
    pub unused: [u32; 7],
}

layout!(Later as [u32; 8] { joined, unused });

impl Interface {
    /// An empty entry.
    pub const EMPTY: Self = Self {
        ifindex: 0,
        id: 0,
        link_type: 0,
        lease_end: 0,
        sweep: 0,
        buckets: [0; 2],
        has_two_arms: 0,
        later: Later { joined: 0, unused: [0; 7] },
    };

    /// Returns the interface id in flows and series. Joined interfaces share one, so that each direction of a flow may pass
    /// another of them.
    #[inline(always)]
    pub fn joined_id(id: u16, joined: u32) -> u16 {
        id ^ joined as u16
    }

    /// Returns [`Later::joined`] for an interface that counts as `joined_id`. It is its own inverse.
    #[inline(always)]
    pub fn joined(id: u16, joined_id: u16) -> u32 {
        u32::from(id ^ joined_id)
    }

    /// Returns the link type with this number: it says which header a frame begins with.
    #[inline(always)]
    pub fn link_type_of(number: u16) -> LinkType {
        if number == LinkType::Ip as u16 { LinkType::Ip } else { LinkType::Ethernet }
    }
}

impl InterfaceRoom {
    /// Entries of the table for each interface. It has more entries than interfaces because the kernel numbers interfaces in
    /// the order they are created, and removed ones leave gaps.
    const ENTRIES: u32 = 8;

    /// Room for this many interfaces, up to [`HIGHEST_MAX_INTERFACES`].
    pub const fn of(max_interfaces: u32) -> Self {
        Self { ids: max_interfaces, last_entry: Self::ENTRIES * max_interfaces.next_power_of_two() - 1 }
    }

    /// The number of entries of the table.
    #[inline(always)]
    pub const fn table(self) -> u32 {
        self.last_entry + 1
    }

    /// The most entries of the table that are in use: an interface that was deleted and made again may still have its old entry,
    /// too.
    #[inline(always)]
    pub const fn watched(self) -> u32 {
        2 * self.ids
    }

    /// Returns the entry of the table to try as the `probe`th (from 0) for an interface. `last_entry` is [`Self::last_entry`].
    ///
    /// The first one needs no multiplication, and interfaces with neighbouring numbers have different ones. If it is taken, its
    /// neighbours probably are as well, so a hash gives the others.
    #[inline(always)]
    pub fn entry(last_entry: u32, ifindex: u32, probe: u32) -> u32 {
        if probe == 0 {
            return ifindex & last_entry;
        }
        // The high bits of the product depend on all bits of the number, and each probe takes others.
        let hash = u64::from(ifindex).wrapping_mul(GOLDEN_RATIO);
        (hash >> (u64::BITS - probe * Self::MOST_BITS)) as u32 & last_entry
    }

    /// The bits of an entry's number in the largest table.
    const MOST_BITS: u32 = Self::of(HIGHEST_MAX_INTERFACES).last_entry.count_ones();
}

/// The name of an interface that has, or had, an id. The agent keeps it; the kernel programs do not read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct InterfaceName {
    /// The name, padded with zeros; all zeros if the id is free.
    pub name: [u8; 16],
}

layout!(InterfaceName { name });

const _: () = {
    assert!(size_of::<Interface>() == 64);
    assert!(core::mem::offset_of!(Interface, id) == 4);
    assert!(core::mem::offset_of!(Interface, lease_end) == 8);
    assert!(core::mem::offset_of!(Interface, sweep) == 16);
    assert!(size_of::<InterfaceName>() == 16);
    assert!((INTERFACE_PROBES - 1) * InterfaceRoom::MOST_BITS <= u64::BITS);
    assert!(HIGHEST_MAX_INTERFACES <= u16::MAX as u32);
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::DEFAULT_MAX_INTERFACES;

    const ROOM: InterfaceRoom = InterfaceRoom::of(DEFAULT_MAX_INTERFACES);

    /// Returns how many of these interfaces find an entry, in this order.
    fn placed(room: InterfaceRoom, interfaces: impl Iterator<Item = u32>) -> usize {
        let mut taken = std::vec![false; room.table() as usize];
        interfaces
            .filter(|&ifindex| {
                (0..INTERFACE_PROBES).any(|probe| {
                    let entry = InterfaceRoom::entry(room.last_entry, ifindex, probe) as usize;
                    !std::mem::replace(&mut taken[entry], true)
                })
            })
            .count()
    }

    #[test]
    fn two_thousand_neighbours_find_an_entry_wherever_they_begin() {
        for first in (1..2 * ROOM.table()).step_by(99).chain([u32::MAX - 1_999]) {
            assert_eq!(placed(ROOM, first..=first + 1_999), 2_000, "from {first}");
        }
    }

    #[test]
    fn any_number_of_interfaces_finds_entries_with_gaps_between() {
        for max in [1, 2, 3, 100, 4_096, 5_000, HIGHEST_MAX_INTERFACES] {
            let room = InterfaceRoom::of(max);
            // Each second of them is gone.
            assert_eq!(placed(room, (7..7 + 2 * max).step_by(2)), max as usize, "{max}");
        }
    }

    #[test]
    fn interfaces_a_table_size_apart_find_a_place() {
        const EACH: u32 = DEFAULT_MAX_INTERFACES / 4;
        let without = (1..200).map(|distance| {
            let runs = (0..4).flat_map(|run| {
                let first = 5 + run * distance * ROOM.table();
                first..first + EACH
            });
            DEFAULT_MAX_INTERFACES as usize - placed(ROOM, runs)
        });
        // Of 50,944 interfaces.
        let without: usize = without.sum();
        assert!(without <= 30, "{without} have no entry");
        // The table is almost full in the end.
        let both = (5..1_005).chain(5 + ROOM.table()..1_005 + ROOM.table());
        let placed = placed(ROOM, both);
        assert!(placed > 1_700, "only {placed} of 2,000");
    }
}

//! The maps that outlive a run if they are pinned, and their types.

use super::{
    control::Control,
    counters::{Counters, Lost},
    events::{EndEvent, EventKind, FlowEvent, FlowEventKind, RttEvent, TriggeredBy},
    interface::{Interface, InterfaceName, InterfaceRoom},
    persistent::{PersistentEntry, PersistentKey},
    timed::PacketProgram,
};
use crate::{
    flow::{Cold, HotEntry, Lifecycle},
    group::{GroupKey, LabelKey},
    layout::{Layout, START, number, text},
    limits::{DEFAULT_MAX_INTERFACES, RING_BYTES},
    method::Method,
    parse::{Direction, Ipv4, Ipv6, Protocol, Untracked},
    pool::{BinBlock, BinPool},
    rtt::{LegState, PendingEntry, TimestampOption, TsvalState},
    series::Series,
    table::{Bucket, Table},
};

/// A pinned map.
#[derive(Clone, Copy, Debug)]
pub struct PinnedMap {
    /// Its name.
    pub name: &'static str,
    /// A fingerprint of its keys, its values and its size.
    pub layout: u64,
}

/// Describes a map with these keys and values. `size` is its number of entries or bytes; 0 if options change it.
const fn map<K: Layout, V: Layout>(name: &'static str, size: u32) -> PinnedMap {
    PinnedMap { name, layout: number(number(number(START, K::HASH), V::HASH), size as u64) }
}

/// Enums whose numbers are in maps.
type Names = (
    (Direction, Method, (Protocol, Untracked, PacketProgram)),
    (Lost, EventKind, (FlowEventKind, TriggeredBy)),
    (Lifecycle, LegState, (TsvalState, TimestampOption)),
);

/// All maps that are pinned. Scratch maps and maps of short-lived entries, such as DNS queries, are not.
pub const PINNED_MAPS: [PinnedMap; 28] = [
    map::<u32, BinBlock>("BINS", 0),
    map::<u32, BinPool>("BIN_POOL", 1),
    map::<u32, Control>("CONTROL", 1),
    map::<u32, (Counters, Names)>("COUNTERS", 0),
    map::<(), (RttEvent, (FlowEvent, EndEvent))>("EVENTS", RING_BYTES),
    map::<LabelKey, u32>("EXCLUDED", 0),
    map::<u32, HotEntry<Ipv4>>("FLOWS_V4", 0),
    map::<u32, HotEntry<Ipv6>>("FLOWS_V6", 0),
    map::<u32, Cold>("COLD_V4", 0),
    map::<u32, Cold>("COLD_V6", 0),
    map::<u32, PendingEntry>("PENDING_V4", 0),
    map::<u32, PendingEntry>("PENDING_V6", 0),
    map::<(), u32>("FREE_PENDING_V4", 0),
    map::<(), u32>("FREE_PENDING_V6", 0),
    map::<(), u32>("FREE_SERIES", 0),
    map::<(), u32>("FREE_V4", 0),
    map::<(), u32>("FREE_V6", 0),
    map::<GroupKey, u32>("GROUPS", 0),
    map::<u32, Bucket>("INDEX_V4", 0),
    map::<u32, Bucket>("INDEX_V6", 0),
    map::<u32, Interface>("INTERFACES", InterfaceRoom::of(DEFAULT_MAX_INTERFACES).table()),
    map::<LabelKey, u32>("LABELS", 0),
    map::<PersistentKey, PersistentEntry>("PERSISTENT", 0),
    map::<[u8; 16], u8>("LOCAL_ADDRESSES", 0),
    map::<u32, InterfaceName>("INTERFACE_NAMES", DEFAULT_MAX_INTERFACES),
    map::<u32, Series>("SERIES", 0),
    map::<u64, u32>("SERIES_INDEX", 0),
    map::<u32, Table>("TABLES", 2),
];

/// A fingerprint of all pinned maps with as many interfaces as there are by default. An agent does not continue with maps of another
/// layout.
pub const LAYOUT: u64 = {
    let (mut hash, mut at) = (START, 0);
    while at < PINNED_MAPS.len() {
        hash = number(text(hash, PINNED_MAPS[at].name), PINNED_MAPS[at].layout);
        at += 1;
    }
    hash
};

/// Returns [`LAYOUT`] for this many interfaces: the counters of each CPU begin where those of the CPU before end.
pub const fn layout_for(max_interfaces: u32) -> u64 {
    if max_interfaces == DEFAULT_MAX_INTERFACES { LAYOUT } else { number(LAYOUT, max_interfaces as u64) }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_pinned_map_counts_in_the_layout() {
        let names: HashSet<_> = PINNED_MAPS.iter().map(|map| map.name).collect();
        assert_eq!(names.len(), PINNED_MAPS.len());
        let hash = |maps: &[PinnedMap]| {
            maps.iter().fold(START, |hash, map| number(text(hash, map.name), map.layout))
        };
        assert_eq!(hash(&PINNED_MAPS), LAYOUT);
        for at in 0..PINNED_MAPS.len() {
            let mut maps = PINNED_MAPS;
            maps[at] = PinnedMap { layout: number(maps[at].layout, 0), ..maps[at] };
            assert_ne!(hash(&maps), LAYOUT, "{}", maps[at].name);
        }
    }

    #[test]
    fn a_map_of_other_types_or_another_size_has_another_layout() {
        let layouts = [
            map::<u32, Cold>("", 0).layout,
            map::<u32, Bucket>("", 0).layout,
            map::<u8, Cold>("", 0).layout,
            map::<u32, Cold>("", 1).layout,
            map::<Cold, u32>("", 0).layout,
        ];
        assert_eq!(layouts.iter().collect::<HashSet<_>>().len(), layouts.len());
    }
}

//! The options that are fixed when the programs are loaded.

use pping_common::{
    abi::{Emit, InterfaceRoom},
    group::{GroupKey, Grouping},
    hash::TableKeys,
    limits::{
        DEFAULT_MAX_FLOWS, DEFAULT_MAX_INTERFACES, MAX_DNS_PORTS, MAX_QUERIES, RING_BYTES, SERIES_PER_GROUP,
        max_unproved, reserved_series,
    },
    method::Method,
    parse::{Decap, Scope},
    pool, rings,
    rtt::Rules,
    series::SeriesRef,
};

use crate::kernel::features::DisabledFeatures;

/// The options that are fixed when the programs are loaded.
#[derive(Clone, Copy, Debug)]
pub struct LoadOptions {
    /// Which events are reported.
    pub emit: Emit,
    /// The grouping.
    pub grouping: Grouping,
    /// The highest number of groups.
    pub max_groups: u32,
    /// The highest number of networks at the other end; 0 counts none.
    pub max_networks: u32,
    /// The highest number of interfaces.
    pub max_interfaces: u32,
    /// Whether prefixes are excluded.
    pub excludes: bool,
    /// The methods, and the limits of recording.
    pub rules: Rules,
    /// Ports that DNS servers listen at; 0 is none.
    pub dns_ports: [u16; MAX_DNS_PORTS],
    /// Bytes of the ring buffer of events.
    pub ring_bytes: u32,
    /// Flows per address family.
    pub max_flows: u32,
    /// Flows per address family that may have something pending.
    pub max_pending: u32,
    /// Flows per address family that need not be proved.
    pub max_unproved: u32,
    /// DNS queries per address family that may be pending.
    pub max_queries: u32,
    /// The tunnels inside which packets are measured.
    pub decap: Decap,
    /// Nanoseconds within which a packet that passes again is a copy, which is left out; 0 leaves none out.
    pub copies_within: u64,
    /// Whether the programs log what they do.
    pub log: bool,
    /// The number of series in pinned maps, if there are any.
    pub max_series: Option<u32>,
    /// Blocks of bins, if not the usual number.
    pub bin_blocks: Option<u32>,
    /// Whether programs are loaded one at a time, which takes less memory and more time.
    pub saves_memory: bool,
    /// One packet in this many is followed through its queue, on average; 0 measures forwarding only. `None` measures no
    /// times in this host.
    pub residence: Option<u32>,
    /// The keys by which flows are found; random ones if `None`.
    pub table_keys: Option<TableKeys>,
    /// Features of the kernel to treat as missing.
    pub without: DisabledFeatures,
}

impl LoadOptions {
    /// Every sample of every flow, in one group.
    pub const DEFAULT: Self = Self {
        rules: Rules::UNLIMITED,
        dns_ports: Scope::ALL.dns_ports,
        ring_bytes: RING_BYTES,
        max_flows: DEFAULT_MAX_FLOWS,
        max_pending: DEFAULT_MAX_FLOWS,
        max_unproved: max_unproved(DEFAULT_MAX_FLOWS, DEFAULT_MAX_FLOWS),
        max_queries: MAX_QUERIES,
        decap: Decap::NONE,
        emit: Emit(Emit::SAMPLES.0 | Emit::FLOWS.0),
        grouping: Grouping::NONE,
        max_groups: 1,
        max_networks: 0,
        max_interfaces: DEFAULT_MAX_INTERFACES,
        excludes: false,
        copies_within: 0,
        log: false,
        max_series: None,
        bin_blocks: None,
        saves_memory: false,
        residence: None,
        table_keys: None,
        without: DisabledFeatures::NOTHING,
    };

    /// Series that there is room for.
    pub(super) fn max_series(&self) -> u32 {
        self.max_series.unwrap_or_else(|| self.series_wanted())
    }

    /// The interfaces that there is room for.
    pub(in crate::kernel) fn interface_room(&self) -> InterfaceRoom {
        InterfaceRoom::of(self.max_interfaces)
    }

    /// Blocks of bins that there is room for.
    pub(super) fn bin_blocks(&self) -> u32 {
        self.bin_blocks.unwrap_or_else(|| self.blocks_for(self.max_series()))
    }

    /// Blocks of bins that there should be room for with so many series.
    pub(in crate::kernel) fn blocks_for(&self, series: u32) -> u32 {
        pool::block_count(series, reserved_series(self.max_interfaces))
    }

    /// The entries of the pending pool: a flow takes one at most.
    pub(in crate::kernel) fn pending_entries(&self) -> u32 {
        self.max_pending.min(self.max_flows)
    }

    /// Whether DNS is measured.
    pub(super) fn has_dns(&self) -> bool {
        self.rules.methods.has(Method::Dns)
    }

    /// The places in each ring of DNS queries. A map needs at least one entry.
    pub(super) fn query_places(&self) -> u32 {
        if self.has_dns() { rings::places(self.max_queries) } else { 1 }
    }

    /// Whether queueing times are kept by group. Each group then has a series for each interface that its packets leave
    /// by, mostly one.
    pub(in crate::kernel) fn has_queues_of_groups(&self) -> bool {
        self.grouping.is_on() && self.residence.is_some_and(|every| every != 0)
    }

    /// Entries of the persistent counts: one for each series of a group, but at least twice the reserved series. The kernel rounds
    /// the buckets up to a power of two.
    pub(super) fn max_persistent_entries(&self) -> u32 {
        let reserved = self.reserved_series();
        self.max_series().saturating_sub(reserved).max(2 * reserved)
    }

    /// Whether samples are counted by the network at the other end, too.
    pub(super) fn has_networks(&self) -> bool {
        self.max_networks != 0
    }

    /// The groups of the series that are never freed: all traffic, or the group `other` if there are groups, and the remaining
    /// networks if networks are counted.
    pub(super) fn permanent_groups(&self) -> Vec<GroupKey> {
        let of_groups = if self.grouping.is_on() { GroupKey::OTHER } else { GroupKey::ALL };
        [of_groups].into_iter().chain(self.has_networks().then_some(GroupKey::OTHER_NETWORKS)).collect()
    }

    /// Series besides those of single groups and networks. Sides are apart from each other.
    fn reserved_series(&self) -> u32 {
        let permanent = self.grouping.sides().len() * self.permanent_groups().len();
        reserved_series(self.max_interfaces) * permanent as u32
    }

    /// Series that there should be room for.
    pub(in crate::kernel) fn series_wanted(&self) -> u32 {
        let of_groups = if self.grouping.is_on() { self.max_groups * SERIES_PER_GROUP } else { 0 };
        let of_queues = if self.has_queues_of_groups() { self.max_groups + self.max_interfaces } else { 0 };
        let of_networks = self.max_networks * SERIES_PER_GROUP;
        (self.reserved_series() + of_groups + of_queues + of_networks).min(SeriesRef::MAX_SERIES)
    }
}

//! The kernel programs once they are loaded.

use aya::{
    Ebpf,
    maps::{HashMap, MapData, PerCpuArray, RingBuf},
};
use pping_common::abi::Counters;

use super::LoadOptions;
use crate::kernel::{
    features::Features, interface_ids::InterfaceIds, labels::Prefixes, ledger::LedgerMap,
    series::SeriesTable, sweep::Sweeper,
};

/// The kernel programs and their maps, loaded but not attached.
pub struct Kernel {
    /// The programs.
    pub programs: Ebpf,
    /// What they report.
    pub events: RingBuf<MapData>,
    /// What they count, by interface id.
    pub counters: PerCpuArray<MapData, Counters>,
    /// The interfaces they watch.
    pub interface_ids: InterfaceIds,
    /// The addresses that they take for this host's.
    pub local_addresses: HashMap<MapData, [u8; 16], u8>,
    /// What they aggregate.
    pub series: SeriesTable,
    /// The labels of prefixes, until somebody takes them to look after.
    pub labels: Option<Prefixes>,
    /// The prefixes that they leave out.
    pub excluded: Prefixes,
    /// What has been told in metrics, where maps are pinned, until somebody takes it to keep it.
    pub ledger: Option<LedgerMap>,
    /// What goes through the flows.
    pub sweeper: Sweeper,
    /// What the kernel can do.
    pub features: Features,
    /// What the programs were loaded with.
    pub options: LoadOptions,
}

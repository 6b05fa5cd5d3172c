//! The kernel programs once they are loaded.

use aya::{
    Ebpf,
    maps::{HashMap, MapData, RingBuf},
};

use super::LoadOptions;
use crate::kernel::{
    counter_map::CounterMap,
    features::{Feature, Features},
    interface_ids::InterfaceIds,
    labels::Prefixes,
    ledger::LedgerMap,
    residence::ResidenceMap,
    series::SeriesTable,
    sweep::Sweeper,
};

/// The kernel programs and their maps, loaded but not attached.
pub struct Kernel {
    /// The programs.
    pub programs: Ebpf,
    /// The ring of their events.
    pub events: RingBuf<MapData>,
    /// Their counters, by interface id.
    pub counters: CounterMap,
    /// The interfaces they watch.
    pub interface_ids: InterfaceIds,
    /// The addresses of this host.
    pub local_addresses: HashMap<MapData, [u8; 16], u8>,
    /// Their series.
    pub series: SeriesTable,
    /// The labels of prefixes, until the groups take them.
    pub labels: Option<Prefixes>,
    /// The excluded prefixes.
    pub excluded: Prefixes,
    /// The ledger, if maps are pinned, until the metrics take it.
    pub ledger: Option<LedgerMap>,
    /// Times in this host, with `--residence`.
    pub residence: Option<ResidenceMap>,
    /// The sweep.
    pub sweeper: Sweeper,
    /// The features of the kernel.
    pub features: Features,
    /// The options that the programs were loaded with.
    pub options: LoadOptions,
}

impl Kernel {
    /// Whether the programs count and measure only while sweeps renew their lease. Without TCX they may outlive the
    /// agent.
    pub(super) fn has_lease(&self) -> bool {
        !self.features.has(Feature::Tcx)
    }
}

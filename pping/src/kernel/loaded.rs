//! The kernel programs once they are loaded.

use std::sync::Arc;

use aya::{
    Ebpf,
    maps::{HashMap, MapData, RingBuf},
};
use pping_common::{abi::Control, limits::LEASE_SECONDS, parse::Direction};

use super::{
    Error,
    counters::{CounterMap, Watched},
    features::{Feature, Features},
    interface_ids::InterfaceIds,
    labels::Prefixes,
    load_options::LoadOptions,
    persistent::PersistentMap,
    residence::ResidenceMap,
    series::SeriesTable,
    sweep::{SweepScope, Sweeper},
};
use crate::{
    residence::InterfaceTimes,
    snapshot::{Place, ProgramRuns},
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
    /// The prefixes whose hosts are inside the network.
    pub inside: Prefixes,
    /// The prefixes of networks at the other end.
    pub networks: Prefixes,
    /// The persistent counts, if maps are pinned, until the metrics take it.
    pub persistent: Option<PersistentMap>,
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

    /// The cost of each program so far, if the kernel keeps statistics (`sysctl kernel.bpf_stats_enabled=1`). Programs that
    /// never ran while it did are left out.
    pub fn runs(&self) -> Vec<ProgramRuns> {
        self.programs
            .programs()
            .filter_map(|(name, program)| {
                let info = program.info().ok()?;
                let runs = info.run_count();
                (runs > 0).then(|| ProgramRuns { program: name.to_owned(), runs, time: info.run_time() })
            })
            .collect()
    }

    /// Reads the times in this host of each watched interface. Without `--residence` there are none.
    ///
    /// # Errors
    /// If the kernel does not read them.
    pub fn residence_times(&self, watched: &[Watched]) -> Result<Vec<InterfaceTimes>, Error> {
        let Some(residence) = &self.residence else { return Ok(Vec::new()) };
        let has_queue = |watched: &&Watched| watched.place != Place::Joined;
        let of = |Watched { name, id, .. }: &Watched| {
            let sent = self.counters.sum(*id).packets(Direction::Egress);
            let times = Box::new(residence.times(*id)?);
            Ok(InterfaceTimes { interface: Arc::clone(name), times, sent })
        };
        watched.iter().filter(has_queue).map(of).collect()
    }

    /// Runs the sweep program for the flows and queries that are due, many at a time or one by one. Renews the lease of
    /// programs that have one.
    ///
    /// # Errors
    /// If the kernel does not run it.
    pub fn sweep(&mut self) -> Result<(), Error> {
        self.sweep_scope(SweepScope::Due)
    }

    /// Like [`Kernel::sweep`], but visits all flows that sent something, because no other sweep will follow.
    ///
    /// # Errors
    /// Like [`Kernel::sweep`].
    pub fn sweep_all(&mut self) -> Result<(), Error> {
        self.sweep_scope(SweepScope::AllDue)
    }

    fn sweep_scope(&mut self, scope: SweepScope) -> Result<(), Error> {
        self.run_sweeper(scope)?;
        if !self.series.has_lapsed() {
            return Ok(());
        }
        tracing::warn!(
            "pping got no CPU for more than {LEASE_SECONDS} s, after which its programs stop: packets that \
             passed meanwhile were not measured, and all flows start over"
        );
        self.start_over()
    }

    fn run_sweeper(&mut self, scope: SweepScope) -> Result<(), Error> {
        let Self { programs, sweeper, series, interface_ids, .. } = self;
        sweeper.sweep(programs, series, interface_ids, scope)
    }

    /// Makes programs that have a lease stop until [`Kernel::start_over`].
    ///
    /// # Errors
    /// Like [`Kernel::sweep`].
    pub fn pause(&mut self) -> Result<(), Error> {
        self.sweeper.end_lease(&self.series);
        self.run_sweeper(SweepScope::Due)
    }

    /// Reports and deletes all flows, whose pending timestamps may have been echoed unseen. Then the programs go on, with
    /// another lease.
    ///
    /// # Errors
    /// Like [`Kernel::sweep`].
    pub fn start_over(&mut self) -> Result<(), Error> {
        self.series.set_cut_off(Control::PACKETS_MISSED);
        self.run_sweeper(SweepScope::All)?;
        self.series.set_cut_off(0);
        self.sweeper.begin_lease(&self.series);
        self.run_sweeper(SweepScope::Due)
    }
}

//! Hands the kernel's counters to the metrics, and logs new losses.

use std::time::{Duration, Instant};

use pping_common::{
    abi::{PersistentEntry, PersistentKey},
    parse::Untracked,
};

use super::{losses::Losses, state::Agent};
#[cfg(feature = "history")]
use crate::history::{Counts, HistoryWriter};
use crate::{
    Error,
    kernel::{clock, persistent::PersistentMap},
    metrics::{self, Fill},
    recent::Reading,
    residence::InterfaceTimes,
    snapshot::{Snapshot, Usage},
};

/// The interval after which refused groups are looked up again.
const RESOLVE_INTERVAL: Duration = Duration::from_secs(10);

impl Agent {
    /// Hands the kernel's counters to the metrics, and acts on losses since the last time.
    pub(super) fn count(&mut self) -> Result<(), Error> {
        let snapshot = self.hand_over_counters();
        let total = snapshot.total();
        let now = Instant::now();
        let warnings = self.placement.look(&snapshot, now);
        let times = self.residence()?;
        if self.is_viewed() {
            let usage = Usage::read();
            let lines_lost = self.output.lines_lost() + self.reporter.log_lines_lost();
            self.recent.set_residence(times.clone(), clock::wall()?);
            self.recent.take_reading(Reading { snapshot, lines_lost, usage, warnings }, clock::wall()?);
        }
        self.metrics.set_residence(times);
        let options = &self.kernel.options;
        // Logged once, because a metric counts them.
        if total.groups_refused > 0 && !self.losses.are_groups_logged {
            tracing::warn!(
                "there are more than {} groups: the rest is `other`; raise --max-groups",
                options.max_groups
            );
            self.losses.are_groups_logged = true;
        }
        if total.pending_full > 0 && !self.losses.are_slots_logged {
            tracing::warn!(
                "some flows had as much pending as they have room for: \
                 pping_recordings_skipped_total{{reason=\"slots_full\"}} counts what is not recorded; \
                 samples are missing, none is wrong; look for what is not answered: loss, or flows of which only one \
                 direction passes here; with many segments out_of_window, for somebody who guesses; if answers just take \
                 long, a higher --rate-limit spreads samples over more time"
            );
            self.losses.are_slots_logged = true;
        }
        self.resolve_refused_groups(total.groups_refused)?;
        if let Some(samples) = self.losses.unaggregated.more(total.unaggregated, now) {
            tracing::warn!(
                "{samples} samples are in no histogram: too many series had samples within a second; raise --max-groups"
            );
        }
        if let Some(packets) = self.losses.flows.more(total.untracked[Untracked::MapFull as usize], now) {
            tracing::warn!(
                "a flow table is full: {packets} packets of new flows were not measured; raise --max-flows"
            );
        }
        if total.no_pending > 0 && !self.losses.is_pool_logged {
            tracing::warn!(
                "more flows wait for echoes than --max-pending allows: \
                 pping_recordings_skipped_total{{reason=\"no_pending\"}} counts what is not recorded; \
                 raise --max-pending or --rate-limit"
            );
            self.losses.is_pool_logged = true;
        }
        // The writer has logged itself why it dropped lines.
        let records = total.lost.iter().sum::<u64>() + self.output.lines_refused();
        if let Some(more) = self.losses.records.more(records, now) {
            tracing::warn!(
                "{more} records were lost: they come faster than they can be read or written; \
                 raise --rate-limit"
            );
        }
        let lines = self.reporter.log_lines_refused();
        if let Some(more) = self.losses.log_lines.more(lines, now) {
            tracing::warn!("{more} lines of --hdr-log were lost: its file is too slow, or does not answer");
        }
        Ok(())
    }

    /// Reads the times in this host of each watched interface. Without `--residence` there are none.
    pub(super) fn residence(&self) -> Result<Vec<InterfaceTimes>, Error> {
        Ok(self.kernel.residence_times(&self.interfaces.watched)?)
    }

    /// Hands the kernel's counters to the metrics and to the history, with the fill of the tables and the kernel's statistics of the
    /// programs. Returns the counters.
    pub(super) fn hand_over_counters(&mut self) -> Snapshot {
        let snapshot = self.kernel.counters.snapshot(&self.interfaces.watched);
        #[cfg(feature = "history")]
        if let Some(history) = &mut self.history {
            let lines_lost = self.output.lines_lost() + self.reporter.log_lines_lost();
            history.count(Counts::of(&snapshot.total(), lines_lost));
        }
        let series = self.kernel.series.fill();
        let options = &self.kernel.options;
        let fill = Fill {
            lines_lost: self.output.lines_lost(),
            log_lines_lost: self.reporter.log_lines_lost(),
            max_flows: options.max_flows,
            groups: series.groups as u32,
            max_groups: options.max_groups,
            interfaces: self.kernel.interface_ids.in_use() as u32,
            max_interfaces: options.max_interfaces,
            series: series.series as u32,
            max_series: series.max_series as u32,
            #[cfg(feature = "history")]
            history: self.history.as_ref().map(HistoryWriter::counts),
            #[cfg(not(feature = "history"))]
            history: None,
        };
        self.metrics.set_counters(snapshot.clone(), fill);
        self.metrics.set_program_runs(self.kernel.runs());
        snapshot
    }

    /// Makes flows look up their groups again if some were refused: other groups may have been removed meanwhile.
    fn resolve_refused_groups(&mut self, refused: u64) -> Result<(), Error> {
        let Losses { groups, groups_resolved, .. } = &mut self.losses;
        let since = groups_resolved.get_or_insert(self.started);
        // The total falls when the counters of an interface are cleared.
        *groups = refused.min(*groups);
        if refused > *groups && since.elapsed() >= RESOLVE_INTERVAL {
            self.kernel.series.forget_empty_groups()?;
            self.kernel.series.resolve_again();
            (*groups, *since) = (refused, Instant::now());
        }
        Ok(())
    }
}

impl metrics::Storage for PersistentMap {
    fn keys(&self) -> Vec<PersistentKey> {
        self.keys()
    }

    fn read(&self, key: &PersistentKey) -> Option<PersistentEntry> {
        self.read(key)
    }

    fn write(&mut self, key: &PersistentKey, entry: &PersistentEntry) -> bool {
        self.write(key, entry)
    }

    fn remove(&mut self, key: &PersistentKey) {
        self.remove(key);
    }
}

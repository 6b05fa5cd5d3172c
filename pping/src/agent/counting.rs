//! Once a second: what the kernel programs have counted, for metrics, and what there is to warn of.

use pping_common::{abi::Account, parse::Untracked};

use super::Agent;
use crate::{
    Error,
    kernel::{counters, ledger::LedgerMap, runs::runs},
    metrics::{self, Fill},
};

/// What has been warned of.
#[derive(Default)]
pub(super) struct Warned {
    groups: bool,
    refused: u64,
    lost: u64,
}

impl Agent {
    /// Takes over the kernel's counters, and warns of what they tell, at most once per sweep.
    pub(super) fn count(&mut self) -> Result<(), Error> {
        let snapshot = counters::read(&self.kernel, &self.watching.watched)?;
        let total = snapshot.total();
        let lines_lost = self.output.lines_lost();
        let series = self.kernel.series.fill();
        let fill = Fill {
            lines_lost,
            max_flows: self.max_flows,
            groups: series.groups as u32,
            max_groups: self.max_groups,
            series: series.series as u32,
            max_series: series.max_series as u32,
        };
        self.metrics.counted(snapshot, fill);
        self.metrics.programs(runs(&self.kernel.programs));
        // Once is enough: how many there are is a metric.
        if total.groups_refused > 0 && !self.warned.groups {
            tracing::warn!(
                "there are more than {} groups: the rest is `other`; raise --max-groups",
                self.max_groups
            );
            self.warned.groups = true;
        }
        self.make_room(total.groups_refused)?;
        let refused = total.untracked[Untracked::MapFull as usize];
        if refused > self.warned.refused {
            let packets = refused - self.warned.refused;
            tracing::warn!(
                "a flow map is full: {packets} packets of new flows were not measured; raise --max-flows"
            );
            self.warned.refused = refused;
        }
        // Of those that the writer had to drop it has told why.
        let lost = total.lost.iter().sum::<u64>() + self.output.lines_refused();
        if lost > self.warned.lost {
            let more = lost - self.warned.lost;
            tracing::warn!(
                "{more} records were lost: there are more than can be read or written; raise --rate-limit"
            );
            self.warned.lost = lost;
        }
        Ok(())
    }
}

impl metrics::Storage for LedgerMap {
    fn entries(&self) -> usize {
        self.entries()
    }

    fn read(&self, index: usize) -> Option<Account> {
        self.read(index)
    }

    fn write(&mut self, index: usize, change: &mut dyn FnMut(&mut Account)) {
        self.write(index, change);
    }
}

//! The worst flows, which the sweep finds.

use super::state::Agent;
use crate::{
    kernel::loaded::Kernel,
    worst::{MAX_SHOWN, WorstFlow},
};

impl Agent {
    /// Makes the next sweep find the worst flows, if they are shown or written.
    pub(super) fn rank(&mut self) {
        let aggregation = &self.config.aggregation;
        let shown = if self.is_viewed() { MAX_SHOWN } else { 0 };
        let limit = shown.max(aggregation.worst.unwrap_or(0));
        self.kernel.sweeper.rank(limit, aggregation.worst_min_samples);
    }

    /// Hands over the worst flows of the last sweep, at `now`, ns. It must precede the next commit, which may give
    /// their series indexes away.
    pub(super) fn take_worst(&mut self, now: u64) {
        let is_viewed = self.is_viewed();
        let Self { kernel: Kernel { sweeper, series, interface_ids, .. }, names, reporter, recent, .. } =
            self;
        let Some(ranking) = sweeper.worst() else { return };
        let named = ranking.all().map(|candidate| WorstFlow {
            candidate: *candidate,
            interface: interface_ids.name(candidate.endpoints.interface).cloned(),
            of: names.membership(series.key(candidate.series.index()).as_ref()),
        });
        let flows: Vec<_> = named.collect();
        reporter.rank(&flows);
        if is_viewed {
            recent.rank(&flows, now);
        }
    }
}

//! The end of a run: what is left is taken and written, and summed up.

use pping_common::abi::{Control, Emit};

use super::Agent;
use crate::{
    Error, Summary,
    kernel::{clock, counters, sweep},
};

impl Agent {
    /// Detaches, writes what is left, and sums up.
    pub(super) fn finish(mut self) -> Result<Summary, Error> {
        self.notify.stopping();
        self.watching.end();
        let duration = self.started.elapsed();
        // Unless pinned, packets do not come any more. What they brought is in the tally that was written to, or already in
        // the other.
        sweep::sweep_all(&mut self.kernel)?;
        if self.pins.is_none() {
            self.cut_off()?;
        }
        self.drain()?;
        self.take_series()?;
        self.take_series()?;
        let records = self.aggregator.reporter.finish(clock::wall()?)?;
        self.write(&records);
        let counters = counters::read(&self.kernel, &self.watching.watched)?.total();
        let lines_lost = self.output.finish();
        let totals = self.aggregator.reporter.into_totals();
        Ok(Summary { duration, counters, totals, lines_lost, capture: None })
    }

    /// Has flows reported that are still open, where flows are reported at their end.
    fn cut_off(&mut self) -> Result<(), Error> {
        if !self.emit.has(Emit::ENDS) {
            return Ok(());
        }
        self.kernel.series.cut_off(Control::OVER);
        let mut left = u64::MAX;
        loop {
            // As many as the ring has room for.
            self.drain()?;
            sweep::sweep(&mut self.kernel)?;
            let total = counters::read(&self.kernel, &self.watching.watched)?.total();
            let made: u64 = total.entries_made.iter().sum();
            let still = made.saturating_sub(total.entries_deleted.iter().sum());
            if still == 0 || still >= left {
                return Ok(());
            }
            left = still;
        }
    }
}

//! Stopping: detach, write what is left, and sum up.

use pping_common::abi::Control;

use super::state::Agent;
use crate::{
    Error, Summary,
    kernel::clock::{self, Moment},
};

impl Agent {
    /// Stops the agent, whose loop ended with `ended`.
    ///
    /// # Errors
    /// The error of `ended`, else one of stopping.
    pub(super) async fn shut_down(mut self: Box<Self>, ended: Result<(), Error>) -> Result<Summary, Error> {
        let server = self.server.take();
        #[cfg(feature = "otlp")]
        let exporter = self.exporter.take();
        let summary = self.finish();
        // These stop last: detaching does not wait for scrapes, and the last push has the last packets.
        #[cfg(feature = "otlp")]
        if let Some(exporter) = exporter {
            exporter.stop().await;
        }
        if let Some(server) = server {
            server.stop().await;
        }
        ended.and(summary)
    }

    /// Detaches, writes what is left, and sums up.
    fn finish(mut self: Box<Self>) -> Result<Summary, Error> {
        self.notify.stopping();
        self.interfaces.detach_all();
        if let Some(groups) = self.groups.take() {
            groups.close();
        }
        let duration = self.started.elapsed();
        self.rank();
        self.kernel.sweep_all()?;
        self.take_worst(clock::wall()?);
        if self.pins.is_none() {
            self.end_open_flows()?;
        }
        self.drain()?;
        // Both histograms of each series: the last packets may have been counted in either.
        for _ in 0..2 {
            let epoch = self.rotate()?;
            self.commit(&epoch)?;
        }
        let times = self.residence()?;
        self.reporter.take_residence(times.clone());
        self.metrics.set_residence(times);
        let now = Moment::now()?;
        let records = self.reporter.finish(now.before_step(&self.last_cycle).unwrap_or(now.wall))?;
        self.write(&records);
        let mut counters = self.hand_over_counters().total();
        counters.subtract(&self.counters_before);
        #[cfg(feature = "history")]
        if let Some(history) = self.history.take() {
            history.stop();
        }
        let log_lines_lost = self.reporter.close_log()?;
        let lines_lost = log_lines_lost + self.output.finish();
        let totals = self.reporter.into_totals();
        Ok(Summary { duration, counters, totals, lines_lost, capture: None })
    }

    /// Makes sweeps remove the open flows: that counts those of which one direction passed elsewhere, and reports them all
    /// with `--flow-summary`.
    fn end_open_flows(&mut self) -> Result<(), Error> {
        self.kernel.series.set_cut_off(Control::NO_MORE_PACKETS);
        let mut left = u64::MAX;
        loop {
            // Each sweep reports as many flows as the ring has room for.
            self.drain()?;
            self.kernel.sweep()?;
            let total = self.kernel.counters.snapshot(&self.interfaces.watched).total();
            let made: u64 = total.entries_made.iter().sum();
            let still = made.saturating_sub(total.entries_deleted.iter().sum());
            if still == 0 || still >= left {
                return Ok(());
            }
            left = still;
        }
    }
}

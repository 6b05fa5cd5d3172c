//! What there is to say at the end.

use std::{fmt, time::Duration};

use pping_common::abi::{Counters, Lost};

use crate::{
    aggregate::Totals,
    record::{hook_name, method_name},
};

/// A run, in a few lines.
#[derive(Clone, Debug)]
pub struct Summary {
    /// How long it took.
    pub duration: Duration,
    /// What the kernel programs counted, over all interfaces.
    pub counters: Counters,
    /// The distribution of RTTs.
    pub totals: Totals,
    /// Lines that the writer had no room for.
    pub lines_lost: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counters = &self.counters;
        let packets: u64 = counters.packets.iter().flatten().sum();
        let samples: u64 = counters.samples.iter().flatten().sum();
        writeln!(f, "{:.1} s, {packets} packets, {samples} samples", self.duration.as_secs_f64())?;
        for (method, matched, histogram) in self.totals.series() {
            let quantile = |q| histogram.value_at_quantile(q) as f64 / 1e6;
            writeln!(
                f,
                "{:<10} {:<7} {:>9} samples  p50 {:.3} ms  p90 {:.3} ms  p99 {:.3} ms",
                method_name(method),
                hook_name(matched),
                histogram.len(),
                quantile(0.5),
                quantile(0.9),
                quantile(0.99),
            )?;
        }
        let lost = counters.lost[Lost::Rtt as usize] + counters.lost[Lost::Flow as usize];
        writeln!(f, "lost: {lost} events, {} lines", self.lines_lost)
    }
}

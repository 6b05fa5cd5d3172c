//! What there is to say at the end.

use std::{fmt, time::Duration};

use pping_common::{
    abi::{Counters, Lost},
    parse::Untracked,
};

use crate::{
    Error,
    aggregate::Totals,
    capture::Skipped,
    records::{direction_name, method_name, untracked_name},
};

/// In less time, starting up is most of it.
const LONG_ENOUGH_FOR_A_RATE: Duration = Duration::from_secs(1);

/// A run, in a few lines.
#[derive(Debug)]
pub struct Summary {
    /// How long it took.
    pub duration: Duration,
    /// What was counted, over all interfaces.
    pub counters: Counters,
    /// The distribution of RTTs.
    pub totals: Totals,
    /// Lines that the writer had no room for.
    pub lines_lost: u64,
    /// What there is to say of a capture, if it was one.
    pub capture: Option<Replayed>,
}

/// A capture that was read.
#[derive(Debug)]
pub struct Replayed {
    /// From its oldest packet to its newest.
    pub span: Duration,
    /// Packets that were left out.
    pub skipped: Skipped,
    /// Why it could not be read to its end, if so.
    pub fault: Option<Error>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counters = &self.counters;
        let packets: u64 = counters.packets.iter().flatten().sum();
        let samples: u64 = counters.samples.iter().flatten().sum();
        let duration = self.capture.as_ref().map_or(self.duration, |capture| capture.span).as_secs_f64();
        write!(f, "{duration:.1} s, {packets} packets, {samples} samples")?;
        if self.capture.is_some() {
            let seconds = self.duration.as_secs_f64();
            write!(f, ", read in {seconds:.1} s")?;
            if self.duration >= LONG_ENOUGH_FOR_A_RATE {
                write!(f, " ({:.2} million packets/s)", packets as f64 / seconds / 1e6)?;
            }
        }
        writeln!(f)?;
        for (method, matched, distribution) in self.totals.series() {
            let quantiles = distribution.quantiles([0.5, 0.9, 0.99]).unwrap_or_default();
            let [p50, p90, p99] = quantiles.map(|rtt| rtt as f64 / 1e6);
            writeln!(
                f,
                "{:<14} {:<7} {:>9} samples  p50 {p50:.3} ms  p90 {p90:.3} ms  p99 {p99:.3} ms",
                method_name(method),
                matched.map_or("-", direction_name),
                distribution.count(),
            )?;
        }
        let untracked: Vec<String> = Untracked::ALL
            .into_iter()
            .map(|reason| (counters.untracked[reason as usize], untracked_name(reason)))
            .filter(|&(packets, _)| packets > 0)
            .map(|(packets, reason)| format!("{packets} {reason}"))
            .collect();
        if !untracked.is_empty() {
            writeln!(f, "not measured: {}", untracked.join(", "))?;
        }
        self.write_unanswered(f)?;
        if counters.contended > 0 {
            writeln!(f, "passed over: {} packets while another CPU had their flow", counters.contended)?;
        }
        match &self.capture {
            Some(Replayed { skipped, .. }) if skipped.total() == 0 && self.lines_lost == 0 => Ok(()),
            Some(Replayed { skipped, .. }) => {
                writeln!(f, "left out: {} packets, {} lines", skipped.total(), self.lines_lost)
            }
            None => {
                let lost = counters.lost[Lost::Rtt as usize] + counters.lost[Lost::Flow as usize];
                writeln!(f, "lost: {lost} events, {} lines", self.lines_lost)
            }
        }
    }
}

impl Summary {
    /// What nobody answered, if there is anything.
    fn write_unanswered(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counters = &self.counters;
        let queries: u64 = counters.dns_queries.iter().sum();
        if counters.dns_unanswered > 0 {
            writeln!(f, "not answered: {} of {queries} DNS queries", counters.dns_unanswered)?;
        }
        if counters.evicted > 0 {
            writeln!(f, "pushed out: {} flows that nobody had answered", counters.evicted)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(counters: &Counters) -> String {
        let duration = Duration::from_millis(1500);
        let totals = Totals::default();
        Summary { duration, counters: *counters, totals, lines_lost: 0, capture: None }.to_string()
    }

    #[test]
    fn what_was_passed_over_is_told() {
        assert_eq!(
            summary(&Counters { contended: 2, ..Counters::ZERO }),
            "1.5 s, 0 packets, 0 samples\npassed over: 2 packets while another CPU had their flow\n\
             lost: 0 events, 0 lines\n"
        );
    }

    #[test]
    fn what_nobody_answered_is_told_only_where_there_is_some() {
        assert_eq!(
            summary(&Counters { dns_queries: [1, 2], ..Counters::ZERO }),
            "1.5 s, 0 packets, 0 samples\nlost: 0 events, 0 lines\n"
        );
        let counters = Counters { dns_queries: [4, 3], dns_unanswered: 2, evicted: 9, ..Counters::ZERO };
        assert_eq!(
            summary(&counters),
            "1.5 s, 0 packets, 0 samples\nnot answered: 2 of 7 DNS queries\n\
             pushed out: 9 flows that nobody had answered\nlost: 0 events, 0 lines\n"
        );
    }
}

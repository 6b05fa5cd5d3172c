//! The summary at the end of a run.

use std::{fmt, time::Duration};

use pping_common::{
    abi::{Counters, Lost},
    parse::Untracked,
};

use crate::{
    Error,
    aggregate::Totals,
    capture::Skipped,
    packet_cost,
    records::{direction_name, method_name, untracked_name},
};

/// The shortest duration for which a rate is printed: a shorter run is mostly start-up.
const MIN_DURATION_FOR_RATE: Duration = Duration::from_secs(1);

/// The result of a run, printed in a few lines.
#[derive(Debug)]
pub struct Summary {
    /// The duration of the run.
    pub duration: Duration,
    /// The counters of all interfaces added up.
    pub counters: Counters,
    /// How many of these packets earlier runs counted, with `--pin`.
    pub packets_before: u64,
    /// The distributions of RTTs.
    pub totals: Totals,
    /// Records, and lines of `--hdr-log`, that were dropped on their way to their file.
    pub lines_lost: u64,
    /// The capture, if one was read.
    pub capture: Option<Replayed>,
}

/// A capture that was read.
#[derive(Debug)]
pub struct Replayed {
    /// The time from its oldest packet to its newest.
    pub span: Duration,
    /// Packets that were skipped.
    pub skipped: Skipped,
    /// Why reading stopped before the end of the capture, if it did.
    pub fault: Option<Error>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counters = &self.counters;
        let packets = counters.all_packets();
        let samples: u64 = counters.samples.iter().flatten().sum();
        let duration = self.capture.as_ref().map_or(self.duration, |capture| capture.span).as_secs_f64();
        write!(f, "{duration:.1} s, {packets} packets, {samples} samples")?;
        if self.capture.is_some() {
            let seconds = self.duration.as_secs_f64();
            write!(f, ", read in {seconds:.1} s")?;
            if self.duration >= MIN_DURATION_FOR_RATE {
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
            writeln!(
                f,
                "not matched: {} packets while another CPU had their flow locked",
                counters.contended
            )?;
        }
        self.write_cost(f)?;
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
    /// Writes the cost of the kernel programs, unless too few packets were timed. A capture has no timed packets.
    fn write_cost(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(seconds) = packet_cost::mean(self.counters.timed()) else { return Ok(()) };
        let packets = self.counters.all_packets().saturating_sub(self.packets_before);
        let share = seconds * packets as f64 / self.duration.as_secs_f64();
        writeln!(f, "pping took {:.0} ns for a packet, {:.2} % of a core", 1e9 * seconds, 100.0 * share)
    }

    /// Writes how many DNS queries were not answered, and how many flows without a reply were evicted.
    fn write_unanswered(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counters = &self.counters;
        let queries: u64 = counters.dns_queries.iter().sum();
        if counters.dns_unanswered > 0 {
            writeln!(f, "not answered: {} of {queries} DNS queries", counters.dns_unanswered)?;
        }
        if counters.evicted > 0 {
            writeln!(f, "evicted: {} flows without a reply", counters.evicted)?;
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
        let counters = *counters;
        Summary { duration, counters, packets_before: 100_000, totals, lines_lost: 0, capture: None }
            .to_string()
    }

    #[test]
    fn contended_packets_are_reported() {
        assert_eq!(
            summary(&Counters { contended: 2, ..Counters::ZERO }),
            "1.5 s, 0 packets, 0 samples\nnot matched: 2 packets while another CPU had their flow locked\n\
             lost: 0 events, 0 lines\n"
        );
    }

    #[test]
    fn what_packets_took_is_reported_if_enough_were_timed() {
        let mut counters = Counters::ZERO;
        counters.traffic[0][0].by_ecn[0] = 1_600_000;
        (counters.timed_packets[1], counters.timed_ns[1]) = (7, 280);
        assert!(!summary(&counters).contains("took"));
        (counters.timed_packets[0], counters.timed_ns[0]) = (3, 120);
        let said = "1.5 s, 1600000 packets, 0 samples\npping took 40 ns for a packet, 4.00 % of a core\n";
        assert!(summary(&counters).starts_with(said), "{}", summary(&counters));
    }

    #[test]
    fn unanswered_queries_and_evicted_flows_are_reported_if_any() {
        assert_eq!(
            summary(&Counters { dns_queries: [1, 2], ..Counters::ZERO }),
            "1.5 s, 0 packets, 0 samples\nlost: 0 events, 0 lines\n"
        );
        let counters = Counters { dns_queries: [4, 3], dns_unanswered: 2, evicted: 9, ..Counters::ZERO };
        assert_eq!(
            summary(&counters),
            "1.5 s, 0 packets, 0 samples\nnot answered: 2 of 7 DNS queries\n\
             evicted: 9 flows without a reply\nlost: 0 events, 0 lines\n"
        );
    }
}

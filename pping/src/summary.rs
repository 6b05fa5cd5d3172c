//! The summary at the end of a run: what was measured, and everything that was not, with why and what to do.

mod capture;
mod count;
mod live;
mod missing;

use std::{fmt, time::Duration};

use pping_common::{
    abi::{Counters, Lost},
    group::Side,
    parse::Direction,
};

use self::count::Count;
use crate::{aggregate::Totals, packet_cost, placement, replay::Replayed};

/// The shortest duration for which a rate is printed: a shorter run is mostly start-up.
const MIN_DURATION_FOR_RATE: Duration = Duration::from_secs(1);

/// The result of a run, printed in a few lines.
#[derive(Debug)]
pub struct Summary {
    /// The duration of the run.
    pub duration: Duration,
    /// The counters of all interfaces added up, without what earlier runs counted.
    pub counters: Counters,
    /// The distributions of RTTs.
    pub totals: Totals,
    /// Records, and lines of `--hdr-log`, that were dropped on their way to their file.
    pub lines_lost: u64,
    /// The capture, if one was read.
    pub capture: Option<Replayed>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counters = &self.counters;
        let packets = counters.all_packets();
        // Not the counter of samples: with pins, packets pass while this run begins, and that may be read when some of their
        // samples are not yet in the histograms.
        let samples = self.totals.samples() + counters.unaggregated;
        let duration = self.capture.as_ref().map_or(self.duration, |capture| capture.span).as_secs_f64();
        write!(f, "{duration:.1} s, {}, {}", Count(packets, "packet"), Count(samples, "sample"))?;
        if self.capture.is_some() {
            let seconds = self.duration.as_secs_f64();
            write!(f, ", read in {seconds:.1} s")?;
            if self.duration >= MIN_DURATION_FOR_RATE {
                write!(f, " ({:.2} million packets/s)", packets as f64 / seconds / 1e6)?;
            }
        }
        writeln!(f)?;
        self.write_series(f)?;
        self.write_only_side(f)?;
        if let Some(capture) = &self.capture {
            // What is wrong with the capture comes before what follows from it.
            capture.write_causes(f)?;
            let undecided = capture.queries_left.undecided;
            missing::write(f, &capture.counted(counters), capture.cause(), Some(undecided))?;
            if !capture.has_copies() {
                missing::write_retransmissions(f, counters)?;
            }
            capture.write_missing(f)?;
        } else {
            missing::write(f, counters, None, None)?;
            missing::write_retransmissions(f, counters)?;
            live::write(f, counters)?;
        }
        self.write_cost(f)?;
        self.write_lost(f)
    }
}

impl Summary {
    /// Writes a row for each interface, method and direction. The column of interfaces is left out for a capture without any.
    fn write_series(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.totals.series().filter_map(|(key, _)| key.interface.as_deref());
        let widest = names.map(|name| name.chars().count()).max();
        for (key, distribution) in self.totals.series() {
            let place = key.side.map(Side::name).or(key.matched.map(Direction::name)).unwrap_or("-");
            write!(f, "{:<14} {place:<7} ", key.method.name())?;
            if let Some(widest) = widest {
                write!(f, "{:<widest$} ", key.interface.as_deref().unwrap_or("-"))?;
            }
            let quantiles = distribution.quantiles([0.5, 0.9, 0.99]).unwrap_or_default();
            let [p50, p90, p99] = quantiles.map(|rtt| rtt as f64 / 1e6);
            let count = distribution.count();
            let samples = if count == 1 { "sample " } else { "samples" };
            writeln!(f, "{count:>9} {samples}  p50 {p50:.3} ms  p90 {p90:.3} ms  p99 {p99:.3} ms")?;
        }
        Ok(())
    }

    /// Says if all hosts that replied are on one side of the network: then `--inside` may be wrong.
    fn write_only_side(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sides = self.totals.series().filter_map(|(key, _)| key.side);
        let Some(only) = sides.next().filter(|&first| sides.all(|side| side == first)) else { return Ok(()) };
        writeln!(f, "one side: {}", placement::only(only))
    }

    /// Writes the cost of the kernel programs, unless too few packets were timed. A capture has no timed packets.
    fn write_cost(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(seconds) = packet_cost::mean(self.counters.timed()) else { return Ok(()) };
        let packets = self.counters.all_packets();
        let share = seconds * packets as f64 / self.duration.as_secs_f64();
        writeln!(f, "pping took {:.0} ns for a packet, {:.2} % of a core", 1e9 * seconds, 100.0 * share)
    }

    /// Writes what was measured and got lost on its way to its reader. With a capture nothing but lines can be.
    fn write_lost(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events: u64 = Lost::ALL.map(|kind| self.counters.lost[kind as usize]).iter().sum();
        let lines = self.lines_lost;
        if self.capture.is_some() && lines == 0 {
            return Ok(());
        }
        write!(f, "lost: {}, {}", Count(events, "event"), Count(lines, "line"))?;
        if events > 0 {
            write!(f, "; use --aggregate, or raise --rate-limit")?;
        }
        if lines > 0 {
            write!(f, "; the reader or the disk was too slow")?;
        }
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use pping_common::{
        method::Method,
        parse::{Protocol, Untracked},
        series::SeriesCounts,
    };

    use super::*;
    use crate::labels::untracked_name;

    fn summary(counters: &Counters) -> String {
        let duration = Duration::from_millis(1500);
        let totals = Totals::default();
        let counters = *counters;
        Summary { duration, counters, totals, lines_lost: 0, capture: None }.to_string()
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
        counters.traffic[0][0].by_ecn[0] = 1_500_000;
        (counters.timed_packets[1], counters.timed_ns[1]) = (7, 280);
        assert!(!summary(&counters).contains("took"));
        (counters.timed_packets[0], counters.timed_ns[0]) = (3, 120);
        let said = "1.5 s, 1500000 packets, 0 samples\npping took 40 ns for a packet, 4.00 % of a core\n";
        assert!(summary(&counters).starts_with(said), "{}", summary(&counters));
    }

    #[test]
    fn unanswered_queries_and_evicted_flows_are_reported_if_any() {
        assert_eq!(
            summary(&Counters { dns_queries: [1, 2], ..Counters::ZERO }),
            "1.5 s, 0 packets, 0 samples\nlost: 0 events, 0 lines\n"
        );
        let counters = Counters {
            dns_queries: [4, 3],
            dns_unanswered: 2,
            dns_given_up: 1,
            evicted: 9,
            ..Counters::ZERO
        };
        assert_eq!(
            summary(&counters),
            "1.5 s, 0 packets, 0 samples\n\
             evicted: 9 flows that were not proved: nobody had answered, or only a SYN; raise --max-flows, unless that was a \
             scan or a flood\n\
             not answered: 2 of 7 DNS queries\n\
             given up: 1 of 7 DNS queries: more waited for a response than there is room for, unless that was a flood\n\
             lost: 0 events, 0 lines\n"
        );
    }

    /// Each counter of something that was not measured has a line with its number and with what to do.
    #[test]
    fn everything_that_was_not_measured_is_reported() {
        for reason in Untracked::ALL {
            let mut counters = Counters::ZERO;
            counters.untracked[reason as usize] = 213;
            let said = summary(&counters);
            let line = format!("\nnot measured: 213 packets ({}): ", untracked_name(reason));
            assert!(said.contains(&line) && said.contains("; "), "{said}");
        }
        for (counters, line) in [
            (Counters { one_way_flows: 7, ..Counters::ZERO }, "not measured: 7 TCP flows (one_way): "),
            (
                Counters { still_timestamps: 7, ..Counters::ZERO },
                "not measured: 7 TCP flows (still_timestamps): ",
            ),
            (Counters { pending_full: 7, ..Counters::ZERO }, "not recorded: 7 times (slots_full): "),
            (Counters { no_pending: 7, ..Counters::ZERO }, "not recorded: 7 times (no_pending): "),
            (Counters { gave_way: 7, ..Counters::ZERO }, "not recorded: 7 times (gave_way): "),
            (Counters { unaggregated: 7, ..Counters::ZERO }, "not in a histogram: 7 samples: "),
            (Counters { groups_refused: 7, ..Counters::ZERO }, "in the group `other`: 7 flow directions: "),
            (Counters { lost: [1, 2, 4, 0], ..Counters::ZERO }, "lost: 7 events, 0 lines; use --aggregate"),
        ] {
            let said = summary(&counters);
            assert!(said.contains(&format!("\n{line}")), "{said}");
        }
    }

    #[test]
    fn flows_of_one_direction_are_reported_by_their_share_if_they_are_many() {
        let said = |one_way_flows, ended| {
            summary(&Counters { one_way_flows, entries_deleted: [ended, 0], ..Counters::ZERO })
        };
        let line =
            "\nnot measured: 60 TCP flows (one_way): the other direction of 75 % of the flows was not seen; ";
        assert!(said(60, 80).contains(line), "{}", said(60, 80));
        let few = "\nnot measured: 60 TCP flows (one_way): segments of one direction only; ";
        assert!(said(60, 700).contains(few), "{}", said(60, 700));
    }

    #[test]
    fn many_retransmissions_are_reported() {
        let said = |retransmissions, segments| {
            let mut counters = Counters { retransmissions, ..Counters::ZERO };
            for (line, segments) in counters.traffic.iter_mut().zip(segments) {
                line[Protocol::Tcp as usize].by_ecn[0] = segments;
            }
            summary(&counters)
        };
        let line = "\nretransmitted: 10 of 80 TCP segments: ";
        assert!(said([9, 1], [40, 40]).contains(line), "{}", said([9, 1], [40, 40]));
        for ordinary in [said([9, 1], [40, 41]), said([3, 0], [3, 3])] {
            assert!(!ordinary.contains("retransmitted"), "{ordinary}");
        }
    }

    #[test]
    fn pings_without_a_reply_are_reported_if_any() {
        let said = |echo_requests, echo_replies, echo_not_awaited| {
            summary(&Counters { echo_requests, echo_replies, echo_not_awaited, ..Counters::ZERO })
        };
        let all_answered = "1.5 s, 0 packets, 0 samples\nlost: 0 events, 0 lines\n";
        for answered in [said(0, 0, 0), said(100, 100, 0), said(100, 60, 40), said(5, 7, 0)] {
            assert_eq!(answered, all_answered, "the requests of the replies may be of an earlier run");
        }
        let line = "\nnot answered: 12 of 100 echo requests when pping ended";
        let advice = "; look for loss or an outage, unless it is for hosts that do not answer, such as the hops of mtr\n";
        assert!(said(100, 88, 0).contains(&format!("{line}{advice}")), "{}", said(100, 88, 0));
        let not_awaited = " (8 more were not waited for, as too many were under way or had the same number)";
        assert!(said(100, 80, 8).contains(&format!("{line}{not_awaited}{advice}")), "{}", said(100, 80, 8));
    }

    #[test]
    fn packets_to_this_host_are_counted_if_any_were_left_out() {
        let said = |to_this_host| summary(&Counters { to_this_host, ..Counters::ZERO });
        assert!(!said(0).contains("this host"), "{}", said(0));
        for (packets, line) in [
            (7, "\nnot timed: 7 packets to this host itself; --include-local times them, "),
            (1, "\nnot timed: 1 packet to this host itself; --include-local times "),
        ] {
            assert!(said(packets).contains(line), "{}", said(packets));
        }
    }

    #[test]
    fn one_of_a_kind_is_no_plural() {
        let counters =
            Counters { one_way_flows: 1, dns_queries: [1, 0], dns_unanswered: 1, ..Counters::ZERO };
        let said = summary(&counters);
        for line in [
            "\nnot measured: 1 TCP flow (one_way): ",
            "\nnot answered: 1 of 1 DNS queries\n",
            "\nlost: 0 events, 0 lines\n",
        ] {
            assert!(said.contains(line), "{said}");
        }
    }

    #[test]
    fn interfaces_have_a_column_if_they_have_names() {
        let rows = |names: [Option<&str>; 2]| {
            let (mut totals, mut counts) = (Totals::default(), SeriesCounts::EMPTY);
            counts.sample(5_000_000, 0);
            for name in names {
                totals.add(
                    name.map(Into::into).as_ref(),
                    Method::TcpTs,
                    Some(Direction::Ingress),
                    None,
                    &counts,
                );
            }
            let summary = Summary {
                duration: Duration::from_secs(2),
                counters: Counters::ZERO,
                totals,
                lines_lost: 0,
                capture: None,
            };
            summary
                .to_string()
                .lines()
                .skip(1)
                .map(|line| line.chars().take(46).collect::<String>())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            rows([Some("wan0"), Some("lan-of-office")])[..2],
            [
                "tcp-ts         ingress lan-of-office         1",
                "tcp-ts         ingress wan0                  1",
            ]
        );
        assert_eq!(rows([None; 2])[0], "tcp-ts         ingress         2 samples  p50 ");
    }
}

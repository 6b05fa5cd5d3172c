//! What a soak of names found.

use std::{
    io::{self, Write as _},
    time::Duration,
};

use pping_lab::Seconds;

use super::{
    Found, PREFIXES, QUIET,
    changes::{RATE, Times},
    memory::Usage,
};
use crate::{compare::Differences, findings::Findings};

/// From this delay on a second counts as late, ms.
const LATE: u64 = 500;

/// How long an answer may take.
const SLOW: Duration = Duration::from_secs(1);

/// How much memory may grow, as a fraction.
const LEEWAY: f64 = 0.05;

/// The report.
pub(super) struct Report {
    /// What the agent takes with five prefixes, and with all of the file.
    pub(super) small: Usage,
    pub(super) large: Usage,
    /// How long the start with all of them took, and the one with those of the socket as well.
    pub(super) start: Duration,
    pub(super) restart: Duration,
    /// The length of the file of changes at the end, bytes.
    pub(super) journal: u64,
    pub(super) found: Found,
    pub(super) seconds: Seconds,
    pub(super) differences: Differences,
}

impl Report {
    /// Notes what is not as it should be.
    pub(super) fn judge(&self, findings: &Findings) {
        let Self { found, seconds, .. } = self;
        if self.rate() < RATE as f64 * 0.99 {
            findings.note(format!("{:.0} changes a second were made, not {RATE}", self.rate()));
        }
        for (what, times) in [("an answer", &found.answers), ("the answer to a single change", &found.single)]
        {
            if times.quantile(1.0) > SLOW {
                findings.note(format!("{what} took {:?}", times.quantile(1.0)));
            }
        }
        if seconds.quantile(1.0) >= LATE || seconds.gaps() > 0 {
            findings.note(format!(
                "a second ended {} ms late, and {} had no event",
                seconds.quantile(1.0),
                seconds.gaps()
            ));
        }
        for (what, memory) in [
            ("resident memory", (|usage| usage.resources.resident) as fn(&Usage) -> u64),
            ("the memory of maps", |usage| usage.maps >> 10),
        ] {
            let changing = found.usage.iter().filter(|(at, _)| *at >= QUIET);
            let readings: Vec<_> = changing.map(|(_, usage)| memory(usage)).collect();
            let (before, after) = medians(&readings);
            if after as f64 > before as f64 * (1.0 + LEEWAY) {
                findings.note(format!("{what} grew from {before} to {after} KiB"));
            }
        }
    }

    /// The changes in a second.
    fn rate(&self) -> f64 {
        self.found.answers.count() as f64 / self.found.changing.as_secs_f64().max(1.0)
    }

    /// The share of a processor that the agent took before the changes, and with them.
    fn processor(&self) -> (f64, f64) {
        let usage = &self.found.usage;
        let (quiet, changing) = usage.split_at(usage.partition_point(|(at, _)| *at < QUIET));
        (share(quiet), share(changing))
    }

    /// Writes the table to standard output.
    pub(super) fn write(&self) {
        // If standard output is closed, the exit code says enough.
        io::stdout().write_all(self.table().as_bytes()).ok();
    }

    fn table(&self) -> String {
        let Self { small, large, found, seconds, differences, .. } = self;
        let most = |of: fn(&Usage) -> u64| found.usage.iter().map(|(_, usage)| of(usage)).max().unwrap_or(0);
        let resident: fn(&Usage) -> u64 = |usage| usage.resources.resident >> 10;
        let (quiet, changing) = self.processor();
        let per_prefix = |bytes: u64| bytes as f64 / PREFIXES as f64;
        let reloads: Vec<_> = found.reloads.iter().map(|time| format!("{} ms", time.as_millis())).collect();
        let rows = [
            ("start with a million prefixes", format!("{} ms", self.start.as_millis())),
            ("resident with 5 prefixes; with a million", mib(resident(small), resident(large))),
            ("maps with 5 prefixes; with a million", mib(small.maps >> 20, large.maps >> 20)),
            (
                "of the map of prefixes, for each",
                format!("{:.1} bytes", per_prefix(large.prefixes.saturating_sub(small.prefixes))),
            ),
            ("changes, in a second", format!("{}, {:.0}", found.answers.count(), self.rate())),
            ("answers: median, 99th percentile, longest", times(&found.answers)),
            ("one change at a time: median, 99th percentile, longest", times(&found.single)),
            ("reloads of the file meanwhile", reloads.join(", ")),
            ("requests for the tree: median, 99th percentile, longest", times(&found.tree)),
            (
                "a second over after: median, 99th percentile, longest; without an event",
                format!(
                    "{} ms, {} ms, {} ms; {}",
                    seconds.quantile(0.5),
                    seconds.quantile(0.99),
                    seconds.quantile(1.0),
                    seconds.gaps()
                ),
            ),
            (
                "processor of the agent: with traffic alone; with changes",
                format!("{:.1} %; {:.1} %", 100.0 * quiet, 100.0 * changing),
            ),
            ("the most resident; of maps", mib(most(resident), most(|usage| usage.maps >> 20))),
            ("file of changes at the end", format!("{} MiB", self.journal >> 20)),
            ("restart with it", format!("{} ms", self.restart.as_millis())),
            ("pings of addresses that change names, replies", {
                format!("{}, {}", found.echoes.requests, found.echoes.replies)
            }),
            ("packets, that differ", format!("{}, {}", differences.total_packets, differences.packets)),
            ("samples, that differ", format!("{}, {}", differences.total_samples, differences.samples)),
            ("echo replies and samples that differ", differences.replies.to_string()),
        ];
        let rows: Vec<_> = rows.iter().map(|(what, value)| format!("| {what} | {value} |")).collect();
        format!("\n| what | |\n| --- | ---: |\n{}\n", rows.join("\n"))
    }
}

/// The medians of the second and of the last third. In the first one, the names by the socket become as many as they stay.
/// Maxima would be those of reloads, which have both sets of prefixes.
fn medians(readings: &[u64]) -> (u64, u64) {
    let third = readings.len() / 3;
    let median = |part: Option<&[u64]>| {
        let mut sorted = part.unwrap_or_default().to_vec();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or(0)
    };
    (median(readings.get(third..2 * third)), median(readings.get(2 * third..)))
}

/// The share of a processor from the first to the last of these readings.
fn share(usage: &[(Duration, Usage)]) -> f64 {
    let [(from, before), .., (to, after)] = usage else { return 0.0 };
    let time = to.saturating_sub(*from).as_secs_f64().max(1.0);
    after.processor.saturating_sub(before.processor).as_secs_f64() / time
}

fn mib(before: u64, after: u64) -> String {
    format!("{before} MiB; {after} MiB")
}

fn times(times: &Times) -> String {
    let at = |share| format!("{:.1} ms", times.quantile(share).as_secs_f64() * 1e3);
    [0.5, 0.99, 1.0].map(at).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_compared_without_what_reloads_take() {
        assert_eq!(medians(&[1, 2, 90, 10, 11, 90, 12, 11, 99]), (11, 12));
        assert_eq!(medians(&[1, 2, 3, 10, 11, 90, 50, 60, 99]), (11, 60));
        assert_eq!(medians(&[]), (0, 0));
    }
}

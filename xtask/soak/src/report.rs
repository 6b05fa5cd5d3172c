//! The report of a soak.

use std::{
    fmt,
    io::{self, Write as _},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use super::{
    Soak, agent::Resources, compare::Differences, dial::Dial, findings::Findings, mirror::Mirrored,
    queues::Followed, scrape::Scraper,
};

/// How much resident memory may grow, as a fraction.
const LEEWAY: f64 = 0.05;

/// The resources of both agents at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) at: Duration,
    /// Whether all interfaces existed, so that descriptors can be compared.
    pub(super) has_all_interfaces: bool,
    pub(super) restarted: Resources,
    pub(super) lasting: Resources,
}

impl Reading {
    fn row(&self) -> String {
        let Self { at, has_all_interfaces, restarted, lasting } = self;
        let mark = if *has_all_interfaces { " \\*" } else { "" };
        format!(
            "| {}:{:02}{mark} | {} KiB | {} KiB | {} | {}, {}, {} | {} KiB | {} KiB | {} |",
            at.as_secs() / 60,
            at.as_secs() % 60,
            lasting.resident,
            lasting.anonymous,
            lasting.descriptors,
            lasting.programs,
            lasting.maps,
            lasting.links,
            restarted.resident,
            restarted.anonymous,
            restarted.descriptors,
        )
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lasting, restarted, .. } = self;
        write!(
            formatter,
            "lasting: {} KiB resident ({} anonymous), {} descriptors; mortal: {} KiB ({}), {}",
            lasting.resident,
            lasting.anonymous,
            lasting.descriptors,
            restarted.resident,
            restarted.anonymous,
            restarted.descriptors
        )
    }
}

/// The rows of the table, and the readings of resources.
pub(super) struct Report {
    rows: Vec<(&'static str, String)>,
    readings: Vec<Reading>,
    pub(super) left_pinned: usize,
}

impl Report {
    pub(super) fn new(
        soak: &Soak<'_>,
        elapsed: Duration,
        dial: &Dial<'_>,
        readings: Vec<Reading>,
        differences: &[Differences],
        followed: Followed,
        mirrored: Mirrored,
    ) -> Self {
        let [restarted, lasting] = [differences[0], differences[1]];
        let (load, counts) = (&soak.load, &soak.counts);
        let get = |number: &AtomicU64| number.load(Relaxed);
        let scrapes: u64 = soak.scrapers.iter().map(|it| get(&it.scrapes)).sum();
        let unanswered: u64 = soak.scrapers.iter().map(|it| get(&it.unanswered)).sum();
        let counters: usize = soak.scrapers.iter().map(Scraper::counters).sum();
        let mut rows = vec![
            ("time", format!("{} s", elapsed.as_secs())),
            ("packets", format!("{}", restarted.total_packets)),
            ("samples", format!("{}", restarted.total_samples)),
            (
                "TCP conversations, UDP datagrams",
                format!("{}, {}", get(&load.conversations), get(&load.datagrams)),
            ),
            ("echo requests, replies", format!("{}, {}", get(&load.pings), get(&load.replies))),
            ("interfaces made, renamed", format!("{}, {}", dial.made, dial.renamed)),
            ("longest until one was watched", format!("{} ms", dial.longest.as_millis())),
            (
                "reloads of both (refused, as they had to be)",
                format!("{} ({})", get(&counts.reloads), get(&counts.refusals)),
            ),
            ("restarts by SIGKILL, by SIGTERM", format!("{}, {}", get(&counts.kills), get(&counts.ends))),
            ("scrapes (unanswered during a restart)", format!("{scrapes} ({unanswered})")),
            (
                "requests of OTLP accepted, refused; times that the receiver went away",
                format!(
                    "{}, {}; {}",
                    get(&soak.receiver.accepted),
                    get(&soak.receiver.refused),
                    get(&soak.receiver.outages)
                ),
            ),
            ("counters that never went back", format!("{counters}")),
            ("queues replaced", format!("{}", get(&soak.queues.replaced))),
            (
                "packets followed through them, timed, lost",
                format!("{}, {}, {}", followed.all, followed.timed, followed.lost),
            ),
            (
                "packets at the mirror port, copies of others; samples",
                format!("{}, {}; {}", mirrored.packets, mirrored.copies, mirrored.samples),
            ),
            ("samples that the mirror port and the router do not share", mirrored.differing.to_string()),
            ("lines written", format!("{}", get(&counts.lines))),
            ("packets that differ, restarted", format!("{}", restarted.packets)),
            ("packets that differ, never restarted", format!("{}", lasting.packets)),
            ("samples that differ from those of groups, restarted", format!("{}", restarted.samples)),
            ("samples that differ from those of groups, never restarted", format!("{}", lasting.samples)),
            ("echo replies and samples that differ, restarted", format!("{}", restarted.replies)),
            ("echo replies and samples that differ, never restarted", format!("{}", lasting.replies)),
        ];
        let comparable: Vec<&Reading> =
            readings.iter().filter(|reading| reading.has_all_interfaces).collect();
        let row = |of: fn(&Reading) -> String| {
            comparable.iter().map(|reading| of(reading)).collect::<Vec<_>>().join(", ")
        };
        rows.push((
            "resident at the start, settled and at the end, never restarted",
            row(|it| in_kib(it.lasting)),
        ));
        rows.push((
            "resident at the start, settled and at the end, restarted",
            row(|it| in_kib(it.restarted)),
        ));
        rows.push(("descriptors, never restarted", row(|it| it.lasting.descriptors.to_string())));
        rows.push(("descriptors, restarted", row(|it| it.restarted.descriptors.to_string())));
        Self { rows, readings, left_pinned: 0 }
    }

    /// Notes memory that grew, and descriptors that are not as they were.
    pub(super) fn judge(&self, findings: &Findings) {
        let comparable: Vec<&Reading> =
            self.readings.iter().filter(|reading| reading.has_all_interfaces).skip(1).collect();
        let [settled, .., end] = comparable.as_slice() else {
            findings.note("the soak was too short to compare what is taken at its end with anything");
            return;
        };
        let resident = |of: fn(&Reading) -> Resources| -> Vec<_> {
            self.readings.iter().map(|reading| (reading.at, of(reading).resident)).collect()
        };
        for (name, readings) in
            [("lasting", resident(|it| it.lasting)), ("mortal", resident(|it| it.restarted))]
        {
            if let Some((before, after)) = growth(&readings) {
                findings.note(format!("{name}: resident memory grew from {before} to {after} KiB"));
            }
        }
        let pairs = [("lasting", settled.lasting, end.lasting), ("mortal", settled.restarted, end.restarted)];
        for (name, settled, end) in pairs {
            let counts = |it: Resources| [it.descriptors, it.programs, it.maps, it.links];
            if counts(settled) != counts(end) {
                findings.note(format!(
                    "{name}: descriptors, and those of programs, maps and links, went from {:?} to {:?}",
                    counts(settled),
                    counts(end)
                ));
            }
        }
    }

    /// Adds the number of samples in the history of the agent that is never restarted.
    pub(super) fn take_history(&mut self, samples: u64) {
        self.rows.push(("samples in the history, never restarted", samples.to_string()));
    }

    /// Writes the tables to standard output.
    pub(super) fn write(&self) {
        // If standard output is closed, the exit code says enough.
        io::stdout().write_all(self.tables().as_bytes()).ok();
    }

    fn tables(&self) -> String {
        let mut lines = vec![String::new(), "| what | |".to_owned(), "| --- | ---: |".to_owned()];
        lines.extend(self.rows.iter().map(|(name, value)| format!("| {name} | {value} |")));
        lines.push(format!("| pins left after `pping unpin` | {} |", self.left_pinned));
        lines.push(String::new());
        lines.push(
            "| at | resident, never restarted | of it anonymous | descriptors | of programs, maps, links | \
             resident, restarted | of it anonymous | descriptors |"
                .to_owned(),
        );
        lines.push("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |".to_owned());
        lines.extend(self.readings.iter().map(Reading::row));
        lines.push(String::new());
        lines.push("\\* with all interfaces there, so that descriptors can be compared".to_owned());
        lines.push(String::new());
        lines.join("\n")
    }
}

fn in_kib(resources: Resources) -> String {
    format!("{} KiB", resources.resident)
}

/// Returns the maximum of the first third of the time and that of the last, if memory grew by more than [`LEEWAY`]. The
/// first and the last reading may come just after a start, when less memory is in use.
fn growth(readings: &[(Duration, u64)]) -> Option<(u64, u64)> {
    let end = readings.iter().map(|&(at, _)| at).max()?;
    let most = |of: fn(Duration, Duration) -> bool| {
        readings.iter().filter(|&&(at, _)| of(at, end)).map(|&(_, value)| value).max()
    };
    let (before, after) = (most(|at, end| at * 3 <= end)?, most(|at, end| at * 3 >= end * 2)?);
    (after as f64 > before as f64 * (1.0 + LEEWAY)).then_some((before, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each_minute(values: &[u64]) -> Vec<(Duration, u64)> {
        (0..).map(Duration::from_mins).zip(values.iter().copied()).collect()
    }

    #[test]
    fn memory_that_leaks_is_found() {
        assert_eq!(growth(&each_minute(&[1000, 1010, 1020, 1030, 1040, 1050, 1072])), Some((1020, 1072)));
    }

    #[test]
    fn a_process_that_was_just_started_is_not() {
        assert_eq!(growth(&each_minute(&[900, 1000, 950, 1010, 1000, 1040, 900])), None);
        assert_eq!(growth(&each_minute(&[900, 1000, 1000, 900, 1000, 900, 900])), None);
    }
}

//! The report of a soak.

use std::{
    fmt,
    io::{self, Write as _},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use super::{
    Soak, agent::Taken, compare::Differences, dial::Dial, findings::Findings, queues::Followed,
    scrape::Scraper,
};

/// How much resident memory may grow, as a fraction.
const LEEWAY: f64 = 0.05;

/// The resources of both agents at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) at: Duration,
    /// Whether all interfaces existed, so that descriptors can be compared.
    pub(super) is_of_all: bool,
    pub(super) mortal: Taken,
    pub(super) lasting: Taken,
}

impl Look {
    fn row(&self) -> String {
        let Self { at, is_of_all, mortal, lasting } = self;
        let mark = if *is_of_all { " \\*" } else { "" };
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
            mortal.resident,
            mortal.anonymous,
            mortal.descriptors,
        )
    }
}

impl fmt::Display for Look {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lasting, mortal, .. } = self;
        write!(
            formatter,
            "lasting: {} KiB resident ({} anonymous), {} descriptors; mortal: {} KiB ({}), {}",
            lasting.resident,
            lasting.anonymous,
            lasting.descriptors,
            mortal.resident,
            mortal.anonymous,
            mortal.descriptors
        )
    }
}

/// The rows of the table, and the looks at resources.
pub(super) struct Report {
    rows: Vec<(&'static str, String)>,
    looks: Vec<Look>,
    pub(super) left_pinned: usize,
}

impl Report {
    pub(super) fn new(
        soak: &Soak<'_>,
        elapsed: Duration,
        dial: &Dial<'_>,
        looks: Vec<Look>,
        differences: &[Differences],
        followed: Followed,
    ) -> Self {
        let [mortal, lasting] = [differences[0], differences[1]];
        let (load, tallies) = (&soak.load, &soak.tallies);
        let get = |number: &AtomicU64| number.load(Relaxed);
        let scrapes: u64 = soak.scrapers.iter().map(|it| get(&it.scrapes)).sum();
        let unanswered: u64 = soak.scrapers.iter().map(|it| get(&it.unanswered)).sum();
        let counters: usize = soak.scrapers.iter().map(Scraper::counters).sum();
        let mut rows = vec![
            ("time", format!("{} s", elapsed.as_secs())),
            ("packets", format!("{}", mortal.of_packets)),
            ("samples", format!("{}", mortal.of_samples)),
            (
                "TCP conversations, UDP datagrams",
                format!("{}, {}", get(&load.conversations), get(&load.datagrams)),
            ),
            ("echo requests, replies", format!("{}, {}", get(&load.pings), get(&load.replies))),
            ("interfaces made, renamed", format!("{}, {}", dial.made, dial.renamed)),
            ("longest until one was watched", format!("{} ms", dial.longest.as_millis())),
            (
                "reloads of both (refused, as they had to be)",
                format!("{} ({})", get(&tallies.reloads), get(&tallies.refusals)),
            ),
            ("restarts by SIGKILL, by SIGTERM", format!("{}, {}", get(&tallies.kills), get(&tallies.ends))),
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
            ("lines written", format!("{}", get(&tallies.lines))),
            ("packets that differ, restarted", format!("{}", mortal.packets)),
            ("packets that differ, never restarted", format!("{}", lasting.packets)),
            ("samples that differ from those of groups, restarted", format!("{}", mortal.samples)),
            ("samples that differ from those of groups, never restarted", format!("{}", lasting.samples)),
            ("echo replies and samples that differ, restarted", format!("{}", mortal.replies)),
            ("echo replies and samples that differ, never restarted", format!("{}", lasting.replies)),
        ];
        let of_all: Vec<&Look> = looks.iter().filter(|look| look.is_of_all).collect();
        let row = |of: fn(&Look) -> String| of_all.iter().map(|look| of(look)).collect::<Vec<_>>().join(", ");
        rows.push((
            "resident at the start, settled and at the end, never restarted",
            row(|it| in_kib(it.lasting)),
        ));
        rows.push(("resident at the start, settled and at the end, restarted", row(|it| in_kib(it.mortal))));
        rows.push(("descriptors, never restarted", row(|it| it.lasting.descriptors.to_string())));
        rows.push(("descriptors, restarted", row(|it| it.mortal.descriptors.to_string())));
        Self { rows, looks, left_pinned: 0 }
    }

    /// Notes memory that grew, and descriptors that are not as they were.
    pub(super) fn judge(&self, findings: &Findings) {
        let of_all: Vec<&Look> = self.looks.iter().filter(|look| look.is_of_all).skip(1).collect();
        let [settled, .., end] = of_all.as_slice() else {
            findings.note("the soak was too short to compare what is taken at its end with anything");
            return;
        };
        let resident = |of: fn(&Look) -> Taken| -> Vec<_> {
            self.looks.iter().map(|look| (look.at, of(look).resident)).collect()
        };
        for (name, looks) in [("lasting", resident(|it| it.lasting)), ("mortal", resident(|it| it.mortal))] {
            if let Some((before, after)) = growth(&looks) {
                findings.note(format!("{name}: resident memory grew from {before} to {after} KiB"));
            }
        }
        let pairs = [("lasting", settled.lasting, end.lasting), ("mortal", settled.mortal, end.mortal)];
        for (name, settled, end) in pairs {
            let counts = |it: Taken| [it.descriptors, it.programs, it.maps, it.links];
            if counts(settled) != counts(end) {
                findings.note(format!(
                    "{name}: descriptors, and those of programs, maps and links, went from {:?} to {:?}",
                    counts(settled),
                    counts(end)
                ));
            }
        }
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
        lines.extend(self.looks.iter().map(Look::row));
        lines.push(String::new());
        lines.push("\\* with all interfaces there, so that descriptors can be compared".to_owned());
        lines.push(String::new());
        lines.join("\n")
    }
}

fn in_kib(taken: Taken) -> String {
    format!("{} KiB", taken.resident)
}

/// Returns the maximum of the first third of the time and that of the last, if memory grew by more than [`LEEWAY`]. The
/// first and the last look may come just after a start, when less memory is in use.
fn growth(looks: &[(Duration, u64)]) -> Option<(u64, u64)> {
    let end = looks.iter().map(|&(at, _)| at).max()?;
    let most = |of: fn(Duration, Duration) -> bool| {
        looks.iter().filter(|&&(at, _)| of(at, end)).map(|&(_, value)| value).max()
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

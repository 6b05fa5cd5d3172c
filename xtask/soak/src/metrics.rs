//! Reads a scrape, and checks that it may follow the one before.

use std::collections::HashMap;

/// Counters that belong to one process and not to what it measures, so a restart resets them.
const OF_ONE_PROCESS: [&str; 6] = [
    // The processor time of a process ends with it.
    "process_cpu_seconds_total",
    // The kernel counts runs of a program, and a restart loads another.
    "pping_bpf_runs_total",
    "pping_bpf_run_seconds_total",
    // Lines that found no room in the memory of the process.
    "pping_events_lost_total{kind=\"output\"}",
    // Requests to a receiver of this process.
    "pping_otlp_",
    // Rows and files that the history of this process was given.
    "pping_history_",
];

/// The suffixes of metrics that only grow.
const GROWING: [&str; 4] = ["_total", "_count", "_bucket", "_sum"];

/// A page of metrics: the text and the value of each series.
#[derive(Debug, Default)]
pub(super) struct Page(HashMap<String, f64>);

impl Page {
    /// Reads the text format of Prometheus; lines that are no samples are left out.
    pub(super) fn read(text: &str) -> Self {
        let samples = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            Some((series.to_owned(), value.parse().ok()?))
        });
        Self(samples.collect())
    }

    /// Returns the sum of all series of this name that have all of these labels.
    pub(super) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        let wanted: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{value}\"")).collect();
        let sum: f64 = self
            .0
            .iter()
            .filter(|(series, _)| self::name(series) == name && wanted.iter().all(|it| series.contains(it)))
            .map(|(_, value)| value)
            .sum();
        sum as u64
    }

    /// Returns the values of a label among the series of this name.
    pub(super) fn values(&self, name: &str, label: &str) -> Vec<String> {
        let begin = format!("{label}=\"");
        let of = self.0.keys().filter(|series| self::name(series) == name);
        let mut values: Vec<String> = of
            .filter_map(|series| Some(series.split_once(&begin)?.1.split_once('"')?.0.to_owned()))
            .collect();
        values.sort_unstable();
        values.dedup();
        values
    }
}

/// The last value of each counter.
#[derive(Debug, Default)]
pub(super) struct Monotone(HashMap<String, f64>);

impl Monotone {
    /// Takes a page, and describes each counter that went back.
    pub(super) fn follow(&mut self, page: &Page) -> Vec<String> {
        let mut setbacks = Vec::new();
        for (series, &value) in &page.0 {
            if !only_grows(series) {
                continue;
            }
            match self.0.get_mut(series) {
                Some(before) if value < *before => {
                    setbacks.push(format!("{series} went back from {before} to {value}"));
                    *before = value;
                }
                Some(before) => *before = value,
                None => drop(self.0.insert(series.clone(), value)),
            }
        }
        setbacks
    }

    /// How many counters have been seen.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

fn only_grows(series: &str) -> bool {
    GROWING.iter().any(|suffix| name(series).ends_with(suffix))
        && !OF_ONE_PROCESS.iter().any(|exception| series.starts_with(exception))
}

fn name(series: &str) -> &str {
    series.split('{').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"# HELP pping_packets_total Packets seen
pping_packets_total{interface="dial1",direction="ingress",protocol="tcp"} 40
pping_packets_total{interface="dial1",direction="ingress",protocol="icmp"} 2
pping_packets_total{interface="dial1",direction="egress",protocol="tcp"} 7
pping_packets_total{interface="dial11",direction="ingress",protocol="tcp"} 1000
pping_flows{interface="dial1"} 3
"#;

    #[test]
    fn series_are_summed_by_their_labels() {
        let page = Page::read(PAGE);
        let labels = [("interface", "dial1"), ("direction", "ingress")];
        assert_eq!(page.sum("pping_packets_total", &labels), 42);
        assert_eq!(page.sum("pping_packets", &labels), 0);
        assert_eq!(page.values("pping_packets_total", "interface"), ["dial1", "dial11"]);
    }

    #[test]
    fn a_counter_that_decreases_is_a_finding_and_a_gauge_is_not() {
        let mut monotone = Monotone::default();
        assert!(
            monotone.follow(&Page::read("a_total 4\na_flows 9\nprocess_cpu_seconds_total 3\n")).is_empty()
        );
        let setbacks = monotone.follow(&Page::read("a_total 3\na_flows 1\nprocess_cpu_seconds_total 0\n"));
        assert_eq!(setbacks, ["a_total went back from 4 to 3"]);
    }

    #[test]
    fn a_counter_that_was_away_goes_on_from_where_it_was() {
        let mut monotone = Monotone::default();
        for text in ["a_total 4\n", "", "a_total 4\n"] {
            assert!(monotone.follow(&Page::read(text)).is_empty());
        }
        assert_eq!(monotone.follow(&Page::read("a_total 0\n")).len(), 1);
    }
}

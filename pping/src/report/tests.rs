//! Reports of made-up measurements: one minute of a day, and the same of the week before.

use std::{fs, path::Path, sync::Arc, time::Duration};

use pping_common::{hist, method::Method, parse::Direction, series::SeriesCounts};
use serde_json::{Value, json};

use super::*;
use crate::{
    config::{HistoryKeep, HistoryLimits},
    groups::{GroupName, SeriesName},
    history::{HistoryWriter, Moment, Settings},
};

/// A midnight.
const MIDNIGHT: Moment = 1_795_651_200;

/// The minute of the day in which there are measurements.
const START: Moment = MIDNIGHT + 10 * HOUR;

fn name(label: &str, prefix: &str, site: &str) -> SeriesName {
    let columns = vec![("site".into(), site.into())];
    let group = GroupName { prefix: Some(prefix.into()), columns, ..GroupName::named(label) };
    SeriesName {
        interface: Some("wan0".into()),
        method: Method::TcpTs,
        matched: Some(Direction::Ingress),
        side: None,
        group: Arc::new(group),
    }
}

/// Samples in the middle of a bin, so that this is what all percentiles are.
fn counts(bin: usize, samples: u32) -> SeriesCounts {
    let mut counts = SeriesCounts::EMPTY;
    (0..samples).for_each(|_| counts.sample(hist::middle(bin), 0));
    counts.received.packets = 1;
    counts.received.bytes = 7_500;
    counts
}

/// A series with 100 samples in this bin.
fn slice(label: &str, bin: usize) -> (SeriesName, SeriesCounts) {
    (name(label, "192.0.2.0/24", "berlin"), counts(bin, 100))
}

/// Adds a minute to a history.
fn write(directory: &Path, start: Moment, slices: &[(SeriesName, SeriesCounts)]) {
    let keep = HistoryKeep([3, 60, 730].map(|days| Duration::from_hours(days * 24)));
    let limits = HistoryLimits { disk: 1 << 30, keep };
    let settings = Settings { directory: directory.to_owned(), limits };
    let second = 1_000_000_000;
    let profiles = quality::load(None).unwrap();
    let mut writer = HistoryWriter::start(settings, profiles, start * second).unwrap();
    writer.add(slices);
    (1..=60).for_each(|number| writer.tick((start + number) * second));
    assert_eq!(writer.stop(), 0);
}

/// A report about the day, made at `now`.
fn report(directory: &Path, site: Option<&str>, now: Moment) -> Result<Report, Error> {
    let scope = Scope { range: MIDNIGHT..MIDNIGHT + DAY, now, site };
    Report::new(&Archive::new(directory.to_owned()), scope, &quality::load(None).unwrap())
}

fn as_json(report: &Report) -> Value {
    serde_json::to_value(report).unwrap()
}

fn labels(rows: &Value) -> Vec<&str> {
    rows.as_array().unwrap().iter().map(|row| row["group"].as_str().unwrap()).collect()
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

#[test]
fn only_clear_changes_count_and_equal_groups_are_in_the_order_of_their_labels() {
    let directory = directory();
    let before = [("one-bin", 100), ("two-bins", 100), ("faster", 110), ("b", 120), ("a", 120), ("c", 120)];
    let now = [("one-bin", 101), ("two-bins", 102), ("faster", 100), ("b", 120), ("a", 120), ("c", 120)];
    let of = |groups: [(&str, usize); 6]| groups.map(|(label, bin)| slice(label, bin));
    write(directory.path(), START - 7 * DAY, &of(before));
    write(directory.path(), START, &of(now));
    let report = report(directory.path(), None, MIDNIGHT + DAY).unwrap();
    let found = as_json(&report);
    assert_eq!(labels(&found["worst"]), ["a", "b", "c", "two-bins", "one-bin", "faster"]);
    assert_eq!(labels(&found["best"]), ["faster", "one-bin", "two-bins", "a", "b", "c"]);
    assert_eq!((labels(&found["worse"]), labels(&found["better"])), (vec!["two-bins"], vec!["faster"]));
    assert_eq!((&found["compared"], &found["running_hour"]), (&json!(6), &Value::Null));
    let page = html::page(&report);
    for text in ["95th percentile, week before</th>", "<td>+19 %</td>", "<td>-58 %</td>", "<td>same</td>"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(!page.contains("+0 %") && !page.contains("+9 %"), "{page}");
}

#[test]
fn without_clear_changes_the_report_says_so() {
    let directory = directory();
    write(directory.path(), START - 7 * DAY, &[slice("a", 100)]);
    write(directory.path(), START, &[slice("a", 101)]);
    // Ten minutes later the hour is not over.
    let of_day = report(directory.path(), None, START + 600).unwrap();
    let page = html::page(&of_day);
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    for text in [
        &format!("<title>{host}: latency, 2026-"),
        "1 group had at least 100 samples",
        "half of its 100 round-trip times",
        "pping measured for 1 minute of 24 hours.",
        "No group became clearly worse: no 95th percentile rose by more than 15 %.",
        "No group became clearly better",
        " on was not over yet",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert_eq!(as_json(&of_day)["running_hour"], START * 1_000_000_000);
    // Nothing to compare with is another thing.
    let directory = self::directory();
    write(directory.path(), START, &[slice("a", 101)]);
    let page = html::page(&report(directory.path(), None, MIDNIGHT + DAY).unwrap());
    assert!(page.contains("so nothing can be compared") && !page.contains("clearly"), "{page}");
    assert!(!page.contains("not over yet"), "{page}");
}

#[test]
fn a_group_whose_prefix_changed_is_one_group() {
    let directory = directory();
    let moved = |prefix: &str, site: &str| [(name("moved", prefix, site), counts(100, 60))];
    write(directory.path(), START, &moved("192.0.2.0/24", "berlin"));
    write(directory.path(), START + 60, &moved("198.51.100.0/24", "berlin"));
    let found = as_json(&report(directory.path(), None, MIDNIGHT + DAY).unwrap());
    assert_eq!((labels(&found["worst"]), &found["worst"][0]["rtt"]["count"]), (vec!["moved"], &json!(120)));
}

#[test]
fn rates_are_those_of_the_measured_time() {
    let directory = directory();
    // 7,500 bytes in each of two minutes.
    write(directory.path(), START, &[slice("a", 100)]);
    write(directory.path(), START + 1200, &[slice("a", 100)]);
    let found = as_json(&report(directory.path(), None, MIDNIGHT + DAY).unwrap());
    assert_eq!(found["counts"]["seconds"], 120);
    assert_eq!(found["hours_of_day"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found["hours_of_day"][0]["bits_per_second"], 1000.0);
}

#[test]
fn damaged_files_are_named_if_nothing_else_is_left() {
    let directory = directory();
    write(directory.path(), START, &[slice("a", 100)]);
    let minutes = directory.path().join("1m/2026-11-26");
    for entry in fs::read_dir(&minutes).unwrap() {
        fs::write(entry.unwrap().path(), "cut").unwrap();
    }
    for site in [None, Some("berlin")] {
        let said = report(directory.path(), site, MIDNIGHT + DAY).unwrap_err().to_string();
        assert!(said.starts_with("nothing was measured"), "{said}");
        assert!(said.contains("10-00.parquet is damaged: "), "{said}");
    }
}

#[test]
fn an_unknown_site_is_answered_with_some_that_there_are() {
    let directory = directory();
    let sites = (0..13).map(|number| {
        let label = format!("group-{number}");
        (name(&label, "192.0.2.0/24", &format!("s\u{1b}[31m{number:02}")), counts(100, 100))
    });
    write(directory.path(), START, &sites.collect::<Vec<_>>());
    let said = report(directory.path(), Some("x\u{1b}[2J"), MIDNIGHT + DAY).unwrap_err().to_string();
    assert!(said.contains("of the site `x?[2J` from"), "{said}");
    assert!(said.contains("there are s?[31m00, ") && said.ends_with("s?[31m09 and 3 more"), "{said}");
    // Without measurements the message says of which time there are some.
    let scope = Scope { range: MIDNIGHT - DAY..MIDNIGHT, now: MIDNIGHT, site: None };
    let archive = Archive::new(directory.path().to_owned());
    let said = Report::new(&archive, scope, &quality::load(None).unwrap()).unwrap_err().to_string();
    assert!(said.contains("; the history is of 2026-11-26 "), "{said}");
}

//! Tests with made-up measurements of days, at full speed.

mod clocks;
mod hostile;
mod killed;
mod limits;

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use pping_common::{group::Side, method::Method, parse::Direction, series::SeriesCounts};

use super::{
    read::{StoredFile, Wanted},
    store::Store,
    time::DAY,
    writer::{Minute, WriterThread},
    *,
};
use crate::{
    aggregate::Measurements,
    config::{HistoryKeep, HistoryLimits},
    groups::{GroupName, SeriesName},
    quality,
    recent::SeriesQuery,
};

/// A midnight.
const MIDNIGHT: u64 = 1_795_651_200;

const LIMITS: HistoryLimits = HistoryLimits {
    disk: 1 << 30,
    keep: HistoryKeep([
        Duration::from_secs(3 * DAY),
        Duration::from_secs(60 * DAY),
        Duration::from_secs(730 * DAY),
    ]),
};

/// Numbers that look random, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn name(group: u64, method: Method, side: Option<Side>) -> SeriesName {
    let label = format!("customer-{group}");
    let columns =
        if group.is_multiple_of(3) { vec![("site".into(), "berlin, east".into())] } else { Vec::new() };
    let prefix = Some(format!("192.0.2.{group}/32").into());
    let group = Arc::new(GroupName { prefix, columns, ..GroupName::named(&label) });
    SeriesName { interface: Some("wan0".into()), method, matched: Some(Direction::Ingress), side, group }
}

/// What some series measured in a second.
fn second(numbers: &mut Numbers) -> Vec<(SeriesName, SeriesCounts)> {
    let mut slices = Vec::new();
    for group in 0..7 {
        if numbers.below(3) == 0 {
            let mut counts = SeriesCounts::EMPTY;
            for _ in 0..numbers.below(4) {
                counts.sample(1 << numbers.below(37), 0);
            }
            counts.sent.packets = 1 + numbers.below(9);
            counts.received.bytes = numbers.below(100_000);
            counts.received.retransmissions = numbers.below(2);
            let method = if numbers.below(2) == 0 { Method::TcpTs } else { Method::IcmpEcho };
            let side = (group % 2 == 0).then_some(Side::Inside);
            slices.push((name(group, method, side), counts));
        }
    }
    slices
}

fn minute(start: u64, slices: &[(SeriesName, SeriesCounts)]) -> Minute {
    let mut minute = Minute { start, counts: Counts::seconds(60), series: HashMap::default() };
    for (name, counts) in slices {
        minute.series.entry(name.clone()).or_default().add(counts);
    }
    minute
}

fn writer(directory: &Path) -> WriterThread {
    let settings = Settings { directory: directory.to_owned(), limits: LIMITS };
    WriterThread::new(settings, quality::load(None).unwrap(), Arc::default())
}

/// A directory in memory, where syncing takes no time.
fn directory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// What a series measured, by its label, method and time.
type Stored = BTreeMap<(String, Method, u64), Measurements>;

/// All rows that a tier has in a range. No two are of the same series and time.
fn stored(directory: &Path, tier: Tier, from: u64, to: u64) -> Stored {
    let found = Archive::new(directory.to_owned()).find(from, to, tier.step()).unwrap();
    assert_eq!((found.tier, &found.damaged), (tier, &Vec::new()));
    let mut stored = Stored::new();
    for file in &found.files {
        for row in file.rows(Wanted::default()) {
            let row = row.unwrap();
            let time = row.time - row.time % tier.step();
            let key = (row.series.group.label.to_string(), row.series.method, time);
            stored.entry(key).or_default().merge(&row.measured);
        }
    }
    stored
}

/// The rows of a file, or those of a group.
fn rows(file: &StoredFile, group: Option<&str>) -> Vec<(SeriesName, u64, Measurements)> {
    file.rows(Wanted { group }).map(|row| row.map(|it| (it.series, it.time, it.measured)).unwrap()).collect()
}

fn asked(from: u64, to: u64, step: u64) -> Asked {
    Asked { from, to, step, group: None, series: SeriesQuery::default() }
}

#[test]
fn each_tier_is_the_sum_of_its_seconds_for_days() {
    let directory = directory();
    let mut writer = writer(directory.path());
    let mut numbers = Numbers(1);
    let mut expected = Tier::ALL.map(|_| Stored::new());
    let minutes = 27 * 60 + 10;
    for number in 0..minutes {
        let start = MIDNIGHT + 60 * number;
        let slices: Vec<_> = (0..6).flat_map(|_| second(&mut numbers)).collect();
        for (tier, sums) in Tier::ALL.into_iter().zip(&mut expected) {
            for (name, counts) in &slices {
                let key = (name.group.label.to_string(), name.method, start - start % tier.step());
                sums.entry(key).or_default().add(counts);
            }
        }
        writer.take(&minute(start, &slices));
    }
    let end = MIDNIGHT + 60 * minutes;
    for (tier, expected) in Tier::ALL.into_iter().zip(&expected) {
        assert_eq!(stored(directory.path(), tier, MIDNIGHT, end), *expected, "{}", tier.name());
    }
    // Who asks for one group gets all its rows, wherever they are among the pages of a file, and no others.
    for file in Archive::new(directory.path().to_owned()).find(MIDNIGHT, end, 60).unwrap().files {
        let all = rows(&file, None);
        for label in (0..8).map(|group| format!("customer-{group}")) {
            let of_group: Vec<_> =
                all.iter().filter(|(series, ..)| *series.group.label == *label).cloned().collect();
            assert_eq!(rows(&file, Some(&label)), of_group, "{label} in {}", file.path().display());
        }
    }
    let store = Store::open(directory.path()).unwrap();
    let names = |tier| -> Vec<String> {
        let pieces = store.pieces(tier).unwrap();
        pieces.iter().map(|piece| piece.path().display().to_string()).collect()
    };
    // The first day is merged, and of the second its hours, but for the one that is not over.
    assert_eq!(
        names(Tier::Hour),
        [
            "1h/2026-11-26.parquet",
            "1h/2026-11-27/00.parquet",
            "1h/2026-11-27/01.parquet",
            "1h/2026-11-27/02.parquet"
        ]
    );
    assert_eq!(names(Tier::Minute).len(), 27 + 10);
    assert!(command_output(&["check"], directory.path()).ends_with("no file is damaged\n"));
    // A range in the middle of all that, for one group, by any step.
    let one = Asked { group: Some("customer-3".to_owned()), ..asked(MIDNIGHT + 3600, end, 600) };
    let answer = Archive::new(directory.path().to_owned()).history(&one).unwrap();
    let samples: u64 =
        answer.series.iter().flat_map(|it| &it.cells).filter_map(|cell| cell.rtt).map(|rtt| rtt.count).sum();
    let of_group =
        expected[0].iter().filter(|((label, _, time), _)| label == "customer-3" && *time >= MIDNIGHT + 3600);
    assert_eq!(samples, of_group.map(|(_, measured)| measured.count()).sum::<u64>());
}

/// What `pping history` prints.
fn command_output(arguments: &[&str], directory: &Path) -> String {
    use clap::Parser as _;
    let typed = ["pping", "history"].iter().chain(arguments).copied();
    let typed = typed.chain(["--history", directory.to_str().unwrap()]);
    match crate::cli::Cli::try_parse_from(typed).unwrap().command {
        Some(crate::cli::Command::History(asked)) => {
            perform(*asked).unwrap_or_else(|error| format!("error: {error}"))
        }
        other => panic!("{other:?}"),
    }
}

/// Writes two hours, of which the first is merged.
fn write_hours(directory: &Path) {
    let (mut writer, mut numbers) = (writer(directory), Numbers(7));
    for number in 0..61 {
        writer.take(&minute(MIDNIGHT + 60 * number, &second(&mut numbers)));
    }
}

#[test]
fn the_past_is_printed_for_people_spreadsheets_and_programs() {
    let directory = directory();
    write_hours(directory.path());
    let range = ["--from", "2026-11-26T00:00:00Z", "--to", "2026-11-26T00:30:00Z"];
    let with = |more: &[&str]| {
        let arguments: Vec<&str> = range.iter().chain(more).copied().collect();
        command_output(&arguments, directory.path())
    };
    let table = with(&["--group", "customer-3", "--step", "10m"]);
    assert!(table.starts_with("time              step  interface  method"), "{table}");
    assert!(table.lines().count() > 3, "{table}");
    let csv = with(&["--csv"]);
    assert!(csv.starts_with("time,step,group,interface,method,matched,side,count,"), "{csv}");
    assert!(csv.contains(&format!("\n{MIDNIGHT}000000000,60000000000,,wan0,")), "{csv}");
    let json: serde_json::Value = serde_json::from_str(&with(&["--json"])).unwrap();
    assert_eq!(json["cell"], 60_000_000_000_u64);
    let worst: serde_json::Value = serde_json::from_str(&command_output(
        &["--worst", "3", "--json", "--from", "2026-11-26T00:00:00Z", "--to", "2026-11-26T02:00:00Z"],
        directory.path(),
    ))
    .unwrap();
    let p95 = |at: usize| worst[at]["p95"].as_u64().unwrap();
    assert!(worst.as_array().unwrap().len() == 3 && p95(0) >= p95(1) && p95(1) >= p95(2), "{worst}");
    for (wrong, text) in [
        (&["--from", "now", "--to", "-1h"][..], "from is not before to"),
        (&["--from", "yesterday"], "is no time; write `now`"),
        (&["--step", "90s"], "give whole minutes"),
        (&["--from", "-2000d", "--step", "1m"], "give a longer step"),
    ] {
        let said = command_output(wrong, directory.path());
        assert!(said.starts_with("error: ") && said.contains(text), "{said}");
    }
}

#[test]
fn a_moment_of_the_past_is_recalled_as_it_was() {
    let directory = directory();
    let (mut writer, mut numbers) = (writer(directory.path()), Numbers(23));
    let mut minutes = Vec::new();
    for number in 0..90 {
        let slices = second(&mut numbers);
        writer.take(&minute(MIDNIGHT + 60 * number, &slices));
        minutes.push(slices);
    }
    let archive = Archive::new(directory.path().to_owned());
    // Within the hour that is merged, and within the present one.
    for at in [40_u64, 88] {
        let recent = crate::recent::RecentHistory::new(usize::MAX);
        assert_eq!(archive.recall(MIDNIGHT + 60 * at, &recent).unwrap(), [""; 0]);
        let samples = |slices: &[Vec<(SeriesName, SeriesCounts)>], label: &str| -> u64 {
            let of_group = slices.iter().flatten().filter(|(name, _)| &*name.group.label == label);
            of_group.map(|(_, counts)| counts.count()).sum()
        };
        let answer = recent.groups(&crate::recent::Query::default());
        for group in &answer.groups {
            let last: u64 = group.series.iter().filter_map(|it| it.rtt).map(|rtt| rtt.count).sum();
            assert_eq!(
                last,
                samples(&minutes[at as usize - 1..at as usize], &group.group),
                "{}",
                group.group
            );
            let detail = recent.group(&group.id).unwrap();
            let cells = detail.history.series.iter().flat_map(|it| &it.cells);
            let all: u64 = cells.filter_map(|cell| cell.rtt).map(|rtt| rtt.count).sum();
            assert_eq!(
                all,
                samples(&minutes[at as usize - 15..at as usize], &group.group),
                "{}",
                group.group
            );
        }
        assert!(answer.groups.len() > 3);
        assert_eq!(recent.summary().interfaces.len(), 1);
    }
}

#[test]
fn the_worst_of_a_range_have_all_its_samples() {
    let directory = directory();
    let mut writer = writer(directory.path());
    let counts = |rtts: std::ops::Range<u64>| {
        let mut counts = SeriesCounts::EMPTY;
        rtts.for_each(|rtt| counts.sample((rtt + 1) << 20, 0));
        counts.sent.packets = 7;
        counts
    };
    // The third has too few samples, although these are the longest.
    for number in 0..180 {
        let third = if number < 19 { 900..901 } else { 0..0 };
        let slices = [(1, 5..9), (2, 50..53), (3, third)]
            .map(|(group, rtts)| (name(group, Method::TcpTs, None), counts(rtts)));
        writer.take(&minute(MIDNIGHT + 60 * number, &slices));
    }
    let archive = Archive::new(directory.path().to_owned());
    let asked = asked(MIDNIGHT, MIDNIGHT + 3 * 3600, 300);
    let worst = archive.worst_of_range(&asked, 20).unwrap();
    assert_eq!((worst.from, worst.to), (MIDNIGHT * 1_000_000_000, (MIDNIGHT + 3 * 3600) * 1_000_000_000));
    let found: Vec<_> = worst.groups.iter().map(|it| (&*it.group, it.series.rtt.unwrap().count)).collect();
    assert_eq!(found, [("customer-2", 3 * 180), ("customer-1", 4 * 180)]);
    assert_eq!(
        (worst.groups[0].series.sent.packets, worst.groups[0].prefix.as_deref()),
        (7 * 180, Some("192.0.2.2/32"))
    );
    assert_eq!(archive.worst_of_range(&asked, 1).unwrap().groups.len(), 1);
    // The distribution of a range is that of all its cells.
    let group = Asked { group: Some("customer-2".to_owned()), ..asked };
    let history = archive.history(&group).unwrap();
    assert_eq!(history.series[0].rtt, worst.groups[0].series.rtt);
    assert!(history.series[0].cells.len() > 30);
}

#[test]
fn worst_groups_have_one_order_and_are_the_same_by_their_labels() {
    let directory = directory();
    let mut writer = writer(directory.path());
    let rtts = |rtts: &[u64]| {
        let mut counts = SeriesCounts::EMPTY;
        for &rtt in rtts {
            counts.sample(rtt, 0);
        }
        counts
    };
    let slow = 1 << 30;
    let moved = |prefix: &str, site: &str| {
        let columns = vec![("site".into(), site.into())];
        let group = GroupName { prefix: Some(prefix.into()), columns, ..GroupName::named("customer-9") };
        SeriesName { group: Arc::new(group), ..name(9, Method::TcpTs, None) }
    };
    // Most have the same percentiles, and of one the mean is higher. Another one moves, so only both halves are enough.
    for number in 0..2 {
        let mut slices: Vec<_> = [6, 3, 5, 4, 8]
            .map(|group| {
                (name(group, Method::TcpTs, None), rtts(&[&[slow / 2; 9][..], &[slow; 10]].concat()))
            })
            .to_vec();
        slices.push((name(7, Method::TcpTs, None), rtts(&[slow; 20])));
        let place = if number == 0 { moved("192.0.2.9/32", "z") } else { moved("192.0.2.1/32", "a") };
        slices.push((place, rtts(&[slow / 4; 12])));
        writer.take(&minute(MIDNIGHT + 60 * number, &slices));
    }
    let asked = asked(MIDNIGHT, MIDNIGHT + 3600, 60);
    for _ in 0..8 {
        let worst = Archive::new(directory.path().to_owned()).worst_of_range(&asked, 20).unwrap();
        let found: Vec<_> = worst.groups.iter().map(|it| &it.group[9..]).collect();
        assert_eq!(found, ["7", "3", "4", "5", "6", "8", "9"]);
        let moved = &worst.groups[6];
        assert_eq!((moved.series.rtt.unwrap().count, moved.prefix.as_deref()), (24, Some("192.0.2.1/32")));
        assert_eq!(moved.labels["site"].as_ref(), "a");
    }
}

#[test]
fn an_empty_answer_names_what_there_is() {
    let directory = directory();
    write_hours(directory.path());
    let range = ["--from", "2026-11-26T00:00:00Z", "--to", "2026-11-26T01:00:00Z"];
    let with = |more: &[&str]| command_output(&[&range, more].concat(), directory.path());
    let said = with(&["--group", "customer-33\u{1b}[2J"]);
    assert!(said.starts_with("no group `customer-33?[2J` was measured from 2026-11-2"), "{said}");
    assert!(said.contains("; groups: customer-") && said.matches("customer-").count() == 8, "{said}");
    let said = with(&["--interface", "wan1"]);
    assert!(
        said.starts_with("no interface `wan1` was measured") && said.contains("interfaces: wan0"),
        "{said}"
    );
    let said = with(&["--group", "customer-3", "--method", "quic-spin"]);
    assert!(said.starts_with("nothing was measured from") && said.contains("of such series"), "{said}");
    let said = with(&["--worst", "3", "--method", "quic-spin"]);
    assert!(said.starts_with("no group has 20 samples of such series"), "{said}");
    let said = command_output(&["--from", "2020-01-01", "--to", "2020-01-02"], directory.path());
    assert!(said.contains("; the history is of 2026-11-2"), "{said}");
    // Programs get an empty document.
    assert_eq!(with(&["--group", "nobody", "--csv"]).lines().count(), 1);
    assert!(with(&["--group", "nobody", "--json"]).contains("\"series\":[]"));
    let recent = crate::recent::RecentHistory::new(usize::MAX);
    let error = Archive::new(directory.path().to_owned()).recall(MIDNIGHT - DAY, &recent).unwrap_err();
    let said = error.to_string();
    assert!(said.starts_with("nothing was measured in the 15 minutes before 2026-11-2"), "{said}");
    assert!(said.contains("; the history is of 2026-11-2"), "{said}");
}

#[test]
fn unknown_methods_are_refused() {
    use clap::Parser as _;
    let error = crate::cli::Cli::try_parse_from(["pping", "history", "--method", "foo"]).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("foo") && said.contains("tcp-ts") && said.contains("icmp-echo"), "{said}");
}

#[test]
fn longer_steps_than_asked_for_are_shown() {
    let directory = directory();
    write_hours(directory.path());
    fs::remove_dir_all(directory.path().join("1m")).unwrap();
    let range = ["--from", "2026-11-26T00:00:00Z", "--to", "2026-11-26T01:00:00Z", "--step", "7m"];
    let with = |more: &[&str]| command_output(&[&range, more].concat(), directory.path());
    let table = with(&["--group", "customer-3"]);
    assert!(table.lines().skip(1).all(|line| line.contains("  10m   wan0")), "{table}");
    let csv = with(&["--group", "customer-3", "--csv"]);
    assert!(csv.lines().skip(1).all(|line| line.contains(",600000000000,customer-3,wan0,")), "{csv}");
}

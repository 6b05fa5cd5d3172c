//! Tests with made-up measurements of days, at full speed.

mod killed;

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use pping_common::{group::Side, method::Method, parse::Direction, series::SeriesCounts};

use super::{
    read::Wanted,
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
fn a_damaged_file_is_named_and_left_out_and_nothing_panics() {
    let directory = directory();
    write_hours(directory.path());
    let path = directory.path().join("1h/2026-11-26/00.parquet");
    let whole = fs::read(&path).unwrap();
    let archive = Archive::new(directory.path().to_owned());
    let question = asked(MIDNIGHT, MIDNIGHT + 3600, 3600);
    let rows = |archive: &Archive| archive.history(&question).unwrap().series.len();
    assert!(rows(&archive) > 0);
    let mut numbers = Numbers(3);
    for round in 0..400 {
        let mut bytes = whole.clone();
        match round % 3 {
            0 => bytes.truncate(numbers.below(whole.len() as u64) as usize),
            1 => {
                let first = numbers.below(whole.len() as u64) as usize;
                let end = (first + 1 + numbers.below(64) as usize).min(whole.len());
                bytes[first..end].fill(0);
            }
            _ => {
                let at = numbers.below(whole.len() as u64) as usize;
                bytes[at] ^= 1 << numbers.below(8);
            }
        }
        fs::write(&path, &bytes).unwrap();
        let answer = archive.history(&question).unwrap();
        // Cut files are always noticed. A flipped bit may be in a place that nothing reads.
        assert!(round % 3 > 0 || answer.damaged.len() == 1, "{round}");
    }
    fs::write(&path, b"").unwrap();
    let said = command_output(&["check"], directory.path());
    assert!(said.contains("1h/2026-11-26/00.parquet is damaged"), "{said}");
    // A file of another hour.
    let other = directory.path().join("1h/2026-11-26/05.parquet");
    fs::write(&other, &whole).unwrap();
    let said = command_output(&["check"], directory.path());
    assert!(said.contains("05.parquet is damaged: its rows are of another time"), "{said}");
    // The upkeep of the next day sets both aside, and goes on.
    let mut writer = writer(directory.path());
    writer.take(&minute(MIDNIGHT + DAY, &[]));
    assert!(path.with_added_extension("damaged").exists() && other.with_added_extension("damaged").exists());
    assert!(command_output(&["check"], directory.path()).ends_with("no file is damaged\n"));
}

#[test]
fn the_oldest_go_by_days_and_by_size() {
    let directory = directory();
    let settings = |disk, days: u64| Settings {
        directory: directory.path().to_owned(),
        limits: HistoryLimits {
            disk,
            keep: HistoryKeep([1, 2, days].map(|days| Duration::from_secs(days * DAY))),
        },
    };
    let mut numbers = Numbers(5);
    let write = |settings, days: &[u64], numbers: &mut Numbers| {
        let mut writer = WriterThread::new(settings, quality::load(None).unwrap(), Arc::default());
        for day in days {
            writer.take(&minute(MIDNIGHT + day * DAY, &second(numbers)));
        }
    };
    let days = |tier| -> Vec<u64> {
        let pieces = Store::open(directory.path()).unwrap().pieces(tier).unwrap();
        pieces.iter().map(|piece| (piece.start - MIDNIGHT) / DAY).collect()
    };
    write(settings(1 << 30, 5), &[0, 1, 2, 3, 4], &mut numbers);
    // The last day is still in its minutes.
    assert_eq!(
        (days(Tier::Minute), days(Tier::FiveMinutes), days(Tier::Hour)),
        (vec![4], vec![2, 3], vec![0, 1, 2, 3])
    );
    // A clock that is wrong for a minute, by years in both directions, removes a day of each tier at most.
    write(settings(1 << 30, 5), &[4000, 5], &mut numbers);
    assert!(days(Tier::Hour).contains(&4), "{:?}", days(Tier::Hour));
    assert!(days(Tier::Hour).len() >= 4, "{:?}", days(Tier::Hour));
    // With hardly any room only what is not merged yet is left.
    write(settings(1, 5), &[6], &mut numbers);
    assert_eq!((days(Tier::FiveMinutes), days(Tier::Hour)), (vec![], vec![]));
    assert_eq!(days(Tier::Minute), [6]);
}

#[test]
fn a_clock_that_goes_back_loses_nothing() {
    let directory = directory();
    let (mut writer, mut numbers) = (writer(directory.path()), Numbers(11));
    let mut expected = Stored::new();
    // Three hours, and then two of them again.
    for number in (0..180).chain(60..180) {
        let start = MIDNIGHT + 60 * number;
        let slices = second(&mut numbers);
        for (name, counts) in &slices {
            let key = (name.group.label.to_string(), name.method, start - start % 3600);
            expected.entry(key).or_default().add(counts);
        }
        writer.take(&minute(start, &slices));
    }
    assert_eq!(stored(directory.path(), Tier::Hour, MIDNIGHT, MIDNIGHT + DAY), expected);
    writer.take(&minute(MIDNIGHT + DAY, &[]));
    assert_eq!(stored(directory.path(), Tier::Hour, MIDNIGHT, MIDNIGHT + DAY), expected);
}

#[test]
fn a_clock_that_was_wrong_by_years_costs_nothing_else() {
    let directory = directory();
    let (mut writer, mut numbers) = (writer(directory.path()), Numbers(13));
    let times = [MIDNIGHT, 60, 2_147_483_640 / 60 * 60, MIDNIGHT + DAY];
    let mut expected = Vec::new();
    for start in times {
        // The last minute of each run ends an hour and a day.
        let slices = second(&mut numbers);
        writer.take(&minute(start, &slices));
        writer.take(&minute(start + 60, &[]));
        expected.push(slices.len());
    }
    for (start, rows) in times.into_iter().zip(expected) {
        assert_eq!(stored(directory.path(), Tier::Hour, start, start + 3600).len(), rows, "{start}");
    }
    let said = inspect::check(directory.path(), MIDNIGHT + 2 * DAY).unwrap();
    assert_eq!(said.matches("is of the future: the clock of this host was wrong").count(), 1, "{said}");
    assert!(said.contains("no file is damaged"), "{said}");
}

#[test]
fn a_group_that_returns_or_has_another_name_keeps_its_past() {
    let directory = directory();
    let mut writer = writer(directory.path());
    let slice = |group: u64| {
        let mut counts = SeriesCounts::EMPTY;
        counts.sample(20_000_000, 0);
        vec![(name(group, Method::TcpTs, None), counts)]
    };
    let month = 30 * DAY;
    // The customer is there, is away for a month, returns, and is renamed.
    for (time, group) in [(0, 1), (month, 1), (month + 60, 1), (month + 120, 2)] {
        writer.take(&minute(MIDNIGHT + time, &slice(group)));
    }
    writer.take(&minute(MIDNIGHT + month + DAY, &[]));
    let archive = Archive::new(directory.path().to_owned());
    let samples = |group: &str| {
        let asked = asked(MIDNIGHT, MIDNIGHT + month + DAY, 3600);
        let answer = archive.history(&Asked { group: Some(group.to_owned()), ..asked }).unwrap();
        let cells = answer.series.iter().flat_map(|series| &series.cells);
        cells.filter_map(|cell| Some(cell.rtt?.count)).collect::<Vec<_>>()
    };
    assert_eq!(samples("customer-1"), [1, 2]);
    assert_eq!(samples("customer-2"), [1]);
}

#[test]
fn a_wrong_directory_is_named_and_costs_minutes_only() {
    let directory = directory();
    let said = |directory: &Path| Store::create(directory).map(drop).unwrap_err().to_string();
    let foreign = directory.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("thesis.txt"), "").unwrap();
    assert!(said(&foreign).contains("has other files in it, and is no history"), "{}", said(&foreign));
    let newer = directory.path().join("newer");
    fs::create_dir(&newer).unwrap();
    fs::write(newer.join("pping-history.json"), r#"{"format":2,"by":"pping 9.0.0"}"#).unwrap();
    assert!(said(&newer).contains("was written by pping 9.0.0, in format 2"), "{}", said(&newer));
    let taken = directory.path().join("taken");
    let store = Store::create(&taken).unwrap();
    assert!(said(&taken).contains("another pping writes to the history"), "{}", said(&taken));
    let (state, mut numbers) = (Arc::<State>::default(), Numbers(2));
    let settings = Settings { directory: taken.clone(), limits: LIMITS };
    let mut writer = WriterThread::new(settings, quality::load(None).unwrap(), Arc::clone(&state));
    let slices = second(&mut numbers);
    writer.take(&minute(MIDNIGHT, &slices));
    let lost = state.lost_rows.load(Ordering::Relaxed);
    assert!(lost > 0 && state.rows.load(Ordering::Relaxed) == 0);
    drop(store);
    writer.take(&minute(MIDNIGHT + 60, &slices));
    assert_eq!((state.lost_rows.load(Ordering::Relaxed), state.rows.load(Ordering::Relaxed)), (lost, lost));
    let said = command_output(&[], &directory.path().join("nothing"));
    assert!(said.contains("there is no history in"), "{said}");
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
    assert!(table.starts_with("time              interface  method"), "{table}");
    assert!(table.lines().count() > 3, "{table}");
    let csv = with(&["--csv"]);
    assert!(csv.starts_with("time,group,interface,method,matched,side,count,"), "{csv}");
    assert!(csv.contains(&format!("\n{MIDNIGHT}000000000,,wan0,")), "{csv}");
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
    let file = directory.path().join("copy.parquet");
    let said = command_output(
        &[
            "export",
            file.to_str().unwrap(),
            "--tier",
            "1m",
            "--from",
            "2026-11-26T00:00:00Z",
            "--to",
            "2026-11-26T00:30:00Z",
        ],
        directory.path(),
    );
    assert!(said.ends_with(" rows\n") && file.exists(), "{said}");
}

#[test]
fn a_full_disk_costs_minutes_and_never_what_is_kept() {
    let run = |directory: &Path| {
        let history = directory.join("history");
        let ballast = directory.join("ballast");
        let (state, mut numbers) = (Arc::<State>::default(), Numbers(17));
        let settings = Settings { directory: history.clone(), limits: LIMITS };
        let mut writer = WriterThread::new(settings, quality::load(None).unwrap(), Arc::clone(&state));
        let mut expected = Stored::new();
        let mut refused = 0;
        // Each hour has another amount of room left when it is merged: too little for one file more, for two, for three.
        for number in 0..40_u64 {
            let start = MIDNIGHT + number * 1800;
            fs::remove_file(&ballast).ok();
            if number % 2 == 0 {
                fs::write(&ballast, vec![0; 4096]).unwrap();
                let mut fill = fs::File::options().append(true).open(&ballast).unwrap();
                while std::io::Write::write_all(&mut fill, &[0; 4096]).is_ok() {}
                let left = fs::metadata(&ballast).unwrap().len().saturating_sub(4096 * (number / 2));
                fill.set_len(left).unwrap();
            }
            let slices = second(&mut numbers);
            let before = state.rows.load(Ordering::Relaxed);
            writer.take(&minute(start, &slices));
            if state.rows.load(Ordering::Relaxed) == before {
                refused += 1;
                continue;
            }
            for (name, counts) in &slices {
                let key = (name.group.label.to_string(), name.method, start - start % 3600);
                expected.entry(key).or_default().add(counts);
            }
            assert_eq!(stored(&history, Tier::Hour, MIDNIGHT, MIDNIGHT + 2 * DAY), expected, "{number}");
        }
        assert!(refused > 0 && refused < 20, "{refused} minutes were refused");
        fs::remove_file(&ballast).ok();
        writer.take(&minute(MIDNIGHT + 3 * DAY, &[]));
        assert_eq!(stored(&history, Tier::Hour, MIDNIGHT, MIDNIGHT + 2 * DAY), expected);
        let minutes = Store::open(&history).unwrap().pieces(Tier::Minute).unwrap();
        assert!(minutes.iter().filter(|piece| piece.end() - piece.start == 60).count() <= 1, "{minutes:?}");
    };
    pping_lab::on_small_disk(2048, run).unwrap();
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

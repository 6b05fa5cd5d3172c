//! A writer that is killed at any moment, many times.

use std::{
    collections::BTreeSet,
    env,
    io::{BufRead as _, BufReader, Write as _},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use super::*;

/// The directory that the child writes to.
const DIRECTORY: &str = "PPING_TEST_HISTORY";

/// The number of the first minute that it writes.
const FIRST: &str = "PPING_TEST_FIRST";

/// The time between minutes, so that hours and days are merged often.
const STEP: u64 = 20 * 60;

/// How often the child is killed; `PPING_TEST_KILLS` is another number.
const KILLS: u64 = 200;

fn slices_of(number: u64) -> Vec<(SeriesName, SeriesCounts)> {
    second(&mut Numbers(number))
}

fn start_of(number: u64) -> u64 {
    MIDNIGHT + STEP * number
}

fn forever(directory: &Path) -> WriterThread {
    let limits = HistoryLimits { disk: 1 << 40, keep: HistoryKeep([Duration::from_secs(1000 * DAY); 3]) };
    let settings = Settings { directory: directory.to_owned(), limits };
    WriterThread::new(settings, quality::load(None).unwrap(), Arc::default())
}

#[test]
#[ignore = "it is the child of the test below, which kills it"]
fn writes_until_it_is_killed() {
    let directory = env::var_os(DIRECTORY).unwrap();
    let first: u64 = env::var(FIRST).unwrap().parse().unwrap();
    let mut writer = forever(Path::new(&directory));
    for number in first.. {
        writer.take(&minute(start_of(number), &slices_of(number)));
        println!("written {number}");
        std::io::stdout().flush().unwrap();
    }
}

/// Starts the child, kills it a moment after its first minute, and returns the last minute that it wrote for sure.
fn write_and_kill(directory: &Path, first: u64, delay: Duration) -> u64 {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "history::tests::killed::writes_until_it_is_killed", "--ignored", "--nocapture"])
        .env(DIRECTORY, directory)
        .env(FIRST, first.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let number = |line: String| line.strip_prefix("written ")?.parse::<u64>().ok();
    let known = lines.by_ref().find_map(number).unwrap();
    thread::sleep(delay);
    child.kill().unwrap();
    child.wait().unwrap();
    lines.filter_map(number).last().unwrap_or(known)
}

/// Checks that the tiers have these minutes, and possibly those, all whole.
fn check(directory: &Path, sure: &BTreeSet<u64>, possible: &BTreeSet<u64>) {
    let end = start_of(sure.last().unwrap() + 2);
    let found = stored(directory, Tier::Minute, MIDNIGHT, end);
    let mut expected = Tier::ALL.map(|_| Stored::new());
    for &number in sure.union(possible) {
        let start = start_of(number);
        let slices = slices_of(number);
        let has = |(name, _): &(SeriesName, SeriesCounts)| {
            found.contains_key(&(name.group.label.to_string(), name.method, start))
        };
        if sure.contains(&number) || slices.iter().any(has) {
            for (tier, sums) in Tier::ALL.into_iter().zip(&mut expected) {
                for (name, counts) in &slices {
                    let key = (name.group.label.to_string(), name.method, start - start % tier.step());
                    sums.entry(key).or_default().add(counts);
                }
            }
        }
    }
    for (tier, expected) in Tier::ALL.into_iter().zip(&expected) {
        assert!(stored(directory, tier, MIDNIGHT, end) == *expected, "{} differs", tier.name());
    }
}

#[test]
fn kills_lose_the_present_minute_at_most() {
    let directory = directory();
    let (mut sure, mut possible) = (BTreeSet::new(), BTreeSet::new());
    let (mut first, mut numbers) = (0, Numbers(13));
    let kills = env::var("PPING_TEST_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    for kill in 1..=kills {
        let delay = Duration::from_micros(numbers.below(8000));
        let last = write_and_kill(directory.path(), first, delay);
        sure.extend(first..=last);
        // It may have been written without being told.
        possible.insert(last + 1);
        first = last + 2;
        if kill % 100 == 0 {
            check(directory.path(), &sure, &possible);
        }
    }
    // What the last kill left behind is cleared away, and all is merged.
    let mut writer = forever(directory.path());
    writer.take(&minute(start_of(first) + 2 * DAY, &[]));
    check(directory.path(), &sure, &possible);
    let left = |tier: Tier| walk(&directory.path().join(tier.name()));
    let temporary = Tier::ALL
        .into_iter()
        .flat_map(left)
        .filter(|path| Path::new(path).extension().is_some_and(|it| it == "tmp"));
    assert_eq!(temporary.collect::<Vec<_>>(), [""; 0]);
    assert!(command_output(&["check"], directory.path()).ends_with("no file is damaged\n"));
}

fn walk(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let inner = |path: std::path::PathBuf| {
        if path.is_dir() { walk(&path) } else { vec![path.display().to_string()] }
    };
    entries.flat_map(inner).collect()
}

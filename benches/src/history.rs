//! Measures the history: what writing it costs, how large it is, and how long answers about months take.

use std::{
    fs::{self, File},
    os::fd::AsRawFd as _,
    path::Path,
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use pping::{
    config::{HistoryKeep, HistoryLimits},
    groups::SeriesName,
    history::{Archive, Asked, HistoryWriter, Settings},
    quality,
    recent::HistoryQuery,
};

use pping_common::{limits::SECOND, method::Method, series::SeriesCounts};

use crate::{
    agent::cpu_time,
    memory::Growth,
    networks::{slices, slices_of},
    report::Report,
};

/// The groups, each with a series of three methods.
const GROUPS: u32 = 1_000;

/// How many hours are written second by second.
const HOURS: u64 = 2;

/// How many days are written for the questions, a minute in each hour.
const DAYS: u64 = 60;

/// A midnight, s.
const MIDNIGHT: u64 = 1_795_651_200;

/// Measures all of it, in a directory below `target`.
pub(crate) fn measure(report: &mut Report) -> Result<()> {
    println!("\nthe history");
    let directory = Path::new("target/history-bench");
    for (groups, name) in [(GROUPS, "1,000"), (16_384, "16,384")] {
        fs::remove_dir_all(directory).ok();
        write_seconds(directory, groups, name, report)?;
    }
    fs::remove_dir_all(directory).ok();
    write_crowd(directory, report)?;
    fs::remove_dir_all(directory).ok();
    write_days(directory, report)?;
    ask(directory, report)?;
    fs::remove_dir_all(directory)?;
    Ok(())
}

/// The counts of three methods.
fn seconds(groups: u32, second: u64) -> Vec<(SeriesName, SeriesCounts)> {
    let methods = [Method::TcpTs, Method::TcpSeq, Method::IcmpEcho];
    let of = |(at, method): (u64, Method)| {
        let slices = slices(groups, 3 * second + at).into_iter();
        slices.map(move |(name, counts)| (SeriesName { method, ..name }, counts))
    };
    (0..).zip(methods).flat_map(of).collect()
}

fn writer(directory: &Path, start: u64) -> Result<HistoryWriter> {
    let keep = HistoryKeep([3, 60, 730].map(|days| Duration::from_secs(days * 24 * 3600)));
    let settings =
        Settings { directory: directory.to_owned(), limits: HistoryLimits { disk: 1 << 40, keep } };
    Ok(HistoryWriter::start(settings, quality::load(None)?, start * SECOND)?)
}

/// Ends a minute, and waits until the thread has nothing to do.
fn end_minute(writer: &mut HistoryWriter, end: u64, rows: u64) -> Result<()> {
    let state = writer.state();
    let before = state.rows.load(Ordering::Relaxed);
    writer.tick(end * SECOND);
    let state = writer.state();
    while state.rows.load(Ordering::Relaxed) < before + rows {
        ensure!(state.lost_rows.load(Ordering::Relaxed) == 0, "rows are lost");
        thread::sleep(Duration::from_micros(200));
    }
    Ok(())
}

fn write_seconds(directory: &Path, groups: u32, name: &str, report: &mut Report) -> Result<()> {
    let kinds: Vec<_> = (0..10).map(|second| seconds(groups, second)).collect();
    let growth = Growth::begin()?;
    let mut writer = writer(directory, MIDNIGHT)?;
    let began = cpu_time(std::process::id())?;
    for minute in 1..=HOURS * 60 {
        for second in 0..60 {
            writer.add(&kinds[(second % 10) as usize]);
        }
        end_minute(&mut writer, MIDNIGHT + 60 * minute, kinds[0].len() as u64)?;
    }
    writer.stop();
    let share =
        100.0 * cpu_time(std::process::id())?.saturating_sub(began).as_secs_f64() / (HOURS * 3600) as f64;
    report.print_one(&format!("{name} groups with 3 series: share of a core, %"), "%", share)?;
    report.print_one(&format!("{name} groups with 3 series: memory, MiB"), "MiB", growth.highest()?)
}

/// Writes a day of 100,000 groups, of which about 1,000 are there at a time, and the first hour of the next day, so that the day
/// is merged.
fn write_crowd(directory: &Path, report: &mut Report) -> Result<()> {
    const GROUPS: u32 = 100_000;
    const QUARTERS: u32 = 25 * 4;
    let mut measured = 0;
    let growth = Growth::begin()?;
    let mut writer = writer(directory, MIDNIGHT)?;
    for quarter in 0..QUARTERS {
        let first = quarter * (GROUPS / 96);
        let present = slices_of(first..first + GROUPS / 96, 1);
        for step in 1..=3 {
            writer.add(&present);
            let minute = u64::from(quarter) * 900 + 300 * step;
            end_minute(&mut writer, MIDNIGHT + minute, present.len() as u64)?;
            measured += present.iter().flat_map(|(_, counts)| counts.bins).map(u64::from).sum::<u64>();
        }
    }
    writer.stop();
    let memory = growth.highest()?;
    let query = HistoryQuery {
        from: Some(MIDNIGHT.to_string()),
        to: Some((MIDNIGHT + 2 * 24 * 3600).to_string()),
        step: Some("1h".to_owned()),
        ..HistoryQuery::default()
    };
    let asked = Asked::from_texts(&query).map_err(anyhow::Error::msg)?;
    let answer = Archive::new(directory.to_owned()).history(&asked)?;
    let kept: u64 =
        answer.series.iter().flat_map(|it| &it.cells).filter_map(|cell| Some(cell.rtt?.count)).sum();
    ensure!(kept == measured, "{kept} samples are kept of {measured}");
    report.print_one("100,000 groups in a day, 1,000 at a time: memory, MiB", "MiB", memory)
}

fn write_days(directory: &Path, report: &mut Report) -> Result<()> {
    let kinds: Vec<_> = (0..20).map(|second| seconds(GROUPS, second)).collect();
    let mut writer = writer(directory, MIDNIGHT)?;
    for hour in 0..DAYS * 24 {
        let first = hour % 17;
        for kind in &kinds[first as usize..][..3] {
            writer.add(kind);
        }
        end_minute(&mut writer, MIDNIGHT + 3600 * hour + 60, kinds[0].len() as u64)?;
        // The hour is over.
        end_minute(&mut writer, MIDNIGHT + 3600 * (hour + 1), 0)?;
    }
    writer.stop();
    // Of the finest tier only three days are left.
    for tier in ["5m", "1h"] {
        let files = files(&directory.join(tier))?;
        let bytes: u64 = files.iter().map(|path| fs::metadata(path).map_or(0, |it| it.len())).sum();
        let rows = (DAYS * 24 * kinds[0].len() as u64) as f64;
        report.print_one(&format!("intervals of {tier}: bytes a row"), "By", bytes as f64 / rows)?;
    }
    Ok(())
}

fn files(directory: &Path) -> Result<Vec<std::path::PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() { found.extend(files(&path)?) } else { found.push(path) }
    }
    Ok(found)
}

/// Makes the kernel forget what it has of files in memory.
fn forget(directory: &Path) -> Result<()> {
    for path in files(directory)? {
        let file = File::open(path)?;
        file.sync_all()?;
        // SAFETY: it takes a descriptor and numbers only.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    }
    Ok(())
}

fn ask(directory: &Path, report: &mut Report) -> Result<()> {
    let archive = Archive::new(directory.to_owned());
    let question = |group: Option<&str>, days: u64| {
        let query = HistoryQuery {
            from: Some(MIDNIGHT.to_string()),
            to: Some((MIDNIGHT + days * 24 * 3600).to_string()),
            group: group.map(ToOwned::to_owned),
            ..HistoryQuery::default()
        };
        Asked::from_texts(&query).map_err(anyhow::Error::msg)
    };
    let mut time = |name: &str, ask: &dyn Fn() -> Result<usize>| -> Result<()> {
        let mut times = Vec::new();
        for _ in 0..5 {
            forget(directory)?;
            let began = Instant::now();
            let answered = ask()?;
            times.push(began.elapsed().as_secs_f64() * 1e3);
            ensure!(answered > 0, "nothing was found");
        }
        times.sort_by(f64::total_cmp);
        report.print_one(name, "ms", times[2])
    };
    let one = question(Some("100.66.7.0/24"), DAYS)?;
    time(&format!("{DAYS} days of one group, ms"), &|| Ok(archive.history(&one)?.series.len()))?;
    let five = Asked { step: 300, ..question(Some("100.66.7.0/24"), DAYS)? };
    time(&format!("{DAYS} days of one group by 5 min, ms"), &|| Ok(archive.history(&five)?.series.len()))?;
    let all = question(None, DAYS)?;
    time(&format!("{DAYS} days of all groups, ms"), &|| Ok(archive.history(&all)?.series.len()))?;
    time(&format!("the worst of {DAYS} days, ms"), &|| Ok(archive.worst(&all, 20)?.0.len()))
}

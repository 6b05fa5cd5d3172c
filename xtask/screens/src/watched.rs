//! `cargo xtask watched`: keeps `pping top`, the page and a stream of events open for hours, and checks memory and
//! delays.

use std::{
    fs,
    path::Path,
    process::Command,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use pping_lab::{Namespace, Seconds};

use super::{ADDRESS, Scene, browser::Browser, play, terminal::Terminal};

/// Columns and rows of the terminal.
const SIZE: (u16, u16) = (160, 45);

/// The interval between two readings of memory.
const INTERVAL: Duration = Duration::from_secs(20);

/// By what factor pping's memory may grow from the first third to the last. A browser collects garbage when it likes.
const LEEWAY: f64 = 1.05;
const LEEWAY_OF_BROWSER: f64 = 1.15;

/// From this delay on a second counts as late, ms. Below it the rings have ample room, and a screen shows a second before
/// the next one ends.
const LATE: u64 = 500;

/// Memory at one time, KiB.
#[derive(Clone, Copy)]
struct Reading {
    minute: u64,
    agent: u64,
    top: u64,
    browser: u64,
}

/// Keeps everything open that shows what `pping` measures. Fails if memory grew, a second was late, or records were
/// lost.
pub(super) fn watch(pping: &Path, length: Duration) -> Result<()> {
    play(pping, |scene| {
        let top = Terminal::start(scene.router, SIZE, &format!("{} top", scene.pping.display()))?;
        let browser = Browser::start(scene.router)?;
        browser.open(&format!("http://{ADDRESS}/"))?;
        let (seconds, is_over) = (Mutex::new(Seconds::default()), AtomicBool::new(false));
        let readings = thread::scope(|scope| {
            let heard =
                scope.spawn(|| Seconds::listen(&seconds, scene.router, ADDRESS, || is_over.load(Relaxed)));
            let readings = read_memory(scene, length, &top, &browser);
            is_over.store(true, Relaxed);
            heard.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            readings
        })?;
        let seconds = seconds.into_inner().unwrap_or_else(PoisonError::into_inner);
        let lost = lost(scene.router)?;
        report(&readings, &seconds, lost);
        judge(&readings, &seconds, lost)?;
        ensure_current(&top, &browser)
    })
}

/// Reads memory again and again until the time is over.
fn read_memory(
    scene: &Scene<'_>,
    length: Duration,
    top: &Terminal,
    browser: &Browser<'_>,
) -> Result<Vec<Reading>> {
    let start = Instant::now();
    let top = top.id()?;
    let mut readings = Vec::new();
    while start.elapsed() < length {
        ensure!(scene.rest(INTERVAL), "interrupted");
        let minute = start.elapsed().as_secs() / 60;
        let reading = Reading {
            minute,
            agent: resident(scene.agent)?,
            top: resident(top)?,
            browser: descendants(browser.id())?.into_iter().map(proportional).sum(),
        };
        if readings.last().is_none_or(|last: &Reading| last.minute / 10 != minute / 10) {
            eprintln!("{}", reading.row());
        }
        readings.push(reading);
    }
    Ok(readings)
}

impl Reading {
    fn row(&self) -> String {
        let Self { minute, agent, top, browser } = self;
        format!("| {minute} | {agent} | {top} | {browser} |")
    }
}

fn report(readings: &[Reading], seconds: &Seconds, lost: u64) {
    eprintln!("| minute | agent, KiB | `pping top`, KiB | Chromium, KiB |\n| ---: | ---: | ---: | ---: |");
    // The first of each ten minutes, and the last of all.
    for (index, reading) in readings.iter().enumerate() {
        let is_first = index > 0 && readings[index - 1].minute / 10 != reading.minute / 10;
        if is_first || index + 1 == readings.len() {
            eprintln!("{}", reading.row());
        }
    }
    eprintln!(
        "{} seconds were over {} ms after the full second by the median, {} ms by the 99th percentile, {} ms at most; \
         {} without an event; {lost} records lost",
        seconds.count(),
        seconds.quantile(0.5),
        seconds.quantile(0.99),
        seconds.quantile(1.0),
        seconds.gaps(),
    );
}

fn judge(readings: &[Reading], seconds: &Seconds, lost: u64) -> Result<()> {
    for (name, leeway, of) in [
        ("the agent", LEEWAY, (|reading| reading.agent) as fn(&Reading) -> u64),
        ("pping top", LEEWAY, |reading| reading.top),
        ("Chromium", LEEWAY_OF_BROWSER, |reading| reading.browser),
    ] {
        let most = |readings: &[Reading]| readings.iter().map(of).max().unwrap_or(0);
        let third = readings.len() / 3;
        let (first, last) =
            (most(&readings[..readings.len() - 2 * third]), most(&readings[readings.len() - third..]));
        ensure!(last as f64 <= first as f64 * leeway, "{name} grew from {first} to {last} KiB");
    }
    ensure!(seconds.quantile(1.0) < LATE, "a second was over {} ms late", seconds.quantile(1.0));
    ensure!(lost == 0, "{lost} records were lost");
    Ok(())
}

/// Fails unless both screens show the present: the terminal's changes, and the page has a connection to pping.
fn ensure_current(top: &Terminal, browser: &Browser<'_>) -> Result<()> {
    let before = top.text()?;
    thread::sleep(Duration::from_secs(3));
    ensure!(before != top.text()?, "the screen of pping top stands still:\n{before}");
    let state = browser.script("return document.getElementById('state').textContent")?;
    ensure!(state == "live", "the page is {state}");
    Ok(())
}

fn lost(router: &Namespace) -> Result<u64> {
    let mut curl = router.command("curl");
    let page = pping_lab::run(curl.args(["-s", &format!("http://{ADDRESS}/metrics")]))?;
    let lost = page.lines().filter(|line| line.starts_with("pping_events_lost_total"));
    Ok(lost.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum::<f64>() as u64)
}

/// Returns the resident memory of a process, KiB.
fn resident(process: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).context("a process ended")?;
    kibibytes(&status, "VmRSS:").context("a process without memory")
}

/// Returns the memory of a process, KiB, with its share of the pages that it has in common with others; 0 if it has
/// ended.
fn proportional(process: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    kibibytes(&rollup, "Pss:").unwrap_or(0)
}

fn kibibytes(text: &str, field: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(field))?.split_whitespace().next()?.parse().ok()
}

/// Returns the children of a process, their children, and so on.
fn descendants(of: u32) -> Result<Vec<u32>> {
    let listed = pping_lab::run(Command::new("ps").args(["-e", "-o", "pid=,ppid="]))?;
    let pairs: Vec<(u32, u32)> = listed
        .lines()
        .filter_map(|line| {
            let (process, parent) = line.trim().split_once(char::is_whitespace)?;
            Some((process.parse().ok()?, parent.trim().parse().ok()?))
        })
        .collect();
    let mut found = vec![of];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(pairs.iter().filter(|(_, of)| *of == parent).map(|(process, _)| *process));
        next += 1;
    }
    found.remove(0);
    Ok(found)
}

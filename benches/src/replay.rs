//! How fast captures are read, compared with tshark on the same file.

use std::{
    fs, io,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};

use crate::{capture, measure::Figure, report::Report, watcher};

/// Runs of pping, of which the median is reported. The first one only brings the file into the page cache.
const RUNS: usize = 7;

/// How often a program's memory is read.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// The cost of a run.
struct Run {
    seconds: f64,
    /// Its peak memory, in bytes.
    peak_memory: u64,
}

/// Measures `pping -r` on a capture of `packets`, then tshark on the same file.
pub(crate) fn measure(packets: u32, report: &mut Report) -> Result<()> {
    let file = std::env::temp_dir().join(format!("pping-bench-{}.pcap", std::process::id()));
    capture::write(&file, packets).with_context(|| format!("writing {}", file.display()))?;
    let result = compare(&file, packets, report);
    fs::remove_file(&file).ok();
    result
}

fn compare(file: &Path, packets: u32, report: &mut Report) -> Result<()> {
    let program = watcher::pping()?;
    println!("\na capture of {packets} TCP segments with timestamps, of {} connections", capture::FLOWS);
    let mut print = |name: &str, runs: &[Run]| -> Result<f64> {
        let rate = Figure::of(runs.iter().map(|run| f64::from(packets) / run.seconds / 1e6))?;
        let memory = Figure::of(runs.iter().map(|run| run.peak_memory as f64 / 1e6))?;
        println!("{name:<44} {:>7.3} million packets/s, {:>5.0} MB", rate.median, memory.max);
        report.take(format!("{name}: speed"), "million packets/s", &rate);
        report.take(format!("{name}: memory, the most"), "MB", &memory);
        Ok(rate.median)
    };
    let mut fastest: Option<f64> = None;
    for (name, limit, format) in [
        ("pping -r, default rate limit, no records", "100ms", "none"),
        ("pping -r, every sample, no records", "0", "none"),
        ("pping -r, every sample, as JSON lines", "0", "jsonl"),
    ] {
        let mut command = Command::new(&program);
        command.arg("-r").arg(file).args(["--rate-limit", limit, "--format", format]);
        let runs = (0..RUNS).map(|_| run(&mut command)).collect::<Result<Vec<_>>>()?.split_off(1);
        let rate = print(name, &runs)?;
        fastest = fastest.or(Some(rate));
    }

    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(file).args(["-T", "fields", "-e", "tcp.analysis.ack_rtt"]);
    let its = run(&mut tshark).context("tshark, which `cargo xtask setup --tests` installs")?;
    let ratio = fastest.context("no runs")? / print("tshark -T fields -e tcp.analysis.ack_rtt", &[its])?;
    println!("\npping measures a capture {ratio:.0} x as fast as tshark (20 x is asked for).");
    report.take_one("pping -r, as fast as tshark", "x", ratio)
}

/// Runs a program to its end.
fn run(command: &mut Command) -> Result<Run> {
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let mut peak_memory = 0;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        // It fails once the program has ended.
        peak_memory = peak_of(child.id()).unwrap_or(peak_memory);
        thread::sleep(LOOK_INTERVAL);
    };
    ensure!(status.success(), "{command:?}: {status}");
    Ok(Run { seconds: start.elapsed().as_secs_f64(), peak_memory })
}

fn peak_of(pid: u32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.map(|kilobytes| kilobytes << 10).ok_or_else(|| io::ErrorKind::NotFound.into())
}

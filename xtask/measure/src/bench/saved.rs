//! Saved measurements.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use pping_chores::{command, environment};

/// Where runs are kept, in one directory per day and machine: the tables as printed, and the figures of each round.
const RUNS: &str = "benches/runs";

/// Runs the benchmarks, and keeps the tables that they print and the figures behind them.
#[expect(clippy::print_stdout, reason = "the tables are what was asked for")]
pub(super) fn run(mut bench: Command) -> Result<()> {
    let figures = environment::target_directory().join("figures.json");
    bench.arg("--json").arg(&figures).stdout(Stdio::piped());
    command::announce(&bench);
    let mut child = bench.spawn().context("could not start the benchmarks")?;
    let mut tables = String::new();
    for line in BufReader::new(child.stdout.take().context("nothing to read from")?).lines() {
        let line = line?;
        println!("{line}");
        tables += &line;
        tables += "\n";
    }
    let status = child.wait()?;
    ensure!(status.success(), "the benchmarks failed: {status}");
    let machine = tables.lines().next().unwrap_or_default();
    let directory = directory(&today()?, machine);
    fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    let run = next_suffix(&directory);
    let kept = directory.join(format!("tables{run}.txt"));
    fs::write(&kept, &tables)?;
    fs::copy(&figures, directory.join(format!("figures{run}.json"))).context("keeping the figures")?;
    eprintln!("kept in {}, and the figures beside it", kept.display());
    Ok(())
}

/// Returns the suffix that tells the next run in a directory from earlier ones: empty, `-2`, `-3`...
fn next_suffix(directory: &Path) -> String {
    let mut run = String::new();
    let mut number = 1;
    while directory.join(format!("tables{run}.txt")).exists() {
        number += 1;
        run = format!("-{number}");
    }
    run
}

fn today() -> Result<String> {
    let date = Command::new("date").args(["--utc", "+%F"]).output().context("could not start date")?;
    Ok(String::from_utf8_lossy(&date.stdout).trim().to_owned())
}

fn directory(date: &str, machine: &str) -> PathBuf {
    environment::repository().join(RUNS).join(format!("{date}-{}", machine_slug(machine)))
}

/// Shortens a machine's description for a file name: `AMD EPYC 7B13, 2 cores, Linux 6.18` becomes
/// `amd-epyc-7b13-2-cores`.
fn machine_slug(machine: &str) -> String {
    let (hardware, _) = machine.split_once(", Linux").unwrap_or((machine, ""));
    let words =
        hardware.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::{machine_slug, next_suffix};

    #[test]
    fn a_machine_makes_a_name_of_a_file() {
        assert_eq!(machine_slug("AMD EPYC 7B13, 2 cores, Linux 6.18.44"), "amd-epyc-7b13-2-cores");
        assert_eq!(
            machine_slug("Intel(R) Xeon(R) CPU @ 2.20GHz, 1 cores, Linux 5.10"),
            "intel-r-xeon-r-cpu-2-20ghz-1-cores"
        );
        assert_eq!(machine_slug(""), "");
    }

    #[test]
    fn no_run_replaces_another_that_lives() {
        let directory = tempfile::tempdir().unwrap();
        for expected in ["", "-2", "-3"] {
            let run = next_suffix(directory.path());
            assert_eq!(run, expected);
            std::fs::write(directory.path().join(format!("tables{run}.txt")), "").unwrap();
        }
    }
}

//! Counts instructions with valgrind's callgrind.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use pping_chores::command;
use tempfile::TempDir;

/// The function whose instructions are counted. Each call is counted separately.
const FUNCTION: &str = "pping_once_each::pping_counted";

/// Runs a program that prints how often it does each case, and then the names of the cases. Returns the instructions of
/// each case.
pub(super) fn count(program: &Path) -> Result<Vec<(String, u64)>> {
    let directory = TempDir::new()?;
    let dumps = directory.path().join("dump");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--tool=callgrind"]);
    valgrind.arg(format!("--callgrind-out-file={}", dumps.display()));
    valgrind.args(["--toggle-collect", "--dump-after"].map(|option| format!("{option}={FUNCTION}")));
    let printed = command::output(valgrind.arg(program))?;
    let mut lines = printed.lines();
    let times = lines.next().and_then(|line| line.parse().ok()).filter(|times| *times > 0);
    let times: u64 = times.context("the program does not print how often it does each thing")?;
    let named = lines.zip(1..).map(|(name, number)| {
        let dump = dumps.with_extension(number.to_string());
        let dump = fs::read_to_string(&dump).with_context(|| {
            format!("callgrind has counted nothing for `{name}`: is {FUNCTION} still a function of its own?")
        })?;
        let total = total(&dump).with_context(|| format!("callgrind gives no total for `{name}`"))?;
        ensure!(total >= times, "`{name}` took {total} instructions for {times} times: nothing was done");
        Ok((name.to_owned(), (total + times / 2) / times))
    });
    named.collect()
}

/// Returns the total of a dump.
fn total(dump: &str) -> Option<u64> {
    dump.lines().find_map(|line| line.strip_prefix("totals: "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_has_a_total() {
        let dump = "# callgrind format\nevents: Ir\nsummary: 94010\n\nfn=(1) it\n5 94010\n\ntotals: 94010\n";
        assert_eq!(total(dump), Some(94_010));
        assert_eq!(total("events: Ir\n"), None);
    }
}

//! When all checks of a release last passed, and on which commit.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use anyhow::{Context as _, Result, bail};

use crate::{command, environment};

/// Has the day, the commit, and how long the checks took.
pub const FILE: &str = "xtask/everything.txt";

/// Notes that all checks have passed on a commit.
pub fn note(commit: &str, took: Duration) -> Result<()> {
    let note = format!("{} {commit} {} min\n", git(&["log", "-1", "--format=%cs"])?, took.as_secs() / 60);
    fs::write(file(), note).with_context(|| format!("cannot write {FILE}"))
}

/// Says when all checks last passed, to decide on a release.
pub fn last_passed() -> String {
    let Ok(note) = fs::read_to_string(file()) else {
        return "`cargo xtask everything` has not passed yet: do not release this".to_owned();
    };
    let commit = note.split(' ').nth(1).unwrap_or_default();
    match git(&["rev-list", "--count", &format!("{commit}..HEAD")]) {
        Ok(count) => format!("`cargo xtask everything` last passed {count} commits ago: {}", note.trim_end()),
        Err(_) => {
            format!("`cargo xtask everything` last passed on an unknown commit: {}", note.trim_end())
        }
    }
}

fn file() -> PathBuf {
    environment::repository().join(FILE)
}

/// Returns the commit that is checked out. Fails if anything is not committed, since the result would not be that of
/// the commit.
pub fn clean_commit() -> Result<String> {
    if !git(&["status", "--porcelain"])?.is_empty() {
        bail!("there are uncommitted changes; commit them first, because the result is that of a commit");
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Result<String> {
    let mut git = Command::new("git");
    git.args(arguments).current_dir(environment::repository());
    Ok(command::output(&mut git)?.trim().to_owned())
}

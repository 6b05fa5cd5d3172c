//! Checks that others can make the same files from the same commit.

use std::{
    collections::BTreeMap,
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};

use super::{Release, clear, release::CHECKSUMS};
use crate::{command, environment};

/// Makes the release again, from a clone in another folder and with another home of cargo, and compares the checksums.
///
/// The clone has nothing compiled yet, so the comparison also shows that nothing older is in the release.
pub(super) fn again(release: &Release) -> Result<()> {
    let directory = environment::target_directory().join("reproduce");
    clear(&directory)?;
    let clone = directory.join("elsewhere");
    let mut git = Command::new("git");
    command::run(git.args(["clone", "--quiet"]).arg(environment::repository()).arg(&clone))?;
    let mut git = Command::new("git");
    git.args(["checkout", "--quiet", "--detach", &release.revision]).current_dir(&clone);
    command::run(&mut git)?;
    // Its crates have other folders, and need not be fetched again.
    let home = directory.join("home");
    symlink(cargo_home().context("cargo has no home")?, &home)?;
    let mut cargo = environment::without_package(Command::new("cargo"));
    cargo.args(["xtask", "dist"]).current_dir(&clone);
    command::run(cargo.env("CARGO_HOME", &home).env_remove("CARGO_TARGET_DIR"))?;

    let made_again = clone.join("target/dist");
    let (first, second) = (checksums(&release.directory)?, checksums(&made_again)?);
    ensure!(!first.is_empty(), "there are no checksums in {}", release.directory.display());
    let names = first.keys().chain(second.keys().filter(|name| !first.contains_key(*name)));
    let different: Vec<_> = names.filter(|name| first.get(*name) != second.get(*name)).cloned().collect();
    if !different.is_empty() {
        let (first, second) = (release.directory.display(), made_again.display());
        bail!("{first} and {second} are of the same commit, and differ in {}", different.join(", "));
    }
    eprintln!("a clone of {} makes the same {} files", release.revision, first.len());
    clear(&directory)
}

/// Returns the checksum of each file of a release.
fn checksums(directory: &Path) -> Result<BTreeMap<String, String>> {
    let sums = fs::read_to_string(directory.join(CHECKSUMS))?;
    let lines = sums.lines().filter_map(|line| line.split_once("  "));
    Ok(lines.map(|(sum, name)| (name.to_owned(), sum.to_owned())).collect())
}

fn cargo_home() -> Option<PathBuf> {
    let given = env::var_os("CARGO_HOME").map(PathBuf::from);
    given.or_else(|| Some(env::home_dir()?.join(".cargo")))
}

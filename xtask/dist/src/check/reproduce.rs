//! Checks that others can make the same files from the same commit.

use std::{
    collections::BTreeSet,
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use pping_chores::environment;

use super::checkout::Checkout;
use crate::{Release, clear, release::CHECKSUMS};

/// Makes the release again, from a clone in another folder and with another home of cargo, and compares the checksums.
///
/// The clone has nothing compiled yet, so the comparison also shows that nothing older is in the release.
pub(crate) fn again(release: &Release) -> Result<()> {
    let directory = environment::target_directory().join("reproduce");
    clear(&directory)?;
    let checkout = Checkout::at(&directory.join("elsewhere"), &release.revision)?;
    // Its crates have other folders, and need not be fetched again.
    let home = directory.join("home");
    symlink(cargo_home().context("cargo has no home")?, &home)?;
    checkout.make_release(Some(&home))?;

    let made_again = checkout.release();
    let (first, second) = (checksums(&release.directory)?, checksums(&made_again)?);
    let different = differences(&first, &second);
    if !different.is_empty() {
        let (first, second) = (release.directory.display(), made_again.display());
        bail!("{first} and {second} are of the same commit, and differ in {}", different.join(", "));
    }
    eprintln!("a clone of {} makes the same {} files", release.revision, first.lines().count());
    clear(&directory)
}

/// Returns the checksums of a release's files.
fn checksums(directory: &Path) -> Result<String> {
    let path = directory.join(CHECKSUMS);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// Returns the names of files that are in one release only, or differ.
fn differences<'a>(first: &'a str, second: &'a str) -> Vec<&'a str> {
    let only = |these: &'a str, those: &str| {
        let those: BTreeSet<_> = those.lines().collect();
        these.lines().filter(|line| !those.contains(line)).collect::<Vec<_>>()
    };
    let lines = [only(first, second), only(second, first)].concat();
    let names: BTreeSet<_> = lines.iter().filter_map(|line| Some(line.split_once("  ")?.1)).collect();
    names.into_iter().collect()
}

fn cargo_home() -> Option<PathBuf> {
    let given = env::var_os("CARGO_HOME").map(PathBuf::from);
    given.or_else(|| Some(env::home_dir()?.join(".cargo")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_differ_or_are_missing_are_named() {
        let first = "11  a.deb\n22  b.tar.gz\n33  c.json\n";
        assert_eq!(differences(first, first), Vec::<&str>::new());
        assert_eq!(
            differences(first, "11  a.deb\n29  b.tar.gz\n44  d.json\n"),
            ["b.tar.gz", "c.json", "d.json"]
        );
    }
}

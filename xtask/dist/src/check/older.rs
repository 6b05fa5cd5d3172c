//! The last release, made again from its commit, to upgrade from.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};
use pping_chores::{arch::Arch, command, environment};

use super::checkout::Checkout;

/// The directory of the repository with what releases pin, one file each.
const RELEASES: &str = "pping/tests/releases";

/// What an upgrade does with the maps that the older version pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Maps {
    /// The newer version goes on counting in them.
    Kept,
    /// Their layout is another: the newer version makes new ones, and counters start again from zero.
    Replaced,
}

/// What such a file says of the release.
#[derive(serde::Deserialize)]
struct Release {
    /// The commit, which the file of a version that is not released yet does not have.
    commit: Option<String>,
    /// The layout of all pinned maps.
    layout: String,
}

/// Fails if the commit of the last release is not here.
pub(super) fn ensure_here() -> Result<()> {
    let (version, commit, _) = last(read()?)?;
    let mut git = Command::new("git");
    git.args(["rev-parse", "--quiet", "--verify", &format!("{commit}^{{commit}}")]);
    ensure!(
        command::succeeds(git.current_dir(environment::repository())),
        "the commit {commit} of the release {version} is not here: fetch it, since the check upgrades from there"
    );
    Ok(())
}

/// Returns the Debian package of the last release, and what this version does with the maps that it pins. The package is
/// made by the release's own `cargo xtask dist`, once.
pub(super) fn debian() -> Result<(PathBuf, Maps)> {
    let (version, commit, maps) = last(read()?)?;
    let directory = environment::target_directory().join("dist-check/releases").join(&version);
    let checkout =
        Checkout::at(&directory, &commit).with_context(|| format!("cloning the release {version}"))?;
    if !checkout.has_release() {
        checkout.make_release(None)?;
    }
    let files = checkout.release();
    let end = format!("_{}.deb", Arch::of_host()?.debian());
    let mut made = fs::read_dir(&files)?.filter_map(|entry| Some(entry.ok()?.path()));
    let package = made
        .find(|file| file.to_string_lossy().ends_with(&end))
        .with_context(|| format!("there is no package of {version} in {}", files.display()))?;
    Ok((package, maps))
}

/// The numbers of a version, the version, and what its file says.
type Numbered = (Vec<u32>, String, Release);

/// Reads the files of all versions.
fn read() -> Result<Vec<Numbered>> {
    let mut releases = Vec::new();
    for entry in fs::read_dir(environment::repository().join(RELEASES))? {
        let file = entry?.path();
        let version = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let release: Release = toml::from_str(&fs::read_to_string(&file)?)
            .with_context(|| format!("reading {}", file.display()))?;
        let numbers: Result<Vec<u32>, _> = version.split('.').map(str::parse).collect();
        let numbers = numbers.with_context(|| format!("{} is not named by a version", file.display()))?;
        releases.push((numbers, version, release));
    }
    Ok(releases)
}

/// Returns version and commit of the last release, and whether the newest file, which is about this version, has the
/// same layout.
fn last(mut releases: Vec<Numbered>) -> Result<(String, String, Maps)> {
    releases.sort_by(|(one, ..), (other, ..)| other.cmp(one));
    let layout = releases.first().map(|(.., release)| release.layout.clone());
    let last = releases
        .into_iter()
        .find_map(|(_, version, release)| Some((version, release.commit?, release.layout)));
    let (version, commit, released) =
        last.with_context(|| format!("no file in {RELEASES} names a commit"))?;
    let maps = if layout.as_ref() == Some(&released) { Maps::Kept } else { Maps::Replaced };
    Ok((version, commit, maps))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(numbers: [u32; 3], commit: Option<&str>, layout: &str) -> Numbered {
        let version = numbers.map(|number| number.to_string()).join(".");
        let release = Release { commit: commit.map(ToOwned::to_owned), layout: layout.to_owned() };
        (numbers.to_vec(), version, release)
    }

    #[test]
    fn a_version_without_a_commit_is_not_released() {
        let old = || release([0, 9, 0], Some("aa"), "1");
        let last_of = |releases| last(releases).unwrap();
        let named = |maps| ("0.9.0".to_owned(), "aa".to_owned(), maps);
        assert_eq!(last_of(vec![old()]), named(Maps::Kept));
        assert_eq!(last_of(vec![release([0, 10, 0], None, "1"), old()]), named(Maps::Kept));
        assert_eq!(last_of(vec![old(), release([0, 10, 0], None, "2")]), named(Maps::Replaced));
        let newer = release([0, 10, 0], Some("bb"), "2");
        assert_eq!(last_of(vec![old(), newer]), ("0.10.0".to_owned(), "bb".to_owned(), Maps::Kept));
        assert!(last(vec![release([0, 10, 0], None, "2")]).is_err());
        assert!(last(read().unwrap()).is_ok());
    }
}

//! The last release, made again from its commit, to upgrade from.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};

use super::checkout::Checkout;
use crate::{arch::Arch, environment};

/// The directory of the repository with what releases pin, one file each.
const RELEASES: &str = "pping/tests/releases";

/// What such a file says of the release.
#[derive(serde::Deserialize)]
struct Release {
    /// The commit, which the file of a version that is not released yet does not have.
    commit: Option<String>,
}

/// Returns the Debian package of the last release. It is made by the release's own `cargo xtask dist`, once.
pub(super) fn debian() -> Result<PathBuf> {
    let (version, commit) = last()?;
    let directory = environment::target_directory().join("dist-check/releases").join(&version);
    let checkout =
        Checkout::at(&directory, &commit).with_context(|| format!("cloning the release {version}"))?;
    if !checkout.has_release() {
        checkout.make_release(None)?;
    }
    let files = checkout.release();
    let end = format!("_{}.deb", Arch::of_host()?.debian());
    let mut made = fs::read_dir(&files)?.filter_map(|entry| Some(entry.ok()?.path()));
    made.find(|file| file.to_string_lossy().ends_with(&end))
        .with_context(|| format!("there is no package of {version} in {}", files.display()))
}

/// Returns version and commit of the last release.
fn last() -> Result<(String, String)> {
    let mut releases = Vec::new();
    for entry in fs::read_dir(environment::repository().join(RELEASES))? {
        let file = entry?.path();
        let version = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let release: Release = toml::from_str(&fs::read_to_string(&file)?)
            .with_context(|| format!("reading {}", file.display()))?;
        let numbers: Result<Vec<u32>, _> = version.split('.').map(str::parse).collect();
        let numbers = numbers.with_context(|| format!("{} is not named by a version", file.display()))?;
        releases.extend(release.commit.map(|commit| (numbers, version, commit)));
    }
    let newest =
        releases.into_iter().max().with_context(|| format!("no file in {RELEASES} names a commit"))?;
    Ok((newest.1, newest.2))
}

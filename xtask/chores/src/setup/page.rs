//! Files of the page of `--listen` that come from npm: uPlot, which draws its lines, and axe-core, with which a test
//! judges it.
//!
//! pping builds without them as well. So a plain build only says what is missing, and goes on.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use super::Missing;
use crate::{command, environment};

/// The files that tell npm what to fetch, with the checksums of everything.
const DESCRIPTION: [&str; 2] = ["package.json", LOCK];
const LOCK: &str = "package-lock.json";

/// The files that are taken from the packages, and their names in the build.
const FILES: [(&str, &str); 4] = [
    ("uplot/dist/uPlot.iife.min.js", "uPlot.iife.min.js"),
    ("uplot/dist/uPlot.min.css", "uPlot.min.css"),
    ("uplot/LICENSE", "LICENSE-uPlot"),
    ("axe-core/axe.min.js", "axe.min.js"),
];

const NPM: Missing = Missing {
    what: "npm, which fetches uPlot for the page",
    packages: &["npm"],
    elsewhere: "the package your distribution has it in, or Node.js's own",
};

/// Npm, if it has something to fetch and is not here.
pub(super) fn missing() -> Vec<Missing> {
    if is_complete() || has_npm() { Vec::new() } else { vec![NPM] }
}

/// Fetches the files, unless they are there already.
pub(super) fn complete() -> Result<()> {
    if is_complete() {
        return Ok(());
    }
    let work = environment::target_directory().join("page");
    fs::create_dir_all(&work)?;
    for file in DESCRIPTION {
        fs::copy(folder().join(file), work.join(file)).with_context(|| format!("copying {file}"))?;
    }
    let install = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
    command::run(Command::new("npm").args(install).current_dir(&work).stdout(io::stderr()))?;
    for (from, to) in FILES {
        fs::copy(work.join("node_modules").join(from), vendor().join(to))
            .with_context(|| format!("npm brought no {from}"))?;
    }
    // Last, because it tells that everything else is there.
    fs::copy(folder().join(LOCK), vendor().join(LOCK))?;
    ensure!(is_complete(), "{} lacks something of the page", vendor().display());
    Ok(())
}

/// Fetches the files if possible. Otherwise only says what is missing.
pub(super) fn complete_if_possible() {
    if is_complete() {
        return;
    }
    let fetched = if has_npm() {
        complete().map_err(|error| format!("{error:#}"))
    } else {
        Err("there is no npm".to_owned())
    };
    if let Err(reason) = fetched {
        eprintln!(
            "the page of --listen will have no lines, because uPlot is missing: {reason}; `cargo xtask \
             setup` installs what is missing"
        );
    }
}

/// Returns a line about the files, if they are there.
pub(super) fn found() -> Vec<String> {
    is_complete().then(|| format!("uPlot for the page: {}", vendor().display())).into_iter().collect()
}

fn folder() -> PathBuf {
    environment::repository().join("pping/page")
}

fn vendor() -> PathBuf {
    folder().join("vendor")
}

fn has_npm() -> bool {
    environment::find_program("npm").is_some()
}

/// Whether all files are there, in the versions of the present lock file.
fn is_complete() -> bool {
    let read = |file: &Path| fs::read(file).ok();
    FILES.iter().all(|(_, file)| vendor().join(file).is_file())
        && read(&folder().join(LOCK)).is_some_and(|lock| read(&vendor().join(LOCK)) == Some(lock))
}

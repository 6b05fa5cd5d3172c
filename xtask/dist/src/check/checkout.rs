//! A commit in a clone of the repository, where it makes a release by itself.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use pping_chores::{command, environment};

use crate::{clear, release::CHECKSUMS};

pub(super) struct Checkout {
    directory: PathBuf,
}

impl Checkout {
    /// Returns the clone in a directory, at a commit. A clone that is there stays if it is at that commit.
    pub(super) fn at(directory: &Path, commit: &str) -> Result<Self> {
        let checkout = Self { directory: directory.to_owned() };
        if !checkout.is_at(commit) {
            clear(directory)?;
            let mut git = Command::new("git");
            command::run(git.args(["clone", "--quiet"]).arg(environment::repository()).arg(directory))?;
            let mut git = checkout.git(&["checkout", "--quiet", "--detach", commit]);
            command::run(&mut git).with_context(|| format!("the commit {commit} is not here: fetch it"))?;
        }
        Ok(checkout)
    }

    /// Whether a release is there. The checksums are written last.
    pub(super) fn has_release(&self) -> bool {
        self.release().join(CHECKSUMS).exists()
    }

    /// Makes the release with the clone's own `cargo xtask dist`, and with another home of cargo if one is given.
    pub(super) fn make_release(&self, home: Option<&Path>) -> Result<()> {
        let mut cargo = environment::without_package(Command::new("cargo"));
        cargo.args(["xtask", "dist"]).current_dir(&self.directory).env_remove("CARGO_TARGET_DIR");
        if let Some(home) = home {
            cargo.env("CARGO_HOME", home);
        }
        command::run(cargo.stdout(std::io::stderr()))
    }

    /// The directory of the release.
    pub(super) fn release(&self) -> PathBuf {
        self.directory.join("target/dist")
    }

    fn is_at(&self, commit: &str) -> bool {
        self.directory.is_dir()
            && pping_lab::run(&mut self.git(&["rev-parse", "HEAD"])).is_ok_and(|head| head.trim() == commit)
    }

    fn git(&self, arguments: &[&str]) -> Command {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(&self.directory);
        git
    }
}

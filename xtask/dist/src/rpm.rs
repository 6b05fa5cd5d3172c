//! The RPM packages. `pping/Cargo.toml` says what is in them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;
use pping_chores::{command, environment};

use super::{Release, build::Build, clear, copy_into};

/// What `pping/Cargo.toml` takes from the repository.
const SOURCES: [&str; 10] = [
    "Cargo.toml",
    "pping/Cargo.toml",
    "CHANGELOG.md",
    "README.md",
    "LICENSE-APACHE",
    "LICENSE-GPL-2.0",
    "LICENSE-MIT",
    "pping/page/vendor/LICENSE-uPlot",
    "deploy",
    "docs",
];

/// The RPM package of one architecture. Its program is static, so that it depends on no distribution's libraries.
pub(super) struct Rpm<'a> {
    pub(super) build: &'a Build,
    pub(super) release: &'a Release,
}

impl Rpm<'_> {
    /// Makes the package in a directory, and returns its path. `number` tells packages of the same version apart.
    pub(super) fn make(&self, directory: &Path, number: u32) -> Result<PathBuf> {
        let (arch, version) = (self.build.arch.name(), &self.release.version);
        let package = directory.join(format!("pping-{version}-{number}.{arch}.rpm"));
        let mut cargo = self.release.cargo();
        cargo.current_dir(self.collect()?);
        cargo.args(["generate-rpm", "--package", "pping", "--target-dir", "target", "--arch", arch]);
        // zstd's result would depend on the number of its threads.
        cargo.args(["--payload-compress", "gzip", "--set-metadata", &format!("release = \"{number}\"")]);
        command::run(cargo.arg("--output").arg(&package))?;
        Ok(package)
    }

    /// Copies all files into a directory, with their paths from the root of the repository, and returns it. Packaged
    /// files have the time of the commit if they are newer, as copies are, and otherwise their own, which differs from
    /// one checkout to another.
    fn collect(&self) -> Result<PathBuf> {
        let directory = environment::target_directory().join("rpm").join(self.build.arch.name());
        clear(&directory)?;
        fs::create_dir_all(&directory)?;
        let mut copy = Command::new("cp");
        copy.args(["--recursive", "--parents"]).args(SOURCES).arg(&directory);
        command::run(copy.current_dir(environment::repository()))?;
        let release = directory.join("target/release");
        copy_into(&release, [self.build.program.clone()])?;
        copy_into(&release.join("package"), self.build.files())?;
        Ok(directory)
    }
}

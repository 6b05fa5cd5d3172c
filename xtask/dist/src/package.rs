//! The Debian packages. `pping/Cargo.toml` says what is in them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Result, ensure};
use pping_chores::{arch::Arch, command};

use super::{
    Release,
    build::{self, Build},
};

/// The package's own changelog, which tells packages of the same version apart.
const CHANGES: &str = "changelog.Debian";

/// The Debian package of one architecture.
pub(super) struct Package<'a> {
    pub(super) arch: Arch,
    /// The directory with the packaged files that are not in the repository.
    directory: PathBuf,
    release: &'a Release,
}

impl<'a> Package<'a> {
    /// Prepares the files. The package of the host's architecture has a program that uses the libraries of the machine;
    /// others have the static program, because the libraries to link it with are packaged for their own machines only.
    pub(super) fn prepare(build: &Build, release: &'a Release) -> Result<Self> {
        let directory = if build.arch == Arch::of_host()? {
            build::dynamic(build, release)?
        } else {
            build.pages.clone()
        };
        Ok(Self { arch: build.arch, directory, release })
    }

    /// Makes the package in a directory, and returns its path.
    pub(super) fn debian(&self, directory: &Path, version: &str) -> Result<PathBuf> {
        self.write_changes(version)?;
        let mut cargo = self.release.cargo();
        cargo.args(["deb", "--package", "pping", "--no-build", "--no-strip", "--deb-version", version]);
        if !self.is_of_host()? {
            cargo.args(["--target", self.arch.triple()]);
        }
        // The empty component adds a slash, so that the path is a directory even if it does not exist yet.
        command::run(cargo.arg("--output").arg(directory.join("")))?;
        let file = directory.join(format!("pping_{version}_{}.deb", self.arch.debian()));
        ensure!(file.is_file(), "cargo-deb did not make {}", file.display());
        Ok(file)
    }

    /// Whether the package is for this machine's architecture.
    pub(super) fn is_of_host(&self) -> Result<bool> {
        Ok(self.arch == Arch::of_host()?)
    }

    fn write_changes(&self, version: &str) -> Result<()> {
        let Release { version: upstream, date, .. } = self.release;
        let changes = format!(
            "pping ({version}) unstable; urgency=medium\n\n  * pping {upstream}: see changelog.gz for what is new.\n\n \
             -- The pping project <pping@localhost>  {date}\n"
        );
        let path = self.directory.join(CHANGES);
        fs::write(&path, changes)?;
        build::compress(&path)
    }
}

//! Debian's archive: suites and architectures other than this machine's, in a directory of our own, so that nothing
//! changes for this machine's apt.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, bail, ensure};
use pping_chores::{arch::Arch, command};

/// The keys with which Debian signs its indices.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A suite of Debian, and its archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suite {
    /// Its name.
    pub name: &'static str,
    /// The label of the archive.
    pub label: &'static str,
}

/// The release that pping is built on.
pub const BOOKWORM: Suite = Suite { name: "bookworm", label: "Debian" };
/// Its updates for security.
pub const BOOKWORM_SECURITY: Suite = Suite { name: "bookworm-security", label: "Debian-Security" };

/// The packages of some suites for an architecture, of which none is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    directory: PathBuf,
    arch: Arch,
}

impl Archive {
    /// Fetches the indices of the suites, or the changes to them, into a directory.
    pub fn update(directory: PathBuf, arch: Arch, suites: &[Suite]) -> Result<Self> {
        ensure!(Path::new(KEYRING).is_file(), "there is no {KEYRING}: install debian-archive-keyring");
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(directory.join(part))?;
        }
        fs::write(directory.join("status"), "")?;
        let mut sources = String::new();
        for suite in suites {
            // Writing to a string cannot fail.
            let _infallible =
                writeln!(sources, "deb [signed-by={KEYRING}] {} {} main", mirror(suite)?, suite.name);
        }
        fs::write(directory.join("sources"), sources)?;
        let archive = Self { directory, arch };
        // Otherwise an index that apt-get could not fetch is only a warning.
        let mut update = archive.apt("apt-get");
        command::output(update.args(["-o", "APT::Update::Error-Mode=any", "update"]))?;
        Ok(archive)
    }

    /// An archive that is in no directory, for tests.
    pub fn unused() -> Self {
        Self { directory: PathBuf::new(), arch: Arch::X86_64 }
    }

    /// Fetches packages, `NAME` or `NAME=VERSION`, into a directory; apt checks them against the signed index. Returns
    /// the files.
    pub fn download(&self, packages: impl IntoIterator<Item = String>, into: &Path) -> Result<Vec<PathBuf>> {
        command::output(self.apt("apt-get").arg("download").args(packages).current_dir(into))?;
        Ok(fs::read_dir(into)?.filter_map(|entry| Some(entry.ok()?.path())).collect())
    }

    /// Unpacks packages, and all that they depend on, into a directory. Their scripts do not run.
    pub fn unpack_with_dependencies(&self, packages: &[&str], into: &Path) -> Result<()> {
        // What an earlier run fetched may be of other versions.
        command::output(self.apt("apt-get").arg("clean"))?;
        let mut install = self.apt("apt-get");
        install.args(["--download-only", "--yes", "--no-install-recommends", "install"]).args(packages);
        command::output(&mut install)?;
        for entry in fs::read_dir(self.directory.join("cache/archives"))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "deb") {
                unpack(&path, into)?;
            }
        }
        Ok(())
    }

    /// Returns one of apt's programs for these packages.
    pub fn apt(&self, program: &str) -> Command {
        let mut apt = Command::new(program);
        apt.arg("-qq");
        let own = [
            ("Dir::Etc::sourcelist", "sources"),
            ("Dir::State::Lists", "lists"),
            ("Dir::State::status", "status"),
            ("Dir::Cache", "cache"),
        ];
        for (option, path) in own {
            apt.arg("-o").arg(format!("{option}={}", self.directory.join(path).display()));
        }
        for option in ["APT::Architecture", "APT::Architectures"] {
            apt.arg("-o").arg(format!("{option}={}", self.arch.debian()));
        }
        for option in [
            "Dir::Etc::sourceparts=-",
            // The user that apt fetches as may not write here.
            "APT::Sandbox::User=root",
            "Acquire::Languages=none",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
            "Acquire::IndexTargets::deb::CNF::DefaultEnabled=false",
            "Acquire::Retries=2",
        ] {
            apt.args(["-o", option]);
        }
        apt.env("LC_ALL", "C.UTF-8");
        apt
    }
}

/// Unpacks a package into a directory.
pub fn unpack(package: &Path, into: &Path) -> Result<()> {
    command::output(Command::new("dpkg-deb").arg("--extract").arg(package).arg(into))?;
    Ok(())
}

/// Returns where this machine's apt gets such suites from.
fn mirror(suite: &Suite) -> Result<String> {
    let mut targets = Command::new("apt-get");
    targets.args(["indextargets", "--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages"]);
    let targets = command::output(&mut targets)?;
    let found = targets.lines().find_map(|line| line.strip_prefix(suite.label)?.strip_prefix(' '));
    match found {
        Some(uri) => Ok(uri.to_owned()),
        None => bail!(
            "apt of this machine has no source of {}, of which {} would be; add one, and run `apt-get update`",
            suite.label,
            suite.name
        ),
    }
}

//! Debian's package indices, in a directory of our own, so that nothing changes for this machine's apt.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};

use super::line::{Line, Suite};
use crate::command;

/// The keys with which Debian signs its indices.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Kernels for virtual machines: they have fewer drivers, and everything that is tested here.
const FLAVOUR: &str = "-cloud-amd64";
const IMAGE: &str = "linux-image-";

/// The packages of one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    suite: Suite,
    /// The package that is named after the kernel, and its version.
    pub(super) image: String,
    pub(super) version: String,
    /// What `uname -r` says.
    pub(super) release: String,
    /// All packages to fetch. From 6.19 on, the kernel and its modules are in separate packages.
    packages: Vec<String>,
}

impl Candidate {
    /// Returns a name that no other kernel has.
    pub(super) fn key(&self) -> String {
        format!("{}_{}", self.image, self.version)
    }

    /// Fetches the packages into a directory; apt checks them against the signed index.
    pub(super) fn fetch(&self, apt: &Path, into: &Path) -> Result<Vec<PathBuf>> {
        let mut download = apt_get(&apt.join(self.suite.name), "apt-get");
        let packages = self.packages.iter().map(|package| format!("{package}={}", self.version));
        pping_lab::run(download.arg("download").args(packages).current_dir(into))?;
        let files: Vec<_> = fs::read_dir(into)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
        ensure!(
            files.len() == self.packages.len(),
            "apt-get fetched {} files for {:?}",
            files.len(),
            self.packages
        );
        Ok(files)
    }
}

/// Returns the newest kernel of a line in the indices of all its suites.
pub(super) fn newest(line: &Line, apt: &Path) -> Result<Candidate> {
    let mut newest: Option<Candidate> = None;
    for suite in line.suites {
        let directory = apt.join(suite.name);
        update(suite, &directory)?;
        for candidate in list(*suite, &directory)?.into_iter().filter(|it| line.has(&it.version)) {
            if newest.as_ref().is_none_or(|newest| is_newer(&candidate.version, &newest.version)) {
                newest = Some(candidate);
            }
        }
    }
    newest.with_context(|| {
        let suites: Vec<_> = line.suites.iter().map(|suite| suite.name).collect();
        format!("no kernel of this line is in {}", suites.join(", "))
    })
}

/// Whether one version of a package is newer than another.
pub(super) fn is_newer(version: &str, than: &str) -> bool {
    command::succeeds(Command::new("dpkg").args(["--compare-versions", version, "gt", than]))
}

/// Fetches the index of a suite, or the changes to it.
fn update(suite: &Suite, directory: &Path) -> Result<()> {
    ensure!(Path::new(KEYRING).is_file(), "there is no {KEYRING}: install debian-archive-keyring");
    for part in ["lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(directory.join(part))?;
    }
    fs::write(directory.join("status"), "")?;
    let source = format!("deb [signed-by={KEYRING}] {} {} main\n", mirror(suite)?, suite.name);
    fs::write(directory.join("sources"), source)?;
    // Otherwise an index that apt-get could not fetch is only a warning.
    let mut update = apt_get(directory, "apt-get");
    pping_lab::run(update.args(["-o", "APT::Update::Error-Mode=any", "update"]))?;
    Ok(())
}

/// Returns where this machine's apt gets such suites from.
fn mirror(suite: &Suite) -> Result<String> {
    let mut targets = Command::new("apt-get");
    targets.args(["indextargets", "--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages"]);
    let targets = pping_lab::run(&mut targets)?;
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

/// Returns all kernels in the index of a suite.
fn list(suite: Suite, directory: &Path) -> Result<Vec<Candidate>> {
    let names = pping_lab::run(apt_get(directory, "apt-cache").args(["pkgnames", IMAGE]))?;
    let names: Vec<_> = names.lines().filter(|name| name.ends_with(FLAVOUR)).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let stanzas = pping_lab::run(apt_get(directory, "apt-cache").arg("show").args(names))?;
    Ok(stanzas.split("\n\n").filter_map(|stanza| candidate(suite, stanza)).collect())
}

/// Reads the description of a package. Returns `None` if it only names another package.
fn candidate(suite: Suite, stanza: &str) -> Option<Candidate> {
    let field = |name: &str| {
        stanza.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).unwrap_or_default()
    };
    let (image, version) = (field("Package"), field("Version"));
    let release = image.strip_prefix(IMAGE)?;
    let depends: HashSet<&str> =
        field("Depends").split([',', '|']).filter_map(|it| it.split_whitespace().next()).collect();
    if version.is_empty() || depends.iter().any(|it| it.starts_with(IMAGE)) {
        return None;
    }
    let parts = ["linux-binary-", "linux-modules-"].map(|part| format!("{part}{release}"));
    let is_split = parts.iter().all(|part| depends.contains(part.as_str()));
    Some(Candidate {
        suite,
        image: image.to_owned(),
        version: version.to_owned(),
        release: release.to_owned(),
        packages: if is_split { parts.to_vec() } else { vec![image.to_owned()] },
    })
}

/// Returns one of apt's programs, for a directory of its own.
fn apt_get(directory: &Path, program: &str) -> Command {
    let mut apt = Command::new(program);
    apt.arg("-qq");
    let own = [
        ("Dir::Etc::sourcelist", "sources"),
        ("Dir::State::Lists", "lists"),
        ("Dir::State::status", "status"),
        ("Dir::Cache", "cache"),
    ];
    for (option, path) in own {
        apt.arg("-o").arg(format!("{option}={}", directory.join(path).display()));
    }
    for option in [
        "Dir::Etc::sourceparts=-",
        // The user that apt fetches as may not write here.
        "APT::Sandbox::User=root",
        "APT::Architecture=amd64",
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

#[cfg(test)]
mod tests {
    use super::*;

    const SUITE: Suite = Suite { name: "sid", label: "Debian" };

    #[test]
    fn a_kernel_in_one_package_is_that_package() {
        let stanza = "Package: linux-image-6.1.0-56-cloud-amd64\nVersion: 6.1.192-2\n\
                      Depends: kmod, linux-base (>= 4.3~), initramfs-tools (>= 0.120) | linux-initramfs-tool";
        let candidate = candidate(SUITE, stanza).expect("it is a kernel");
        assert_eq!(candidate.release, "6.1.0-56-cloud-amd64");
        assert_eq!(candidate.packages, ["linux-image-6.1.0-56-cloud-amd64"]);
        assert_eq!(candidate.key(), "linux-image-6.1.0-56-cloud-amd64_6.1.192-2");
    }

    #[test]
    fn a_kernel_in_several_packages_is_all_of_them() {
        let stanza = "Package: linux-image-7.3-cloud-amd64\nVersion: 7.3~rc7-1\n\
                      Depends: dracut | linux-initramfs-tool, linux-base-7.3-cloud-amd64 (= 7.3~rc7-1), \
                      linux-binary-7.3-cloud-amd64 (= 7.3~rc7-1), linux-modules-7.3-cloud-amd64 (= 7.3~rc7-1)";
        let packages = candidate(SUITE, stanza).expect("it is a kernel").packages;
        let parts = ["binary", "modules"].map(|part| format!("linux-{part}-7.3-cloud-amd64"));
        assert_eq!(packages, parts);
    }

    #[test]
    fn a_package_that_names_another_is_no_kernel() {
        let stanza = "Package: linux-image-6.12-cloud-amd64\nVersion: 6.12.117-1\n\
                      Depends: linux-image-6.12.117+deb13-cloud-amd64 (= 6.12.117-1)";
        assert_eq!(candidate(SUITE, stanza), None);
    }

    #[test]
    fn versions_are_compared_as_debian_does() {
        assert!(is_newer("5.10.262-1", "5.10.43-1"));
        assert!(is_newer("7.3.4-1~bpo13+1", "7.3~rc7-1~exp1"));
        assert!(!is_newer("6.1.192-2", "6.1.192-2"));
    }
}

//! The kernels in Debian's archive.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, ensure};
use pping_chores::{arch::Arch, command};
use pping_cross::archive::Archive;

use super::line::Line;

const IMAGE: &str = "linux-image-";

/// The packages of one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    archive: Archive,
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

    /// Fetches the packages into a directory.
    pub(super) fn fetch(&self, into: &Path) -> Result<Vec<PathBuf>> {
        let packages = self.packages.iter().map(|package| format!("{package}={}", self.version));
        let files = self.archive.download(packages, into)?;
        ensure!(
            files.len() == self.packages.len(),
            "apt-get fetched {} files for {:?}",
            files.len(),
            self.packages
        );
        Ok(files)
    }
}

/// Returns the end of the names of kernels for virtual machines: they have fewer drivers, and everything that is tested
/// here.
pub(super) fn flavour(arch: Arch) -> String {
    format!("-cloud-{}", arch.debian())
}

/// Returns the newest kernel of a line in the index of each of its suites, the newest of all first. The indices go into a
/// directory.
pub(super) fn newest(line: &Line, arch: Arch, directory: &Path) -> Result<Vec<Candidate>> {
    let mut all: Vec<Candidate> = Vec::new();
    for suite in line.suites {
        let archive = Archive::update(directory.join(arch.debian()).join(suite.name), arch, &[*suite])?;
        let mut newest: Option<Candidate> = None;
        for candidate in list(&archive, arch)?.into_iter().filter(|it| line.has(&it.version)) {
            if newest.as_ref().is_none_or(|newest| is_newer(&candidate.version, &newest.version)) {
                newest = Some(candidate);
            }
        }
        if let Some(newest) = newest {
            let older = all.iter().position(|it| is_newer(&newest.version, &it.version));
            all.insert(older.unwrap_or(all.len()), newest);
        }
    }
    ensure!(
        !all.is_empty(),
        "no kernel of this line for {} is in {}",
        arch.debian(),
        line.suites.iter().map(|suite| suite.name).collect::<Vec<_>>().join(", ")
    );
    Ok(all)
}

/// Whether one version of a package is newer than another.
pub(super) fn is_newer(version: &str, than: &str) -> bool {
    command::succeeds(Command::new("dpkg").args(["--compare-versions", version, "gt", than]))
}

/// Returns all kernels of an archive.
fn list(archive: &Archive, arch: Arch) -> Result<Vec<Candidate>> {
    let names = pping_lab::run(archive.apt("apt-cache").args(["pkgnames", IMAGE]))?;
    let flavour = flavour(arch);
    let names: Vec<_> = names.lines().filter(|name| name.ends_with(&flavour)).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let stanzas = pping_lab::run(archive.apt("apt-cache").arg("show").args(names))?;
    Ok(stanzas.split("\n\n").filter_map(|stanza| candidate(archive, stanza)).collect())
}

/// Reads the description of a package. Returns `None` if it only names another package.
fn candidate(archive: &Archive, stanza: &str) -> Option<Candidate> {
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
        archive: archive.clone(),
        image: image.to_owned(),
        version: version.to_owned(),
        release: release.to_owned(),
        packages: if is_split { parts.to_vec() } else { vec![image.to_owned()] },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(stanza: &str) -> Option<Candidate> {
        super::candidate(&Archive::unused(), stanza)
    }

    #[test]
    fn a_kernel_in_one_package_is_that_package() {
        let stanza = "Package: linux-image-6.1.0-56-cloud-amd64\nVersion: 6.1.192-2\n\
                      Depends: kmod, linux-base (>= 4.3~), initramfs-tools (>= 0.120) | linux-initramfs-tool";
        let candidate = candidate(stanza).expect("it is a kernel");
        assert_eq!(candidate.release, "6.1.0-56-cloud-amd64");
        assert_eq!(candidate.packages, ["linux-image-6.1.0-56-cloud-amd64"]);
        assert_eq!(candidate.key(), "linux-image-6.1.0-56-cloud-amd64_6.1.192-2");
    }

    #[test]
    fn a_kernel_in_several_packages_is_all_of_them() {
        let stanza = "Package: linux-image-7.3-cloud-amd64\nVersion: 7.3~rc7-1\n\
                      Depends: dracut | linux-initramfs-tool, linux-base-7.3-cloud-amd64 (= 7.3~rc7-1), \
                      linux-binary-7.3-cloud-amd64 (= 7.3~rc7-1), linux-modules-7.3-cloud-amd64 (= 7.3~rc7-1)";
        let packages = candidate(stanza).expect("it is a kernel").packages;
        let parts = ["binary", "modules"].map(|part| format!("linux-{part}-7.3-cloud-amd64"));
        assert_eq!(packages, parts);
    }

    #[test]
    fn a_package_that_names_another_is_no_kernel() {
        let stanza = "Package: linux-image-6.12-cloud-amd64\nVersion: 6.12.117-1\n\
                      Depends: linux-image-6.12.117+deb13-cloud-amd64 (= 6.12.117-1)";
        assert_eq!(candidate(stanza), None);
    }

    #[test]
    fn versions_are_compared_as_debian_does() {
        assert!(is_newer("5.10.262-1", "5.10.43-1"));
        assert!(is_newer("7.3.4-1~bpo13+1", "7.3~rc7-1~exp1"));
        assert!(!is_newer("6.1.192-2", "6.1.192-2"));
    }
}

//! Installs Debian's packages.

use std::{fmt::Write as _, io, path::Path, process::Command};

use anyhow::{Context as _, Result, bail};

use super::Missing;
use crate::{command, environment};

/// `--no-remove`, because Debian's Rust 1.63 and its newer `rustc-web` exclude each other, and which of
/// them a machine keeps is not for a build to decide.
const INSTALL: [&str; 4] = ["install", "--yes", "--no-install-recommends", "--no-remove"];

/// Makes apt-get wait for another one that is just installing something, s.
const LOCK_TIMEOUT: [&str; 2] = ["-o", "DPkg::Lock::Timeout=300"];

/// Packages that come with a service. Tests start these programs themselves, or not at all.
const SERVICES: [&str; 3] = ["prometheus", "victoria-metrics", "zabbix-agent"];

/// Whether this machine has apt.
pub(super) fn is_here() -> bool {
    environment::find_program("apt-get").is_some()
}

/// Installs the packages for everything that is missing. Without apt or root, fails and says what to do instead.
pub(super) fn install(missing: &[Missing]) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    for Missing { what, .. } in missing {
        eprintln!("missing {what}");
    }
    if !is_here() {
        bail!("{}", by_hand(missing));
    }
    let packages = packages(missing);
    if !environment::is_root() {
        bail!(
            "installing packages needs root; run `sudo apt-get update && sudo apt-get {} {}`, then this \
             again",
            INSTALL.join(" "),
            packages.join(" ")
        );
    }
    install_packages(&packages).with_context(|| by_hand(missing))?;
    stop_services(&packages)
}

fn install_packages(packages: &[&str]) -> Result<()> {
    // A fresh machine has no package lists, and an old one has lists of files that are gone by now.
    let known = command::succeeds(apt_get().arg("--simulate").args(INSTALL).args(packages));
    if known && command::run(apt_get().args(INSTALL).args(packages)).is_ok() {
        return Ok(());
    }
    command::run(apt_get().arg("update"))?;
    command::run(apt_get().args(INSTALL).args(packages))
}

/// Returns apt-get, which asks nothing.
pub(super) fn apt_get() -> Command {
    let mut apt_get = Command::new("apt-get");
    // In runlevel 1, packages start no services on a machine without systemd.
    apt_get
        .args(LOCK_TIMEOUT)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .env("RUNLEVEL", "1")
        .stdout(io::stderr());
    apt_get
}

/// Stops and disables the services among these packages, which systemd starts at once and at every boot.
fn stop_services(installed: &[&str]) -> Result<()> {
    if !Path::new("/run/systemd/system").is_dir() {
        return Ok(());
    }
    for service in SERVICES.iter().filter(|service| installed.contains(service)) {
        command::run(Command::new("systemctl").args(["disable", "--now", service]).stdout(io::stderr()))?;
    }
    Ok(())
}

/// Returns each package once, in the order in which it was missed.
fn packages(missing: &[Missing]) -> Vec<&'static str> {
    let mut packages = Vec::new();
    for package in missing.iter().flat_map(|missing| missing.packages) {
        if !packages.contains(package) {
            packages.push(*package);
        }
    }
    packages
}

fn by_hand(missing: &[Missing]) -> String {
    let mut text = "cargo xtask can install packages on Debian 12 only; get by other means".to_owned();
    for Missing { what, elsewhere, .. } in missing {
        // Writing to a string cannot fail.
        let _infallible = write!(text, "\n  {what}: {elsewhere}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const MISSING: [Missing; 2] = [
        Missing { what: "ip", packages: &["iproute2"], elsewhere: "iproute2" },
        Missing { what: "tc", packages: &["iproute2", "libc6"], elsewhere: "iproute2, too" },
    ];

    #[test]
    fn a_package_is_installed_once() {
        assert_eq!(packages(&MISSING), ["iproute2", "libc6"]);
    }

    #[test]
    fn programs_apt_cannot_install_are_listed() {
        let text = by_hand(&MISSING);
        assert!(text.ends_with("\n  ip: iproute2\n  tc: iproute2, too"), "{text}");
    }
}

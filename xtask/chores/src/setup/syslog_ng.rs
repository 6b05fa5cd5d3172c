//! syslog-ng, which carries records to `ClickHouse` in a test.
//!
//! Debian's packages of it are unpacked beside the build and not installed: an installed syslog-ng becomes the only
//! system logger of its machine.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, process::Command};

use anyhow::{Result, ensure};

use super::apt;
use crate::{command, environment};

/// The packages, with the libraries that the packages of the other tools do not install.
const PACKAGES: [&str; 8] = [
    "syslog-ng-core",
    "syslog-ng-mod-http",
    "libglib2.0-0",
    "libivykis0",
    "libjson-c5",
    "libnet1",
    "libpcre3",
    "libwrap0",
];

/// Runs the program from where it was unpacked.
const SCRIPT: &str = r#"#!/bin/sh
here=$(dirname "$0")
LD_LIBRARY_PATH=$(echo "$here"/lib/*-linux-gnu "$here"/usr/lib/*-linux-gnu "$here"/usr/lib/syslog-ng | tr ' ' ':') \
    exec "$here"/usr/sbin/syslog-ng --module-path="$(echo "$here"/usr/lib/syslog-ng/[0-9]*)" "$@"
"#;

/// Returns the program, once [`complete`] has run.
pub fn program() -> PathBuf {
    folder().join("run")
}

fn folder() -> PathBuf {
    environment::target_directory().join("syslog-ng")
}

/// Downloads and unpacks the packages, unless that has been done.
pub(super) fn complete() -> Result<()> {
    if is_complete() {
        return Ok(());
    }
    ensure!(
        apt::is_here(),
        "a test needs syslog-ng, which is unpacked from Debian's packages: use a machine with apt"
    );
    let folder = folder();
    fs::create_dir_all(&folder)?;
    let download = || command::run(apt::apt_get().arg("download").args(PACKAGES).current_dir(&folder));
    if download().is_err() {
        command::run(apt::apt_get().arg("update"))?;
        download()?;
    }
    for entry in fs::read_dir(&folder)? {
        let package = entry?.path();
        if package.extension().is_some_and(|extension| extension == "deb") {
            command::run(Command::new("dpkg-deb").arg("--extract").args([&package, &folder]))?;
            fs::remove_file(package)?;
        }
    }
    fs::write(program(), SCRIPT)?;
    fs::set_permissions(program(), fs::Permissions::from_mode(0o755))?;
    ensure!(is_complete(), "{} does not run", program().display());
    Ok(())
}

/// Returns a line about the program, if it is there.
pub(super) fn found() -> Vec<String> {
    is_complete().then(|| format!("syslog-ng: {}", program().display())).into_iter().collect()
}

fn is_complete() -> bool {
    command::succeeds(Command::new(program()).arg("--version"))
}

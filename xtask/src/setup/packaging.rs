//! Tools to make and try packages.

use std::io;

use anyhow::{Context as _, Result, ensure};

use super::Missing;
use crate::{command, environment};

const TOOLS: [Missing; 3] = [
    tool("dpkg-shlibdeps", &["dpkg-dev"]),
    tool("strip", &["binutils"]),
    // For the programs of the other architecture. The compiler does not depend on the C library.
    tool("aarch64-linux-gnu-gcc", &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"]),
];

const TRYING: [Missing; 4] = [
    tool("debootstrap", &["debootstrap"]),
    // debootstrap downloads with it.
    tool("wget", &["wget"]),
    tool("lintian", &["lintian"]),
    // Runs the other architecture's programs.
    tool("qemu-aarch64-static", &["qemu-user-static"]),
];

/// Cargo's subcommands, and how they are installed.
const SUBCOMMANDS: [(&str, [&str; 5]); 2] = [
    ("deb", ["install", "cargo-deb", "--version", "3.8.0", "--locked"]),
    ("cyclonedx", ["install", "cargo-cyclonedx", "--version", "0.5.9", "--locked"]),
];

const fn tool(program: &'static str, packages: &'static [&'static str]) -> Missing {
    Missing { what: program, packages, elsewhere: "the package your distribution has it in" }
}

/// Returns the missing tools, with their packages.
pub(super) fn missing(tries: bool) -> Vec<Missing> {
    let trying = TRYING.into_iter().filter(|_| tries);
    TOOLS.into_iter().chain(trying).filter(|tool| environment::find_program(tool.what).is_none()).collect()
}

/// Builds cargo's subcommands, unless they are there already.
pub(super) fn complete() -> Result<()> {
    for (name, install) in SUBCOMMANDS {
        if has_subcommand(name) {
            continue;
        }
        command::run(environment::cargo().args(install).stdout(io::stderr()))
            .with_context(|| format!("could not install {}", install[1]))?;
        ensure!(has_subcommand(name), "{} was installed but does not run", install[1]);
    }
    Ok(())
}

fn has_subcommand(name: &str) -> bool {
    command::succeeds(environment::cargo().args([name, "--version"]))
}

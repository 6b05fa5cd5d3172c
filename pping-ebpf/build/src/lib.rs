//! Finds a toolchain that can compile for BPF, and compiles `pping-ebpf` with it.
//!
//! Used by the build scripts that embed the kernel programs, and by `cargo xtask setup`, so that what
//! the one looks for is what the other installs.

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
};

/// The name under which `cargo xtask setup` links Debian's compiler in rustup.
pub const LINKED_TOOLCHAIN: &str = "bpf";

/// A way to compile Rust for the target `bpfel-unknown-none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toolchain {
    /// A stable compiler whose core library is there ready-made (Debian's `libstd-rust-web-dev-bpf`),
    /// linked in rustup as [`LINKED_TOOLCHAIN`].
    Linked,
    /// The same without rustup: the compiler that runs this build has the BPF core library itself.
    Current,
    /// Rustup's nightly with the `rust-src` component, which compiles the core library on the way.
    Nightly,
}

/// What is missing before the kernel programs can be compiled.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No compiler for BPF.
    #[error(
        "no Rust compiler for BPF found; `cargo xtask setup` installs one on Debian, elsewhere run \
         `rustup toolchain install nightly --component rust-src`"
    )]
    NoCompiler,
    /// No linker for BPF.
    #[error(
        "bpf-linker is not on PATH; `cargo xtask setup` installs it on Debian, elsewhere run \
         `cargo install bpf-linker`"
    )]
    NoLinker,
    /// The compiler did not accept the programs.
    #[error("compiling the kernel programs failed: {0}")]
    Compile(String),
}

/// The first toolchain of [`Toolchain`]'s order that is usable here.
pub fn find_toolchain() -> Option<Toolchain> {
    if runs("rustup", &["--version"]) {
        if has_bpf_core(&["rustup", "run", LINKED_TOOLCHAIN, "rustc"]) {
            return Some(Toolchain::Linked);
        }
        return has_library_source(&["rustup", "run", "nightly", "rustc"]).then_some(Toolchain::Nightly);
    }
    has_bpf_core(&["rustc"]).then_some(Toolchain::Current)
}

/// Whether a `bpf-linker` is on `PATH`.
pub fn has_linker() -> bool {
    runs("bpf-linker", &["--version"])
}

/// Compiles the binaries of `pping-ebpf` (in `root_dir`) into `OUT_DIR`. For build scripts.
///
/// # Errors
/// When the toolchain or the linker is missing, saying how to get it, and when the compiler fails.
pub fn compile(root_dir: &str, features: &[&str]) -> Result<(), Error> {
    let toolchain = match find_toolchain().ok_or(Error::NoCompiler)? {
        Toolchain::Linked | Toolchain::Current => aya_build::Toolchain::Custom(LINKED_TOOLCHAIN),
        Toolchain::Nightly => aya_build::Toolchain::Nightly,
    };
    if !has_linker() {
        return Err(Error::NoLinker);
    }
    let package = aya_build::Package { name: "pping-ebpf", root_dir, features, ..Default::default() };
    aya_build::build_ebpf([package], toolchain).map_err(|error| Error::Compile(format!("{error:#}")))
}

fn has_bpf_core(rustc: &[&str]) -> bool {
    sysroot(rustc).is_some_and(|root| Path::new(&root).join("lib/rustlib/bpfel-unknown-none/lib").is_dir())
}

fn has_library_source(rustc: &[&str]) -> bool {
    sysroot(rustc).is_some_and(|root| Path::new(&root).join("lib/rustlib/src/rust/library/core").is_dir())
}

fn sysroot(rustc: &[&str]) -> Option<String> {
    let (program, arguments) = rustc.split_first()?;
    let output = Command::new(program)
        .args(arguments)
        .args(["--print", "sysroot"])
        // A build script inherits the outer compiler here, and a wrapper would answer for that one.
        .env_remove("RUSTUP_TOOLCHAIN")
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn runs(program: &str, arguments: &[&str]) -> bool {
    // `CARGO_HOME/bin` is where `cargo install` puts things, and it is not always on a build's PATH.
    debug_assert!(env::var_os("PATH").is_some());
    Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

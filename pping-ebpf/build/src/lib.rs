//! Finds a toolchain that can compile for BPF, and compiles `pping-ebpf` with it.
//!
//! Used by the build scripts that embed the kernel programs, and by `cargo xtask`, so that what the one
//! looks for is what the other installs and lints with.

mod linker;
mod toolchain;

use std::{fmt, path::PathBuf};

pub use linker::{find_linker, install_dir};
pub use toolchain::{LINKED_TOOLCHAIN, TARGET, Toolchain, has_bpf_core};

/// What is missing before the kernel programs can be compiled.
#[derive(thiserror::Error)]
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
         `cargo install bpf-linker` (of the same LLVM as the compiler)"
    )]
    NoLinker,
    /// A linker for BPF that the compiler would not find.
    #[error(
        "bpf-linker is in {0}, which is not on PATH; `cargo xtask build` adds it, for cargo alone run \
         `export PATH=\"$PATH:{0}\"`"
    )]
    LinkerNotOnPath(PathBuf),
    /// The compiler did not accept the programs.
    #[error("compiling the kernel programs failed: {0}")]
    Compile(String),
}

/// A build script that returns an error has it printed in this form, and its reader is a person.
impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Compiles the binaries of `pping-ebpf` (in `root_dir`) into `OUT_DIR`. For build scripts.
///
/// # Errors
/// When the toolchain or the linker is missing, saying how to get it, and when the compiler fails.
pub fn compile(root_dir: &str, features: &[&str]) -> Result<(), Error> {
    let toolchain = Toolchain::find().ok_or(Error::NoCompiler)?;
    if find_linker().is_none() {
        let installed = install_dir().filter(|directory| directory.join(linker::PROGRAM).is_file());
        return Err(installed.map_or(Error::NoLinker, Error::LinkerNotOnPath));
    }
    let package = aya_build::Package { name: "pping-ebpf", root_dir, features, ..Default::default() };
    aya_build::build_ebpf([package], toolchain.for_aya_build())
        .map_err(|error| Error::Compile(format!("{error:#}")))
}

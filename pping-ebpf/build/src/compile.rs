//! Compiles the kernel programs, for build scripts.

#![expect(clippy::print_stdout, reason = "that is how a build script talks to cargo")]

use std::{
    env,
    error::Error as StdError,
    fmt, fs,
    panic::resume_unwind,
    path::{Path, PathBuf},
    thread,
};

use crate::{
    Programs, Toolchain, Variant, find_linker, install_dir, linker, strip,
    variant::{ONLY, compile_variant},
};

/// Why the kernel programs cannot be compiled.
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

/// An error that a build script returns is printed in this form, and a person reads it.
impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Compiles a binary into `OUT_DIR`, once for each variant, with the variant's suffix in its name. For build scripts. If
/// [`ONLY`] names a variant, the file of the other is empty.
///
/// # Errors
/// If the toolchain or the linker is missing (the error says how to get it), or if the compiler fails.
pub fn compile(programs: &Programs) -> Result<(), Error> {
    let toolchain = Toolchain::find().ok_or(Error::NoCompiler)?;
    if find_linker().is_none() {
        let installed = install_dir().filter(|directory| directory.join(linker::PROGRAM).is_file());
        return Err(installed.map_or(Error::NoLinker, Error::LinkerNotOnPath));
    }
    println!("cargo::rerun-if-env-changed={ONLY}");
    let only = env::var(ONLY).ok();
    let out_dir = PathBuf::from(variable("OUT_DIR")?);
    let marked = out_dir.ancestors().find(|directory| directory.join("CACHEDIR.TAG").is_file());
    let target_dir = marked.unwrap_or(&out_dir);
    let arch = variable("CARGO_CFG_TARGET_ARCH")?;
    let package_dir = Path::new(programs.package_dir);
    let embed = |variant: Variant| {
        let file = out_dir.join(format!("{}{}", programs.binary, variant.suffix));
        let failed = |error: Box<dyn StdError>| Error::Compile(format!("{}: {error}", programs.binary));
        if only.as_ref().is_some_and(|only| only != variant.feature) {
            return fs::write(file, []).map_err(|error| failed(error.into()));
        }
        let compiled = compile_variant(toolchain, programs, package_dir, &arch, variant, target_dir)
            .map_err(Error::Compile)?;
        strip::strip(&compiled, &file).map_err(failed)
    };
    thread::scope(|scope| {
        let variants = Variant::ALL.map(|variant| scope.spawn(move || embed(variant)));
        variants
            .into_iter()
            .try_for_each(|variant| variant.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })?;
    println!("cargo::rerun-if-changed={}", programs.package_dir);
    Ok(())
}

fn variable(name: &'static str) -> Result<String, Error> {
    env::var(name).map_err(|_| Error::Compile(format!("{name} is not set: this is for build scripts")))
}

//! Compiles the kernel programs, for build scripts.

#![expect(clippy::print_stdout, reason = "that is how a build script talks to cargo")]

use std::{
    env, fmt,
    panic::resume_unwind,
    path::{Path, PathBuf},
    thread,
};

use crate::{TARGET, Toolchain, find_linker, install_dir, linker, rustc_flags, strip};

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

/// A variant of a binary.
struct Variant {
    /// The feature of `pping-ebpf` that selects it. Also names the directory to compile in, because to cargo all
    /// variants are the same binary.
    feature: &'static str,
    /// What the variant adds to the binary's name.
    suffix: &'static str,
}

/// The variants of a binary: for Linux 5.12 and later, and for older kernels.
const VARIANTS: [Variant; 2] =
    [Variant { feature: "fetch", suffix: "" }, Variant { feature: "add-only", suffix: "-add-only" }];

/// A binary for the kernel.
pub struct Programs {
    /// The directory of its package, seen from the build script.
    pub package_dir: &'static str,
    /// Its package, which depends on `pping-ebpf` or is it.
    pub package: &'static str,
    /// Its name.
    pub binary: &'static str,
    /// The features of the package to compile it with.
    pub features: &'static [&'static str],
}

impl Programs {
    /// The programs that the agent loads.
    pub const PPING: Self =
        Self { package_dir: "../pping-ebpf", package: "pping-ebpf", binary: "pping-programs", features: &[] };
}

/// Compiles a binary into `OUT_DIR`, once for each variant, with the variant's suffix in its name. For build scripts.
///
/// # Errors
/// If the toolchain or the linker is missing (the error says how to get it), or if the compiler fails.
pub fn compile(programs: &Programs) -> Result<(), Error> {
    let toolchain = Toolchain::find().ok_or(Error::NoCompiler)?;
    if find_linker().is_none() {
        let installed = install_dir().filter(|directory| directory.join(linker::PROGRAM).is_file());
        return Err(installed.map_or(Error::NoLinker, Error::LinkerNotOnPath));
    }
    let out_dir = PathBuf::from(variable("OUT_DIR")?);
    // A separate directory: cargo locks the one it works in, and the outer cargo works in another. All build scripts
    // for a processor share this one, because they compile pping-ebpf alike. Another processor has another, because to
    // cargo its programs are the same.
    let marked = out_dir.ancestors().find(|directory| directory.join("CACHEDIR.TAG").is_file());
    let arch = variable("CARGO_CFG_TARGET_ARCH")?;
    let target_dir = marked.unwrap_or(&out_dir).join("bpf").join(&arch);
    thread::scope(|scope| {
        let compile = |variant: &'static Variant| {
            let (target_dir, out_dir, arch) = (target_dir.join(variant.feature), &out_dir, &arch);
            scope.spawn(move || compile_variant(toolchain, programs, arch, variant, &target_dir, out_dir))
        };
        let variants: Vec<_> = VARIANTS.iter().map(compile).collect();
        variants
            .into_iter()
            .try_for_each(|variant| variant.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })?;
    println!("cargo::rerun-if-changed={}", programs.package_dir);
    Ok(())
}

fn compile_variant(
    toolchain: Toolchain,
    programs: &Programs,
    arch: &str,
    variant: &Variant,
    target_dir: &Path,
    out_dir: &Path,
) -> Result<(), Error> {
    let &Programs { package_dir, package, binary, features, .. } = programs;
    let variant_feature = format!("pping-ebpf/{}", variant.feature);
    let output = toolchain
        .command("cargo")
        .current_dir(package_dir)
        .env("CARGO_ENCODED_RUSTFLAGS", rustc_flags(arch))
        .args(["build", "--package", "pping-ebpf", "--package", package, "--bin", binary])
        .args(["--release", "--target", TARGET, "--features", &variant_feature])
        .args(features.iter().flat_map(|feature| ["--features", feature]))
        .arg("--target-dir")
        .arg(target_dir)
        .args(toolchain.cargo_arguments())
        .output()
        .map_err(|error| Error::Compile(error.to_string()))?;
    if !output.status.success() {
        return Err(Error::Compile(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let compiled = target_dir.join(TARGET).join("release").join(binary);
    strip::strip(&compiled, &out_dir.join(format!("{binary}{}", variant.suffix)))
        .map_err(|error| Error::Compile(format!("{binary}: {error}")))
}

fn variable(name: &'static str) -> Result<String, Error> {
    env::var(name).map_err(|_| Error::Compile(format!("{name} is not set: this is for build scripts")))
}

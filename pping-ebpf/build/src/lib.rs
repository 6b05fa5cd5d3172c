//! Finds a toolchain that can compile for BPF, and compiles `pping-ebpf` with it.
//!
//! Used by the build scripts that embed the kernel programs, and by `cargo xtask`, so that what the one
//! looks for is what the other installs and lints with.

#![expect(clippy::print_stdout, reason = "that is how a build script talks to cargo")]

mod linker;
mod strip;
mod toolchain;

use std::{
    env, fmt,
    panic::resume_unwind,
    path::{Path, PathBuf},
    thread,
};

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

/// Compiler flags for the kernel programs, as `CARGO_ENCODED_RUSTFLAGS` wants them.
///
/// The CPU matters: version 3 has 32-bit registers, jumps and atomic instructions (Linux 5.1 and 5.12).
/// LLVM's generic one has none of them, and with the registers alone (`+alu32`) LLVM 22 compares 32-bit
/// values with sign-extended constants, which is wrong.
///
/// What is zeroed or copied is unrolled, unlike by default, where each `memset` is a function of the program: slow, and
/// before Linux 6.2 the verifier goes through most paths of a program twice and more if it has any function.
///
/// The types and lines that the programs carry name source files: without the folders of the machine that compiled them.
pub fn rustc_flags(target_arch: &str) -> String {
    let remapped: Vec<String> = source_folders().map(|(folder, name)| remap(&folder, name)).collect();
    let mut flags: Vec<&str> = remapped.iter().map(String::as_str).collect();
    let arch = format!("--cfg=bpf_target_arch=\"{target_arch}\"");
    flags.extend([
        arch.as_str(),
        "-Ctarget-cpu=v3",
        "-Cdebuginfo=2",
        "-Clink-arg=--btf",
        "-Clink-arg=--disable-expand-memcpy-in-order",
    ]);
    flags.join("\x1f")
}

/// The folders that sources are compiled from, and what programs call them: this repository, and cargo's copies of crates.
pub fn source_folders() -> impl Iterator<Item = (PathBuf, &'static str)> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map(Path::to_owned);
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    [(repository, "pping"), (home, "cargo")].into_iter().filter_map(|(folder, name)| Some((folder?, name)))
}

/// The compiler's flag that has a program call a folder by another name.
pub fn remap(folder: &Path, name: &str) -> String {
    format!("--remap-path-prefix={}={name}", folder.display())
}

/// What a binary is compiled as.
struct Variant {
    /// A feature of `pping-ebpf`, and the directory to compile it in: to cargo they are all the same binary.
    feature: &'static str,
    /// What that adds to its name.
    suffix: &'static str,
}

/// The variants of a binary: for the newest kernels, and for those before Linux 5.12.
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
    /// Features of the package that it takes.
    pub features: &'static [&'static str],
}

impl Programs {
    /// The programs that the agent loads.
    pub const PPING: Self =
        Self { package_dir: "../pping-ebpf", package: "pping-ebpf", binary: "pping-programs", features: &[] };
}

/// Compiles a binary into `OUT_DIR`, once for each variant, whose suffix its name gets. For build scripts.
///
/// # Errors
/// When the toolchain or the linker is missing, saying how to get it, and when the compiler fails.
pub fn compile(programs: &Programs) -> Result<(), Error> {
    let toolchain = Toolchain::find().ok_or(Error::NoCompiler)?;
    if find_linker().is_none() {
        let installed = install_dir().filter(|directory| directory.join(linker::PROGRAM).is_file());
        return Err(installed.map_or(Error::NoLinker, Error::LinkerNotOnPath));
    }
    let out_dir = PathBuf::from(variable("OUT_DIR")?);
    // A directory of its own: cargo locks the one it works in, and the outer cargo is at work there. But the same for all
    // build scripts, which compile pping-ebpf alike.
    let marked = out_dir.ancestors().find(|directory| directory.join("CACHEDIR.TAG").is_file());
    let target_dir = marked.unwrap_or(&out_dir).join("bpf");
    let arch = variable("CARGO_CFG_TARGET_ARCH")?;
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

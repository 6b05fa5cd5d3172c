//! Finds a toolchain that can compile for BPF, and compiles `pping-ebpf` with it.
//!
//! The build scripts that embed the kernel programs use this, and so does `cargo xtask`. So `xtask` installs and lints
//! with what the build scripts look for.

#[cfg(feature = "compile")]
mod compile;
mod linker;
#[cfg(feature = "compile")]
mod strip;
mod toolchain;
mod variant;

use std::{
    env, iter,
    path::{Path, PathBuf},
};

#[cfg(feature = "compile")]
pub use compile::{Error, compile};
pub use linker::{find_linker, install_dir};
pub use toolchain::{LINKED_TOOLCHAIN, TARGET, Toolchain, has_bpf_core};
pub use variant::{ONLY, Programs, Variant, compile_ahead};

/// Compiler flags for the kernel programs, as `CARGO_ENCODED_RUSTFLAGS` wants them. `target_arch` is the processor of
/// the program that embeds them, on which they will run: it decides what orders memory.
///
/// The CPU matters: version 3 has 32-bit registers, jumps and atomic instructions (Linux 5.1 and 5.12).
/// LLVM's generic one has none of them, and with the registers alone (`+alu32`) LLVM 22 compares 32-bit
/// values with sign-extended constants, which is wrong.
///
/// Zeroing and copying are unrolled. By default each `memset` is a function of the program. That is slow, and before
/// Linux 6.2 the verifier goes through most paths of a program at least twice if it has any function.
///
/// The types and lines that the programs carry name source files. These names are made independent of the folders of
/// the machine that compiled them.
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

/// The folders that sources are compiled from, and the names that programs have for them: this repository, and cargo's
/// copies of crates. If a folder is reached by a link, the compiler names both the link and the folder behind it.
pub fn source_folders() -> impl Iterator<Item = (PathBuf, &'static str)> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map(Path::to_owned);
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let folders = [(repository, "pping"), (home, "cargo")].into_iter();
    folders.filter_map(|(folder, name)| Some((folder?, name))).flat_map(|(folder, name)| {
        let behind = folder.canonicalize().ok().filter(|behind| *behind != folder);
        iter::once(folder).chain(behind).map(move |folder| (folder, name))
    })
}

/// The compiler flag that makes a program call a folder by another name.
pub fn remap(folder: &Path, name: &str) -> String {
    format!("--remap-path-prefix={}={name}", folder.display())
}

//! The sets of kernel programs that a build has, and how one is compiled.

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::{TARGET, Toolchain, rustc_flags};

/// The variable that leaves all variants but one out of a build, by that one's feature. `cargo xtask run` sets it: its first
/// build is sooner done, and its pping runs on this kernel. A build script with it writes an empty file for the other
/// variant.
pub const ONLY: &str = "PPING_ONLY_VARIANT";

/// A variant of a binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The feature of `pping-ebpf` that selects it. Also names the directory to compile in, because to cargo all
    /// variants are the same binary.
    pub feature: &'static str,
    /// What the variant adds to the binary's name.
    pub(crate) suffix: &'static str,
}

impl Variant {
    /// For Linux 5.12 and later, on arm64 5.18.
    pub const FETCH: Self = Self { feature: "fetch", suffix: "" };
    /// For older kernels.
    pub const ADD_ONLY: Self = Self { feature: "add-only", suffix: "-add-only" };
    /// All of them.
    pub const ALL: [Self; 2] = [Self::FETCH, Self::ADD_ONLY];

    /// The directory that this variant is compiled in, for a processor and below cargo's target directory.
    ///
    /// It is apart from the outer cargo's: cargo locks the one it works in. All build scripts for a processor share
    /// this one, because they compile pping-ebpf alike. Another processor has another, because to cargo its programs are
    /// the same.
    pub fn directory(self, target_dir: &Path, arch: &str) -> PathBuf {
        target_dir.join("bpf").join(arch).join(self.feature)
    }
}

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

/// Compiles the agent's programs where its build script will find them, for this processor. `repository` is the root of
/// this repository, and `target_dir` cargo's target directory. A build script begins only when much else is compiled, so
/// a caller with a thread to spare can begin sooner. What goes wrong is not reported: the build script fails as well, and
/// says why.
pub fn compile_ahead(repository: &Path, target_dir: &Path, variant: Variant) {
    if let Some(toolchain) = Toolchain::find() {
        let package_dir = repository.join(Programs::PPING.package);
        compile_variant(toolchain, &Programs::PPING, &package_dir, env::consts::ARCH, variant, target_dir)
            .ok();
    }
}

/// Compiles a variant of a binary, and returns the file.
///
/// # Errors
/// What the compiler says, if it fails.
pub(crate) fn compile_variant(
    toolchain: Toolchain,
    programs: &Programs,
    package_dir: &Path,
    arch: &str,
    variant: Variant,
    target_dir: &Path,
) -> Result<PathBuf, String> {
    let &Programs { package, binary, features, .. } = programs;
    let variant_feature = format!("pping-ebpf/{}", variant.feature);
    let target_dir = variant.directory(target_dir, arch);
    let output = toolchain
        .command("cargo")
        .current_dir(package_dir)
        .env("CARGO_ENCODED_RUSTFLAGS", rustc_flags(arch))
        .args(["build", "--package", "pping-ebpf", "--package", package, "--bin", binary])
        .args(["--release", "--target", TARGET, "--features", &variant_feature])
        .args(features.iter().flat_map(|feature| ["--features", feature]))
        .arg("--target-dir")
        .arg(&target_dir)
        .args(toolchain.cargo_arguments())
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(target_dir.join(TARGET).join("release").join(binary))
}

//! `cargo xtask build`: the kernel programs and the agent around them.

use std::{env, fs, path::PathBuf, thread};

use anyhow::Result;
use pping_ebpf_build::{ONLY, Variant};

use crate::{
    command, environment,
    setup::{self, Report, Scope},
};

/// The packages that are compiled together for tests. Another selection would give their dependencies other features,
/// and compile them again.
pub const TESTED: [&str; 3] = ["--workspace", "--exclude", "pping-ebpf"];

/// How much the compiler optimises the agent. The kernel programs are always optimised.
#[derive(Clone, Copy)]
pub enum Profile {
    /// For tests.
    Debug,
    /// Hardly, for a short build.
    Quick,
    /// As it is meant to run.
    Release,
}

impl Profile {
    /// The profile that a `--release` flag asks for.
    pub fn from_release(release: bool) -> Self {
        if release { Self::Release } else { Self::Debug }
    }
}

/// Installs what the build lacks, builds pping, and returns its path.
pub fn run(profile: Profile) -> Result<PathBuf> {
    setup::run(Scope::default(), Report::Changes)?;
    compile(profile)
}

/// Builds pping without installing anything, and returns its path.
pub fn compile(profile: Profile) -> Result<PathBuf> {
    compile_with(profile, &Variant::ALL)
}

/// As [`run`], but for the running kernel: leaves the programs for other kernels out as long as nothing here has compiled
/// them.
pub fn run_for_this_kernel(profile: Profile) -> Result<PathBuf> {
    setup::run(Scope::default(), Report::Changes)?;
    let arch = env::consts::ARCH;
    let is_compiled = |variant: Variant| variant.directory(&environment::target_directory(), arch).is_dir();
    let ours = variant_for(&fs::read_to_string("/proc/sys/kernel/osrelease")?, arch);
    let variants = Variant::ALL.into_iter().filter(|&variant| variant == ours || is_compiled(variant));
    compile_with(profile, &variants.collect::<Vec<_>>())
}

/// Returns the variant of the kernel programs that a kernel of this release takes.
fn variant_for(release: &str, arch: &str) -> Variant {
    let mut numbers = release.split(|it: char| !it.is_ascii_digit()).map_while(|number| number.parse().ok());
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let has_fetch = version >= if arch == "aarch64" { (5, 18) } else { (5, 12) };
    if has_fetch { Variant::FETCH } else { Variant::ADD_ONLY }
}

/// Builds pping with these variants of the kernel programs, and returns its path.
fn compile_with(profile: Profile, variants: &[Variant]) -> Result<PathBuf> {
    let mut cargo = environment::cargo();
    if let [only] = variants {
        cargo.env(ONLY, only.feature);
    }
    cargo.args(["build", "--package", "pping"]);
    let (name, directory) = match profile {
        Profile::Debug => ("dev", "debug"),
        Profile::Quick => ("quick", "quick"),
        Profile::Release => ("release", "release"),
    };
    cargo.args(["--profile", name]);
    thread::scope(|scope| {
        // Side by side with the rest: pping's build script would begin only when nearly all else is compiled. It also says
        // what is wrong, if something is.
        for &variant in variants {
            scope.spawn(move || {
                pping_ebpf_build::compile_ahead(
                    environment::repository(),
                    &environment::target_directory(),
                    variant,
                );
            });
        }
        command::run(&mut cargo)
    })?;
    Ok(environment::target_directory().join(directory).join("pping"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_kernels_take_the_other_programs() {
        for (release, arch, variant) in [
            ("5.10.0-28-amd64\n", "x86_64", Variant::ADD_ONLY),
            ("5.12.1", "x86_64", Variant::FETCH),
            ("5.15.0-1+rpi", "aarch64", Variant::ADD_ONLY),
            ("5.18", "aarch64", Variant::FETCH),
            ("6.1.0", "aarch64", Variant::FETCH),
            ("7.3-rc1", "x86_64", Variant::FETCH),
        ] {
            assert_eq!(variant_for(release, arch), variant, "{release}");
        }
    }
}

//! `cargo xtask build`: the kernel programs and the agent around them.

use std::path::PathBuf;

use anyhow::Result;

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
    let mut cargo = environment::cargo();
    cargo.args(["build", "--package", "pping"]);
    let directory = match profile {
        Profile::Debug => "debug",
        Profile::Release => {
            cargo.arg("--release");
            "release"
        }
    };
    command::run(&mut cargo)?;
    Ok(environment::target_directory().join(directory).join("pping"))
}

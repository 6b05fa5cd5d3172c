//! Finds the linker for BPF.

use std::{env, path::PathBuf, process::Command};

/// The linker that rustc calls for a BPF target, by this name and through `PATH`.
pub(crate) const PROGRAM: &str = "bpf-linker";

/// Returns the name and version of the `bpf-linker` on `PATH` (`bpf-linker 0.13.0`), or nothing if none runs.
pub fn find_linker() -> Option<String> {
    let output = Command::new(PROGRAM).arg("--version").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The directory where `cargo install` puts programs. Rustup adds it to the `PATH` of whatever it starts; Debian's own
/// cargo does not.
pub fn install_dir() -> Option<PathBuf> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let root = variable("CARGO_INSTALL_ROOT")
        .or_else(|| variable("CARGO_HOME"))
        .or_else(|| env::home_dir().map(|home| home.join(".cargo")))?;
    Some(root.join("bin"))
}

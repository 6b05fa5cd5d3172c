//! Finds a Python: the reference is written in Python, and so are the peers of some tests.

#![expect(
    clippy::panic,
    reason = "helpers of tests; clippy only knows the functions that are tests themselves"
)]

use std::{env, fs, path::PathBuf, process::Command};

const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference");

/// Returns the Python for scripts: the one that `PPING_PYTHON` names, which `cargo xtask setup --tests` creates, or the
/// machine's.
pub(crate) fn python() -> PathBuf {
    env::var_os("PPING_PYTHON").map_or_else(|| "python3".into(), PathBuf::from)
}

/// Returns that Python if it has a package.
pub(crate) fn python_with(package: &str) -> Option<PathBuf> {
    let import = format!("import {package}");
    let has_package =
        Command::new(python()).args(["-c", &import]).output().is_ok_and(|it| it.status.success());
    has_package.then(python)
}

/// Returns the command for a script of the reference. Many tests use the same captures, so tshark dissects each capture
/// only once.
pub(crate) fn reference(script: &str) -> Command {
    let dissected = concat!(env!("CARGO_TARGET_TMPDIR"), "/dissected");
    if let Err(error) = fs::create_dir_all(dissected) {
        panic!("{dissected}: {error}");
    }
    let mut command = Command::new(python());
    command.arg(format!("{REFERENCE}/{script}")).env("PPING_DISSECTED", dissected);
    command
}

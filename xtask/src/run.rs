//! `cargo xtask run`: from a fresh checkout to a running pping.

use std::{ffi::OsString, process::Command};

use anyhow::Result;
use pping_chores::{
    build::{self, Profile},
    command,
};

/// Builds pping and replaces this process by it, in the caller's directory and with the caller's privileges. If
/// privileges are missing, pping itself explains which.
pub(crate) fn run(profile: Profile, arguments: &[OsString]) -> Result<()> {
    let pping = build::run_for_this_kernel(profile)?;
    let mut command = Command::new(pping);
    command.args(arguments);
    command::announce(&command);
    command::replace_process(&mut command).map(|never| match never {})
}

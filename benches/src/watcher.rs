//! Programs that watch an interface: pping, and others.

use std::{
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use pping_lab::Process;

/// How long pping may take to begin.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long whoever does not tell is given to begin.
const GRACE: Duration = Duration::from_secs(3);

/// Where pping is.
pub(crate) fn pping() -> Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name("pping");
    ensure!(program.is_file(), "{} is missing: start this by `cargo xtask bench`", program.display());
    Ok(program)
}

/// Starts a command, returns when it watches `interface`, and tells how long that took. It has to say so with `-v`, or is given
/// time.
pub(crate) fn start(command: Command, interface: &str) -> Result<(Process, Duration)> {
    let tells = command.get_args().any(|argument| argument == "-v");
    let began = Instant::now();
    let mut process = Process::spawn(command)?;
    if tells {
        process.wait_for_output(&format!("watching {interface}"), PATIENCE)?;
    } else {
        thread::sleep(GRACE);
    }
    Ok((process, began.elapsed()))
}

//! `pping`: see `pping --help`, or [`pping`] for how it is made.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use clap::Parser as _;
use pping::{Error, cli::Arguments, config::Config, shutdown};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    pping::init_log(if arguments.bpf_log { arguments.verbose.max(2) } else { arguments.verbose });
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("pping: {error}\n"));
            error.exit_code()
        }
    }
}

fn run(arguments: Arguments) -> Result<(), Error> {
    let config = Config::try_from(arguments)?;
    // One worker drains and one answers scrapes, so that neither waits for the other.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let summary = runtime.block_on(async { pping::run(config, shutdown::requested()?).await })?;
    say(&summary.to_string());
    summary.capture.and_then(|capture| capture.fault).map_or(Ok(()), Err)
}

/// Writes to standard error. That may be a pipe that was closed, as in `pping -i eth0 2>&1 | head -1`, and then
/// there is nobody left to tell.
fn say(text: &str) {
    io::stderr().write_all(text.as_bytes()).ok();
}

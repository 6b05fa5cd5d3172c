//! `pping`: see `pping --help`, or [`pping`] for how it is made.

use std::process::ExitCode;

use clap::Parser as _;
use pping::{Error, cli::Arguments, config::Config, shutdown};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    pping::init_log(arguments.verbose);
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pping: {error}");
            error.exit_code()
        }
    }
}

fn run(arguments: Arguments) -> Result<(), Error> {
    let config = Config::try_from(arguments)?;
    // One worker drains and one answers scrapes, so that neither waits for the other.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let summary = runtime.block_on(async { pping::run(config, shutdown::requested()?).await })?;
    eprint!("{summary}");
    Ok(())
}

//! `pping`: see `pping --help`, and the crate [`pping`] for its parts.

use std::process::ExitCode;

use clap::CommandFactory as _;
use pping::{cli::Cli, commands};

fn main() -> ExitCode {
    let matches = Cli::command().get_matches();
    pping::init_log(0);
    match commands::perform(&matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            pping::say_error(&error);
            error.exit_code()
        }
    }
}

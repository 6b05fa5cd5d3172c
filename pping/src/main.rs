//! `pping`: see `pping --help`, and the crate [`pping`] for its parts.

use std::process::ExitCode;

use pping::{cli, commands};

fn main() -> ExitCode {
    let matches = cli::matches().unwrap_or_else(|error| error.exit());
    pping::init_log(0);
    match commands::perform(&matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            pping::say_error(&error);
            error.exit_code()
        }
    }
}

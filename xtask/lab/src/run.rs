use std::process::Command;

use crate::{Error, Result};

/// Runs a command to its end and returns its standard output.
///
/// # Errors
/// [`Error::Start`] if there is no such program, [`Error::Failed`] with its standard error if it fails.
pub fn run(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|reason| start_error(command, reason))?;
    if !output.status.success() {
        return Err(Error::Failed {
            command: command_line(command),
            status: output.status,
            stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs `ip` with a line of arguments, none of which contains a space.
pub(crate) fn ip(line: &str) -> Result<String> {
    run(Command::new("ip").args(line.split_whitespace()))
}

pub(crate) fn start_error(command: &Command, reason: std::io::Error) -> Error {
    Error::Start { program: command.get_program().to_string_lossy().into_owned(), reason }
}

/// The command as one would type it, for messages only: nothing is quoted.
pub(crate) fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

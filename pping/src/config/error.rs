//! Errors in the configuration, with their origin.

use std::{fmt, io, path::PathBuf};

/// Why there is no valid configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Values are invalid. All errors that were found.
    #[error("{}", lines(.0))]
    Invalid(Vec<SettingError>),
    /// The configuration file could not be read.
    #[error("configuration file {}: {source}{}", path.display(), hint(source))]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is nothing to measure.
    #[error(
        "--interface or --read is needed: try pping -i eth0, or pping -r trace.pcapng; \
         PPING_INTERFACE does not name one, and {}; see pping --help", no_source(file, *was_read)
    )]
    NoSource {
        /// The file that could have named an interface.
        file: PathBuf,
        /// Whether it exists.
        was_read: bool,
    },
    /// An option on the command line has no meaning for a capture.
    #[error("{option} cannot be used with --read: {reason}")]
    NotForCaptures {
        /// The option as typed, or the command.
        option: String,
        /// Why.
        reason: &'static str,
    },
    /// The parser of the command line rejected the options.
    #[error("{0}")]
    Arguments(String),
}

/// A value that is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// The origin of the value.
    pub origin: Origin,
    /// The option and its value as written there; `None` for text that sets no option.
    pub assignment: Option<(String, String)>,
    /// The error, and the text to write instead.
    pub reason: String,
}

/// The origin of an option's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Not set: the default applies.
    Default,
    /// Not set: `--profile small` has another default.
    Profile,
    /// On the command line.
    Flag,
    /// In this variable of the environment.
    Variable(String),
    /// In the configuration file.
    File {
        /// Its name.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The character of the line where the value begins, from 1.
        column: usize,
    },
}

impl SettingError {
    /// Makes the error of an option that contradicts another. Its origin is the command line until `locate` corrects it.
    pub(super) fn contradiction(option: &str, value: impl Into<String>, reason: &str) -> Self {
        let assignment = Some((option.to_owned(), value.into()));
        Self { origin: Origin::Flag, assignment, reason: reason.to_owned() }
    }
}

impl fmt::Display for SettingError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin, assignment, reason } = self;
        if let Origin::File { path, line, column } = origin {
            write!(formatter, "{}:{line}:{column}: ", path.display())?;
        }
        match (origin, assignment) {
            (Origin::Default | Origin::Profile | Origin::Flag, Some((option, value))) if value.is_empty() => {
                write!(formatter, "--{option}: ")?;
            }
            (Origin::Default | Origin::Profile | Origin::Flag, Some((option, value))) => {
                write!(formatter, "--{option} {value}: ")?;
            }
            (Origin::Variable(variable), Some((_, value))) => write!(formatter, "{variable}={value}: ")?,
            (Origin::File { .. }, Some((option, value))) => write!(formatter, "{option} = {value}: ")?,
            (_, None) => {}
        }
        formatter.write_str(reason)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::Profile => formatter.write_str("default of --profile small"),
            Self::Flag => formatter.write_str("command line"),
            Self::Variable(variable) => formatter.write_str(variable),
            Self::File { path, line, .. } => write!(formatter, "{}:{line}", path.display()),
        }
    }
}

fn lines(errors: &[SettingError]) -> String {
    let lines: Vec<String> = errors.iter().map(SettingError::to_string).collect();
    lines.join("\n")
}

fn no_source(file: &std::path::Path, was_read: bool) -> String {
    let file = file.display();
    if was_read { format!("{file} does not") } else { format!("there is no {file}") }
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; `pping generate config` writes one to begin with",
        io::ErrorKind::PermissionDenied => "; let the user that runs pping read it",
        _ => "",
    }
}

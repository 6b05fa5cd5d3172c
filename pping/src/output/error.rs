//! Errors of writing.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Why a file cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file of an option cannot be opened.
    #[error("--{option} {}: {source}", path.display())]
    Open {
        /// The option: `write` or `hdr-log`.
        option: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The named pipe of an option has no reader.
    #[error("--{option} {}: this pipe has no reader; start one first", path.display())]
    NoReader {
        /// The option: `write` or `hdr-log`.
        option: &'static str,
        /// The pipe.
        path: PathBuf,
    },
    /// The format cannot be appended to, and the file is not empty.
    #[error(
        "--write {}: it is not empty, and its format cannot be appended to; remove it, or use --format jsonl",
        path.display()
    )]
    NotEmpty {
        /// The file.
        path: PathBuf,
    },
    /// A write failed.
    #[error("writing to {target} failed: {source}")]
    Write {
        /// The file, or `standard output`.
        target: String,
        /// The system's reason.
        source: io::Error,
    },
    /// Standard output, or a thread, is not available.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Error {
    /// Converts an error of the system to one of opening the file `path` of an option.
    pub(crate) fn open(option: &'static str, path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Open { option, path: path.to_owned(), source }
    }

    /// The option whose value is wrong, if an option is the cause.
    pub fn option(&self) -> Option<&'static str> {
        match self {
            Self::Open { option, .. } | Self::NoReader { option, .. } => Some(option),
            Self::NotEmpty { .. } => Some("write"),
            Self::Write { .. } | Self::Io(_) => None,
        }
    }
}

//! What can be wrong with a history.

use std::{
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
};

use parquet::errors::ParquetError;

use crate::{foreign_text::sanitized, spelling::MOST_NAMED};

/// What is wrong with a history.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was asked makes no sense.
    #[error("{0}")]
    Usage(String),
    /// Nothing was measured of what was asked for.
    #[error("{0}")]
    Empty(String),
    /// The directory has something else in it.
    #[error(
        "{} has other files in it, and is no history; name an empty or a new directory",
        .0.display()
    )]
    Foreign(PathBuf),
    /// There is no history.
    #[error("there is no history in {}; pping --history {} writes one", .0.display(), .0.display())]
    Missing(PathBuf),
    /// A newer pping wrote it.
    #[error(
        "the history in {} was written by {by}, in format {format}, and this pping knows format {known}; \
         use that version of pping, or name another directory",
        .directory.display()
    )]
    Newer {
        /// The directory.
        directory: PathBuf,
        /// The program.
        by: String,
        /// Its format.
        format: u32,
        /// The newest known format.
        known: u32,
    },
    /// Another process writes to it.
    #[error("another pping writes to the history in {}; give each its own directory", .0.display())]
    Locked(PathBuf),
    /// A file cannot be written.
    #[error("cannot write {}: {source}", .path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Files are damaged.
    #[error("{found}{}", .damaged.join("\n"))]
    Unsound {
        /// What was found in all files.
        found: String,
        /// What is wrong with which.
        damaged: Vec<String>,
    },
    /// A file is damaged.
    #[error("{} is damaged: {reason}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What shows it.
        reason: String,
    },
}

impl Error {
    pub(crate) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.to_owned(), source }
    }

    /// Nothing was measured, for a reason; damaged files may be another.
    pub(crate) fn empty(mut text: String, damaged: &[String]) -> Self {
        for reason in damaged.iter().take(MOST_NAMED) {
            text.push('\n');
            text.push_str(&sanitized(reason));
        }
        match damaged.len().saturating_sub(MOST_NAMED) {
            0 => {}
            1 => text.push_str("\n1 more file is damaged"),
            more => {
                // Writing to memory does not fail.
                write!(text, "\n{more} more files are damaged").ok();
            }
        }
        Self::Empty(text)
    }

    pub(super) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }

    pub(super) fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.into() }
    }

    /// The error of the library while a file is written, which is nearly always one of the file system.
    pub(super) fn encode(path: &Path, error: &ParquetError) -> Self {
        let io = std::error::Error::source(error).and_then(|error| error.downcast_ref::<io::Error>());
        let error = io.map_or_else(
            || io::Error::other(error.to_string()),
            |error| io::Error::new(error.kind(), error.to_string()),
        );
        Self::write(path, error)
    }

    /// The error of the library while a file is read.
    pub(super) fn decode(path: &Path, error: &ParquetError) -> Self {
        Self::damaged(path, error.to_string())
    }

    /// Whether the directory is the wrong one.
    pub(crate) fn is_usage(&self) -> bool {
        matches!(self, Self::Usage(_) | Self::Foreign(_) | Self::Missing(_) | Self::Newer { .. })
    }

    /// Whether a file has vanished, as those do that another process merges.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

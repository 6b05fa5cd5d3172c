//! Errors of `pping groups`.

use std::path::PathBuf;

use crate::{output, text::FileError};

/// Why `pping groups` failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The groups socket cannot be reached.
    #[error("--socket {}: {reason}", path.display())]
    Connect {
        /// Its path.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// The connection broke.
    #[error("--socket {}: the connection to pping broke: {reason}", path.display())]
    Broken {
        /// Its path.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The file cannot be read or has an error.
    #[error(transparent)]
    File(#[from] FileError),
    /// pping refused a request.
    #[error("{0}")]
    Refused(String),
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] output::Error),
}

impl Error {
    /// Whether the user gave something wrong.
    pub(crate) fn is_usage(&self) -> bool {
        matches!(self, Self::File(_))
    }
}

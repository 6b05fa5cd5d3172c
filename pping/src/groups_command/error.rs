//! Errors of `pping groups`.

use crate::{groups::ConnectionError, output, sources, text::FileError};

/// Why `pping groups` failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The groups socket cannot be reached, or refused a request.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// A source stopped.
    #[error(transparent)]
    Source(#[from] sources::Error),
    /// This cannot be a source.
    #[error("{0}")]
    SourceName(String),
    /// The file cannot be read or has an error.
    #[error(transparent)]
    File(#[from] FileError),
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] output::Error),
}

impl Error {
    /// Whether the user gave something wrong.
    pub(crate) fn is_usage(&self) -> bool {
        match self {
            Self::File(_) | Self::SourceName(_) => true,
            Self::Source(error) => error.is_usage(),
            Self::Connection(_) | Self::Output(_) => false,
        }
    }
}

//! Why a source stopped, or did not start.

use std::{io, net::SocketAddr, path::PathBuf};

use caps::errors::CapsError;

use crate::{groups::ConnectionError, output, text::FileError};

/// Why a source stopped, or did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be listened at.
    #[error("--listen {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The file of secrets cannot be used.
    #[error("--secret-file {}: {reason}", path.display())]
    Secrets {
        /// The file.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// A file has no leases of the server that it was said to be of.
    #[error("{}: {reason}", path.display())]
    Leases {
        /// The file.
        path: PathBuf,
        /// Which, and what to do.
        reason: String,
    },
    /// A file cannot be read or has an error.
    #[error(transparent)]
    File(#[from] FileError),
    /// pping cannot be reached, or refused something.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The capabilities cannot be dropped.
    #[error("cannot drop capabilities: {0}")]
    Capabilities(#[from] CapsError),
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] output::Error),
    /// A thread or its signals cannot be had.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The thread that does the work ended for no reason that it gave.
    #[error("the work ended early")]
    Ended,
}

impl Error {
    /// Whether the user gave something wrong.
    pub(crate) fn is_usage(&self) -> bool {
        matches!(self, Self::Secrets { .. } | Self::Leases { .. } | Self::File(_))
    }
}

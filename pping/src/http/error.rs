//! Why metrics could not be served.

use std::{io, net::SocketAddr, path::PathBuf};

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address could not be bound.
    #[error("--listen {address}: {source}{}", hint(source))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The web configuration could not be read.
    #[error("--web-config {}: {source}", path.display())]
    OpenWebConfig {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The web configuration is invalid.
    #[error("--web-config {}:{line}:{column}: {reason}", path.display())]
    WebConfig {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The character in the line, from 1.
        column: u64,
        /// The error, and the text to write instead.
        reason: String,
    },
    /// The thread or its runtime could not be started.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Error {
    /// Returns the option whose value is wrong, if the error comes from an option.
    pub fn option(&self) -> Option<&'static str> {
        match self {
            Self::Listen { .. } => Some("listen"),
            Self::OpenWebConfig { .. } | Self::WebConfig { .. } => Some("web-config"),
            Self::Io(_) => None,
        }
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; choose another port, or stop the program that listens there (ss -ltnp)"
        }
        io::ErrorKind::AddrNotAvailable => "; give an address of this host",
        io::ErrorKind::PermissionDenied => "; choose port 1024 or higher, or grant CAP_NET_BIND_SERVICE",
        _ => "",
    }
}

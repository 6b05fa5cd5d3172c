//! Why metrics cannot be pushed.

use std::{io, path::PathBuf};

use crate::{config::Otlp, trust::TlsError};

/// Why the exporter did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The headers could not be read.
    #[error("--otlp-headers {}: {source}", path.display())]
    OpenHeaders {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Everybody may read or change the headers, which may have a password.
    #[error(
        "--otlp-headers {}: every user has access to it (mode {mode:03o}); run chmod o= {}",
        path.display(), path.display()
    )]
    ExposedHeaders {
        /// The file.
        path: PathBuf,
        /// The permissions.
        mode: u32,
    },
    /// A line is not a header.
    #[error("--otlp-headers {}:{line}: {reason}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The error, and the text to write instead. It does not repeat the line, which may have a password.
        reason: String,
    },
    /// The file of authorities could not be read, or has none.
    #[error("--otlp-ca {}: {reason}", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The system has no authorities.
    #[error(
        "--otlp {url}: this system has no CA certificates{reason}; install ca-certificates, or give a file \
         with --otlp-ca"
    )]
    NoAuthorities {
        /// The receiver.
        url: String,
        /// What the system said, after a colon, if anything.
        reason: String,
    },
    /// The host is not valid in a certificate, or in a request.
    #[error("--otlp {url}: {reason}")]
    Host {
        /// The receiver.
        url: String,
        /// Why.
        reason: String,
    },
    /// The thread or its runtime could not be started.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Error {
    /// Returns the error for a fault of certificates.
    pub(super) fn untrusted(settings: &Otlp, fault: TlsError) -> Self {
        let url = settings.endpoint.to_string();
        match (fault, &settings.authorities) {
            (TlsError::Authorities(reason), Some(path)) => Self::Authorities { path: path.clone(), reason },
            (TlsError::NoAuthorities(reason), _) => Self::NoAuthorities { url, reason },
            (TlsError::Authorities(reason) | TlsError::Identity(reason), _) => Self::Host { url, reason },
        }
    }

    /// Returns the option whose value is wrong, if the error comes from an option.
    pub fn option(&self) -> Option<&'static str> {
        match self {
            Self::OpenHeaders { .. } | Self::ExposedHeaders { .. } | Self::Header { .. } => {
                Some("otlp-headers")
            }
            Self::Authorities { .. } => Some("otlp-ca"),
            Self::NoAuthorities { .. } | Self::Host { .. } => Some("otlp"),
            Self::Io(_) => None,
        }
    }
}

//! Why a groups file could not be used.

use std::{io, path::PathBuf};

/// Why a groups file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be read.
    #[error("{}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is invalid.
    #[error("{}:{line}:{column}: {reason}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The character in the line, from 1.
        column: usize,
        /// The mistake, and the text to write instead.
        reason: String,
    },
}

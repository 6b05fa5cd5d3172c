//! Why a file of networks cannot be used.

use std::path::{Path, PathBuf};

use crate::text::FileError;

/// Why a file of networks cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read, or a line of it is invalid.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is no database, or a damaged one.
    #[error("{}: {reason}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        reason: String,
    },
}

impl Error {
    /// An error of a whole file.
    pub(super) fn of_file(path: &Path, reason: &impl ToString) -> Self {
        Self::Database { path: path.to_owned(), reason: reason.to_string() }
    }
}

//! Why the capture of `--read` could not be measured, or not all of it.

use std::{io, path::PathBuf};

use super::Fault;

/// Why a capture file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file could not be opened.
    #[error("{}: {source}{hint}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
        /// What may have been meant.
        hint: String,
    },
    /// The path leads to something that cannot be a capture.
    #[error("{}: {reason}", path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
        /// Why, and what to do.
        reason: &'static str,
    },
    /// The content could not be read, or not to its end.
    #[error("{}: {fault}{}", path.display(), so_far(*packets))]
    Read {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: Fault,
        /// How many packets were read.
        packets: u64,
    },
}

fn so_far(packets: u64) -> String {
    match packets {
        0 => String::new(),
        _ => format!("; {packets} packets were read before that, and their samples are written"),
    }
}

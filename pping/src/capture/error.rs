//! Errors in reading the capture of `--read`.

use std::{io, path::PathBuf};

use super::{buffer::MAX_BLOCK, link};

/// Why a capture cannot be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is empty.
    #[error("the capture is empty")]
    Empty,
    /// The file has another format. Its first bytes, in hexadecimal.
    #[error(
        "not a capture file (it begins with {0}); give a pcap or pcapng file, plain or compressed with gzip \
         or zstd"
    )]
    UnknownFormat(String),
    /// The file is compressed by a program whose format is not supported.
    #[error("compressed with {0}, which pping cannot decompress; try `{0} -dc FILE | pping -r -`")]
    UnsupportedCompression(&'static str),
    /// The file ends inside a packet or block.
    #[error("truncated: the capture ends in the middle of a packet or block")]
    Truncated,
    /// The compressed data end early.
    #[error("truncated: the compressed data end before their end mark, or other data follow it")]
    CompressedTruncated,
    /// Decompressing takes more memory than allowed.
    #[error(
        "decompressing takes more than 128 MiB of memory: decompress it by itself, as in \
         `zstd -dc --long=31 FILE | pping -r -`"
    )]
    CompressedTooWide,
    /// The compressed data are invalid.
    #[error("corrupt compressed data: {0}")]
    CompressedDamaged(io::Error),
    /// This part of the file is invalid.
    #[error("corrupt capture: {0}")]
    Malformed(&'static str),
    /// A packet or block claims an implausible length, bytes.
    #[error(
        "corrupt capture: a packet or block claims a length of {0} bytes, but at most {MAX_BLOCK} are plausible"
    )]
    TooLong(u64),
    /// The major version of the format is unknown.
    #[error("version {0} of the file format is not supported")]
    UnsupportedVersion(u16),
    /// No interface of the capture has a supported link type.
    #[error(
        "link type {number}{} is not supported; {}", link::name(*number), link::SUPPORTED
    )]
    UnsupportedLinkType {
        /// The link type of the first interface.
        number: u32,
    },
    /// Reading failed.
    #[error("reading failed: {0}")]
    Io(io::Error),
}

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
        /// A suggestion, or nothing.
        hint: String,
    },
    /// The path leads to something that cannot be a capture.
    #[error("{}: {reason}", path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
        /// The reason, and what to do.
        reason: &'static str,
    },
    /// The content could not be read to its end.
    #[error("{}: {error}{}", path.display(), so_far(*packets))]
    Read {
        /// The file.
        path: PathBuf,
        /// The error.
        error: Error,
        /// How many packets were read.
        packets: u64,
    },
}

fn so_far(packets: u64) -> String {
    match packets {
        0 => String::new(),
        1 => "; a packet was read before that, and its sample, if it gave one, is written".to_owned(),
        _ => format!("; {packets} packets were read before that, and their samples are written"),
    }
}

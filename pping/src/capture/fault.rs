//! What can be wrong with a capture.

use std::io;

use super::{buffer::LONGEST_BLOCK, link};

/// Why a capture cannot be read, or not any further.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// There is nothing in it.
    #[error("it is empty")]
    Empty,
    /// It begins like nothing known here.
    #[error(
        "it is no capture: it begins with {0}, and a pcap or pcapng file, also compressed by gzip or zstd, does not"
    )]
    Foreign(String),
    /// It is compressed in a way that is not undone here.
    #[error("it is compressed by {0}, which pping does not undo; try `{0} -dc FILE | pping -r -`")]
    Compressed(&'static str),
    /// It ends in the middle of something.
    #[error("it is cut short: it ends in the middle of a packet or block")]
    CutShort,
    /// The compressed data end in the middle of something.
    #[error("it is cut short: the compressed data end before their end mark")]
    CompressedCutShort,
    /// The compressed data cannot be.
    #[error("its compressed data are damaged: {0}")]
    Damaged(io::Error),
    /// Something contradicts itself.
    #[error("it is damaged: {0}")]
    Malformed(&'static str),
    /// A length that cannot be.
    #[error(
        "it is damaged: a packet or block claims {0} bytes, and more than {LONGEST_BLOCK} are not believed"
    )]
    TooLong(u64),
    /// A version that came after this was written, or long before.
    #[error("it is in version {0} of its format, which is not known here")]
    Version(u16),
    /// There is nothing in it that could be looked into.
    #[error("its packets are of link type {number}{}, which is not supported; {}", link::name(*number), link::SUPPORTED)]
    LinkType {
        /// The number, as of <https://www.tcpdump.org/linktypes.html>.
        number: u32,
    },
    /// Reading failed.
    #[error("reading failed: {0}")]
    Io(io::Error),
}

//! A frame that records how it is read.

use std::cell::Cell;

use pping_common::{
    bytes::{Bytes, Captured},
    parse::{Frame, Kind, Untracked},
};

/// A frame whose reads are as strict as in the kernel.
pub(super) struct Watched<'a> {
    frame: Captured<'a>,
    /// Whether a read has failed. No read may follow.
    has_failed: Cell<bool>,
}

impl<'a> Watched<'a> {
    pub(super) fn new(frame: Captured<'a>) -> Self {
        Self { frame, has_failed: Cell::new(false) }
    }

    /// Asserts that a parse reports truncation if and only if a read failed. A TCP segment may also do without its last
    /// options, and an echo without its data.
    pub(super) fn assert_reads_explain(&self, parsed: Result<(), Untracked>, frame: &Frame) {
        let is_truncated = parsed == Err(Untracked::Truncated);
        let does_without = parsed.is_ok() && matches!(frame.transport.kind, Kind::Tcp | Kind::Echo);
        assert!(self.has_failed.get() == is_truncated || does_without, "{parsed:?}: {frame:?}");
    }
}

impl Bytes for Watched<'_> {
    fn read<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        assert!(!self.has_failed.get(), "{N} bytes at {offset} are read after a read that failed");
        assert!(N >= 2, "the verifier does not follow a read of one byte at {offset}");
        let read = self.frame.read(offset);
        assert_eq!(read.is_some(), offset + N <= self.frame.bytes.len());
        self.has_failed.set(read.is_none());
        read
    }

    /// In the kernel this is a mask, which must not change the offset.
    fn bounded<const N: usize>(value: usize) -> usize {
        assert!(value < N, "{value} is not below {N}");
        value
    }

    fn frame_len(&self) -> usize {
        self.frame.frame_len
    }
}

//! Encoded records on their way to the writer.

use std::mem;

/// The frame that a format puts around its records. The writer adds it, so a file stays valid even if records were dropped or the
/// file was rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Before the first record of a file.
    pub begin: &'static [u8],
    /// Between two records.
    pub separator: &'static [u8],
    /// After the last record.
    pub end: &'static [u8],
    /// After `begin`, in a file without records.
    pub end_of_none: &'static [u8],
}

impl Framing {
    /// Records are lines, each with its own end.
    pub const LINES: Self = Self { begin: b"", separator: b"", end: b"", end_of_none: b"" };

    /// Whether a file needs more than its records. Such a file cannot be appended to.
    pub fn is_closed(self) -> bool {
        self != Self::LINES
    }
}

/// Lines that a reader needs before the records of a batch, once in each file.
pub(super) struct Header {
    /// A file that has a header with another number needs this one as well.
    pub(super) number: u64,
    pub(super) bytes: Vec<u8>,
}

/// Whole records, each with a separator before it.
#[derive(Default)]
pub struct Batch {
    header: Option<Header>,
    bytes: Vec<u8>,
    /// The offset after each record, bytes.
    ends: Vec<usize>,
}

impl Batch {
    /// Adds the record that `encode` appends to the buffer; none if it appends nothing.
    pub fn push(&mut self, framing: Framing, encode: impl FnOnce(&mut Vec<u8>)) {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(framing.separator);
        let start = self.bytes.len();
        encode(&mut self.bytes);
        if self.bytes.len() == start {
            self.bytes.truncate(before);
        } else {
            self.ends.push(self.bytes.len());
        }
    }

    /// Has the writer write these bytes before the records, unless the file has a header of this number.
    pub(crate) fn set_header(&mut self, number: u64, bytes: Vec<u8>) {
        self.header = Some(Header { number, bytes });
    }

    /// The header, if the records need one.
    pub(super) fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// The encoded records.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The offset after each record, bytes.
    pub(super) fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// The number of records.
    pub(super) fn records(&self) -> u64 {
        self.ends.len() as u64
    }

    /// The size of the encoded records, bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Takes the records, and leaves this batch empty.
    pub(crate) fn take(&mut self) -> Self {
        mem::take(self)
    }
}

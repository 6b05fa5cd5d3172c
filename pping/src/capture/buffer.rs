//! Bytes that were read and not yet parsed.

use std::io::{self, Read};

/// The size of a read, bytes.
const READ: usize = 256 << 10;

/// The size of the longest block that is accepted, bytes: four times the longest packet that tcpdump captures. The options
/// of a pcapng block can take eight times its size once parsed.
pub(super) const MAX_BLOCK: usize = 1 << 20;

/// A window that moves along a source. It grows with the bytes that arrived, not with lengths that the file claims.
pub(super) struct Buffer<R> {
    source: R,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes to skip that have not arrived yet.
    to_skip: u64,
}

impl<R: Read> Buffer<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, bytes: vec![0; READ], start: 0, end: 0, to_skip: 0 }
    }

    /// The bytes in the window.
    #[inline]
    pub(super) fn data(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// Consumes up to `count` bytes, and returns them; they are valid until the next [`Buffer::fill`].
    #[inline]
    pub(super) fn take(&mut self, count: usize) -> &[u8] {
        let start = self.start;
        self.start = (start + count).min(self.end);
        self.bytes.get(start..self.start).unwrap_or_default()
    }

    /// Consumes `count` bytes, which need not have arrived yet.
    pub(super) fn skip(&mut self, count: u64) {
        let here = count.min(self.data().len() as u64);
        self.start += here as usize;
        self.to_skip += count - here;
    }

    /// Whether nothing is left to parse or to skip.
    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end && self.to_skip == 0
    }

    /// Reads once. Returns false at the end of the source.
    ///
    /// # Errors
    /// If the source fails. An interrupted read is repeated.
    pub(super) fn fill(&mut self) -> io::Result<bool> {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.bytes.len() {
            self.bytes.resize((2 * self.end).min(MAX_BLOCK + READ), 0);
        }
        let read = loop {
            match self.source.read(self.bytes.get_mut(self.end..).unwrap_or_default()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        self.end += read;
        let to_skip = self.to_skip;
        self.to_skip = 0;
        self.skip(to_skip);
        Ok(read > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_grows_with_the_bytes_that_arrive() {
        let bytes: Vec<u8> = (0..3 * READ).map(|at| at as u8).collect();
        let mut buffer = Buffer::new(&bytes[..]);
        assert!(buffer.fill().unwrap() && buffer.bytes.len() == READ);
        buffer.take(7);
        // Consumed bytes are overwritten first.
        assert!(buffer.fill().unwrap() && buffer.bytes.len() == READ);
        assert!(buffer.fill().unwrap() && buffer.bytes.len() == 2 * READ);
        assert_eq!(buffer.data(), &bytes[7..][..buffer.data().len()]);
    }

    #[test]
    fn bytes_can_be_skipped_before_they_arrive() {
        let bytes = vec![1; 2 * READ + 5];
        let mut buffer = Buffer::new(&bytes[..]);
        buffer.skip(2 * READ as u64);
        assert!(!buffer.is_empty());
        while buffer.fill().unwrap() {}
        assert_eq!(buffer.data().len(), 5);
        assert_eq!(buffer.bytes.len(), READ);
        buffer.skip(6);
        assert!(!buffer.is_empty(), "one was missing");
    }
}

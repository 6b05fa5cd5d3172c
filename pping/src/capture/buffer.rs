//! What has been read and not been used yet.

use std::io::{self, Read};

/// Bytes that are asked for at a time.
const READ: usize = 256 << 10;

/// The longest block that is held in memory as a whole: four times the longest packet that tcpdump captures. More would
/// be more than memory for the block: taken apart into options, a pcapng block can take eight times its length.
pub(super) const LONGEST_BLOCK: usize = 1 << 20;

/// A window that moves along a source. It grows with what has come in, never with what is said to come.
pub(super) struct Buffer<R> {
    source: R,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes still to come that nobody wants.
    unwanted: u64,
}

impl<R: Read> Buffer<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, bytes: vec![0; READ], start: 0, end: 0, unwanted: 0 }
    }

    /// What is there.
    #[inline]
    pub(super) fn data(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// Goes on by `count` bytes, and returns those; they stay what they are until the next [`Buffer::fill`].
    #[inline]
    pub(super) fn take(&mut self, count: usize) -> &[u8] {
        let start = self.start;
        self.start = (start + count).min(self.end);
        self.bytes.get(start..self.start).unwrap_or_default()
    }

    /// Goes on by `count` bytes, which need not be there yet.
    pub(super) fn skip(&mut self, count: u64) {
        let here = count.min(self.data().len() as u64);
        self.start += here as usize;
        self.unwanted += count - here;
    }

    /// Whether there is nothing that was begun.
    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end && self.unwanted == 0
    }

    /// Reads once; whether there was anything left to read.
    ///
    /// # Errors
    /// Those of the source, but for interruptions.
    pub(super) fn fill(&mut self) -> io::Result<bool> {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.bytes.len() {
            self.bytes.resize((2 * self.end).min(LONGEST_BLOCK + READ), 0);
        }
        let read = loop {
            match self.source.read(self.bytes.get_mut(self.end..).unwrap_or_default()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        self.end += read;
        let unwanted = self.unwanted;
        self.unwanted = 0;
        self.skip(unwanted);
        Ok(read > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_with_what_comes_in_and_only_then() {
        let bytes: Vec<u8> = (0..3 * READ).map(|at| at as u8).collect();
        let mut buffer = Buffer::new(&bytes[..]);
        assert!(buffer.fill().unwrap() && buffer.bytes.len() == READ);
        buffer.take(7);
        // Room for what was used comes first.
        assert!(buffer.fill().unwrap() && buffer.bytes.len() == READ);
        assert!(buffer.fill().unwrap() && buffer.bytes.len() == 2 * READ);
        assert_eq!(buffer.data(), &bytes[7..][..buffer.data().len()]);
    }

    #[test]
    fn what_is_skipped_need_not_be_there() {
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

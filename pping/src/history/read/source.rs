//! The bytes of a file.

use std::{
    fs::File,
    io::{self, BufReader, ErrorKind, Read},
    num::NonZeroU64,
    ops::Range,
    os::unix::fs::FileExt as _,
    path::Path,
    sync::Arc,
};

use parquet::{
    errors::ParquetError,
    file::reader::{ChunkReader, Length},
};
use rustix::fs::{Advice, fadvise};

use super::Error;
use crate::text;

/// The bytes at the end of a file that hold its footer and the places of its pages, in most files.
const TAIL: u64 = 128 << 10;

/// A file whose bytes are read at any offset, by any thread.
pub(super) struct Source {
    file: Arc<File>,
    length: u64,
}

/// A place in it.
pub(super) struct At {
    file: Arc<File>,
    offset: u64,
}

impl Source {
    /// Opens a file.
    ///
    /// # Errors
    /// If it cannot be read, or is damaged: something that is not a file, such as a pipe, is too.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let opened = text::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        match opened {
            Ok((length, file)) => {
                let source = Self { file: Arc::new(file), length };
                source.prefetch(length.saturating_sub(TAIL)..length);
                Ok(source)
            }
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                Err(Error::damaged(path, error.to_string()))
            }
            Err(error) => Err(Error::read(path, error)),
        }
    }

    /// Has the kernel fetch bytes that will be read. A disk answers many such requests in the time of a few, while reads wait for one
    /// after the other.
    pub(super) fn prefetch(&self, bytes: Range<u64>) {
        if let Some(length) = NonZeroU64::new(bytes.end.saturating_sub(bytes.start)) {
            // A file system that does not do it leaves it to the reads.
            fadvise(&self.file, bytes.start, Some(length), Advice::WillNeed).ok();
        }
    }
}

impl Length for Source {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Source {
    type T = BufReader<At>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BufReader::new(At { file: Arc::clone(&self.file), offset: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<bytes::Bytes, ParquetError> {
        let in_file = start.checked_add(length as u64).is_some_and(|end| end <= self.length);
        if !in_file {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} are beyond the end")));
        }
        let mut read = vec![0; length];
        self.file.read_exact_at(&mut read, start)?;
        Ok(read.into())
    }
}

impl Read for At {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

//! The bytes of a file.

use std::{
    fs::File,
    io::{self, BufReader, ErrorKind, Read},
    os::unix::fs::FileExt as _,
    path::Path,
    sync::Arc,
};

use parquet::{
    errors::ParquetError,
    file::reader::{ChunkReader, Length},
};

use super::Error;
use crate::text;

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
            Ok((length, file)) => Ok(Self { file: Arc::new(file), length }),
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                Err(Error::damaged(path, error.to_string()))
            }
            Err(error) => Err(Error::read(path, error)),
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

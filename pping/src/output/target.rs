//! Where records go: whole, or not at all.

use std::{
    fs::{File, OpenOptions},
    io::{self, Seek as _, SeekFrom, Write as _},
    os::fd::AsFd as _,
    path::Path,
};

use rustix::event::{PollFd, PollFlags, poll};

use crate::{Error, records::format::Framing};

/// A file, or whatever else can be written to.
pub(crate) struct Target {
    file: File,
    /// Whether what was written can be taken back.
    is_regular: bool,
    /// The rest of a record whose beginning could not be taken back, for what comes next to begin on a line of its own.
    unfinished: Vec<u8>,
}

/// Not everything could be written.
#[derive(Debug)]
pub(crate) struct Torn {
    /// Of how many bytes, which end where a record does, somebody will read all.
    pub(crate) kept: usize,
    /// Why there are no more.
    pub(crate) error: io::Error,
}

impl Target {
    /// Opens a file, to write at its end.
    ///
    /// # Errors
    /// [`Error::OpenOutput`], or [`Error::NotEmpty`] if its format cannot be gone on with.
    pub(super) fn open(path: &Path, framing: Framing) -> Result<Self, Error> {
        let refused = |source| Error::OpenOutput { path: path.to_owned(), source };
        let target = Self::append(path).map_err(refused)?;
        if framing.is_closed() && target.file.metadata().map_err(refused)?.len() > 0 {
            return Err(Error::NotEmpty { path: path.to_owned() });
        }
        Ok(target)
    }

    /// Opens a file, to write at its end, whatever is in it.
    pub(crate) fn append(path: &Path) -> io::Result<Self> {
        Self::new(OpenOptions::new().create(true).append(true).open(path)?)
    }

    /// Standard output, without a buffer in between that would keep what could not be written.
    pub(super) fn standard_output() -> io::Result<Self> {
        Self::new(io::stdout().as_fd().try_clone_to_owned()?.into())
    }

    fn new(file: File) -> io::Result<Self> {
        let is_regular = file.metadata()?.is_file();
        Ok(Self { file, is_regular, unfinished: Vec::new() })
    }

    /// Whether it is a file on a disk.
    pub(super) fn is_regular(&self) -> bool {
        self.is_regular
    }

    /// Writes bytes in which records end at `ends`.
    pub(crate) fn write(&mut self, bytes: &[u8], ends: impl Iterator<Item = usize>) -> Result<(), Torn> {
        let (written, done) = write(&mut self.file, &self.unfinished);
        self.unfinished.drain(..written);
        done.map_err(|error| Torn { kept: 0, error })?;
        let (written, done) = write(&mut self.file, bytes);
        done.map_err(|error| Torn { kept: self.settle(bytes, ends, written), error })
    }

    /// Takes back the record that was torn after `written` bytes, or sees to its end. Returns what is kept.
    pub(super) fn settle(
        &mut self,
        bytes: &[u8],
        ends: impl Iterator<Item = usize>,
        written: usize,
    ) -> usize {
        let mut whole = 0;
        for end in ends {
            if end <= written {
                whole = end;
            } else if whole < written && self.take_back(written - whole).is_err() {
                self.unfinished = bytes[written..end].to_vec();
                return end;
            } else {
                break;
            }
        }
        whole
    }

    /// Takes back the last bytes.
    ///
    /// # Errors
    /// When it is no file, or has been written to by somebody else since.
    pub(super) fn take_back(&mut self, bytes: usize) -> io::Result<()> {
        // Of a file that is appended to, too, this is where the last write ended.
        let end = self.file.stream_position()?;
        let before = end.checked_sub(bytes as u64);
        match before {
            Some(before) if self.is_regular && self.file.metadata()?.len() == end => {
                self.file.set_len(before)?;
                self.file.seek(SeekFrom::Start(before))?;
                Ok(())
            }
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

/// Writes as much as can be written: how much that was, and why it is not all.
fn write(file: &mut File, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Whoever shares the pipe may have made it one that does not wait.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if let Err(error) = poll(&mut [PollFd::new(file, PollFlags::OUT)], None) {
                    return (written, Err(error.into()));
                }
            }
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

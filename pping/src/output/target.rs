//! Writes a file so that it always ends with a whole record.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Seek as _, SeekFrom, Write as _},
    os::{
        fd::AsFd as _,
        unix::fs::{FileTypeExt as _, OpenOptionsExt as _},
    },
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::OFlags,
    io::Errno,
};

use super::{batch::Framing, error::Error};

/// How long a named pipe may have no reader, which may be started at the same time.
const READER_PATIENCE: Duration = Duration::from_secs(2);
const READER_INTERVAL: Duration = Duration::from_millis(20);

/// A file, a pipe or a device.
pub(super) struct Target {
    file: File,
    /// Whether it can be truncated.
    is_regular: bool,
    /// The rest of a record whose beginning could not be truncated; written before anything else.
    unfinished: Vec<u8>,
}

/// An incomplete write.
#[derive(Debug)]
pub(super) struct Torn {
    /// The number of bytes of whole records that are, or will be, in the file.
    pub(super) kept: usize,
    /// The error that stopped the rest.
    pub(super) error: io::Error,
}

impl Target {
    /// Opens the file of `option`, to append.
    ///
    /// # Errors
    /// [`Error::Open`], [`Error::NoReader`], or [`Error::NotEmpty`] if the format cannot be appended to.
    pub(super) fn open(option: &'static str, path: &Path, framing: Framing) -> Result<Self, Error> {
        let refused = Error::open(option, path);
        let file = open(path).map_err(&refused)?;
        let file = file.ok_or_else(|| Error::NoReader { option, path: path.to_owned() })?;
        let target = Self::new(file).map_err(&refused)?;
        if framing.is_closed() && target.file.metadata().map_err(&refused)?.len() > 0 {
            return Err(Error::NotEmpty { path: path.to_owned() });
        }
        Ok(target)
    }

    /// Opens standard output without std's buffer, which would keep the bytes that could not be written.
    pub(super) fn standard_output() -> io::Result<Self> {
        Self::new(io::stdout().as_fd().try_clone_to_owned()?.into())
    }

    fn new(file: File) -> io::Result<Self> {
        let is_regular = file.metadata()?.is_file();
        Ok(Self { file, is_regular, unfinished: Vec::new() })
    }

    /// Whether it is a regular file.
    pub(super) fn is_regular(&self) -> bool {
        self.is_regular
    }

    /// Whether the rest of a record is still to be written.
    pub(super) fn has_unfinished(&self) -> bool {
        !self.unfinished.is_empty()
    }

    /// Writes `bytes`, in which records end at the offsets `ends`.
    ///
    /// # Errors
    /// If not all of it could be written. The file then ends with a whole record, or will after the next write.
    pub(super) fn write(&mut self, bytes: &[u8], ends: impl Iterator<Item = usize>) -> Result<(), Torn> {
        let (written, done) = write(&mut self.file, &self.unfinished);
        self.unfinished.drain(..written);
        done.map_err(|error| Torn { kept: 0, error })?;
        let (written, done) = write(&mut self.file, bytes);
        done.map_err(|error| Torn { kept: self.repair(bytes, ends, written), error })
    }

    /// Truncates the record that is incomplete after `written` bytes or, where that is impossible, keeps its rest for the
    /// next write. Returns the offset of the end of the last whole record.
    pub(super) fn repair(
        &mut self,
        bytes: &[u8],
        ends: impl Iterator<Item = usize>,
        written: usize,
    ) -> usize {
        let mut whole = 0;
        for end in ends {
            if end <= written {
                whole = end;
            } else if whole < written && self.truncate(written - whole).is_err() {
                self.unfinished = bytes[written..end].to_vec();
                return end;
            } else {
                break;
            }
        }
        whole
    }

    /// Removes the last bytes of the file.
    ///
    /// # Errors
    /// If it is not a regular file, or another process has appended to it since.
    pub(super) fn truncate(&mut self, bytes: usize) -> io::Result<()> {
        // Appending moves the position as well: this is where the last write ended.
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

/// Opens a file to append; `None` if it is a named pipe without a reader.
fn open(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    // Otherwise the open itself would wait for a reader, and no signal but SIGKILL would end pping.
    options.create(true).append(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let began = Instant::now();
    loop {
        match options.open(path) {
            Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) && is_pipe(path) => {
                if began.elapsed() >= READER_PATIENCE {
                    return Ok(None);
                }
                thread::sleep(READER_INTERVAL);
            }
            opened => return opened.map(Some),
        }
    }
}

fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// Writes as much as possible. Returns the number of bytes written, and the error that stopped the rest.
fn write(file: &mut File, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Files are opened like that, and a process that shares standard output may have made it so.
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

//! Reads a file or standard input, and can stop while it waits for input.

use std::{
    fs::{File, OpenOptions},
    io::{self, ErrorKind, IsTerminal as _, Read},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::OpenOptionsExt as _,
    },
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
    io::Errno,
};

use crate::capture::FileError;

/// The interval of checking whether to stop, while no input arrives.
const LOOK_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The source of bytes.
pub(super) struct Input {
    file: File,
    /// Its length, if it has one.
    pub(super) len: Option<u64>,
    /// Bytes read so far.
    pub(super) read: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Input {
    /// Opens a file, or standard input for `-`; reading ends once `stop` is set.
    ///
    /// # Errors
    /// If the file cannot be opened, or cannot be a capture.
    pub(super) fn open(path: &Path, stop: Arc<AtomicBool>) -> Result<Self, FileError> {
        let failed = |source| FileError::Open { path: path.to_owned(), source, hint: rate_limit_hint(path) };
        let refused = |reason| FileError::NotAFile { path: path.to_owned(), reason };
        let file = if path == Path::new("-") {
            let stdin = io::stdin();
            if stdin.is_terminal() {
                return Err(refused("standard input is a terminal; pipe a capture into it"));
            }
            let descriptor: OwnedFd = stdin.as_fd().try_clone_to_owned().map_err(failed)?;
            File::from(descriptor)
        } else {
            // A named pipe opens at once, and is waited for below.
            let open =
                OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path);
            open.map_err(failed)?
        };
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(refused("it is a directory; give one of the captures in it"));
        }
        let len = metadata.is_file().then_some(metadata.len());
        Ok(Self { file, len, read: Arc::default(), stop })
    }

    /// Waits until there is something to read.
    fn wait(&self) -> io::Result<()> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(io::Error::other("stopped"));
            }
            let mut polled = [PollFd::new(&self.file, PollFlags::IN)];
            match poll(&mut polled, Some(&LOOK_INTERVAL)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Read for Input {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = loop {
            self.wait()?;
            match self.file.read(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => break read?,
            }
        };
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Returns a hint for a path that is a number: `-r` of ePPing is the rate limit, in milliseconds.
fn rate_limit_hint(path: &Path) -> String {
    match path.to_str() {
        Some(text) if text.parse::<f64>().is_ok() => {
            format!("; to limit the rate of samples (-r of ePPing), use --rate-limit {text}ms")
        }
        _ => String::new(),
    }
}

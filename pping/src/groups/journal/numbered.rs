//! The form of the file: a first line that says what it is, and lines with a number and a request.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::Path,
};

use rustix::fs::OFlags;

use super::super::protocol::MAX_LINE;

/// The first line.
pub(super) const HEADER: &[u8] = b"{\"pping_groups\":2}\n";

/// The longest line: a number of 20 digits, a space and a request.
pub(super) const MAX_NUMBERED: usize = MAX_LINE + 21;

/// Splits a line, without its line break, into the number and the request.
pub(super) fn split_number(line: &[u8]) -> Option<(u64, &[u8])> {
    let space = line.iter().position(|&byte| byte == b' ')?;
    let (number, request) = line.split_at_checked(space)?;
    Some((std::str::from_utf8(number).ok()?.parse().ok()?, request.trim_ascii_start()))
}

/// A file that is appended to.
pub(super) struct Numbered {
    pub(super) file: File,
    /// The number of the last change in it.
    last: u64,
}

impl Numbered {
    /// Begins a file.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let mut file = create(path)?;
        file.write_all(HEADER)?;
        Ok(Self { file, last: 0 })
    }

    /// Appends requests, each with its number.
    pub(super) fn append(&mut self, requests: &[u8]) -> io::Result<()> {
        let mut lines = Vec::with_capacity(requests.len() + requests.len() / 4);
        for request in requests.split_inclusive(|&byte| byte == b'\n') {
            self.last += 1;
            write!(lines, "{} ", self.last)?;
            lines.extend_from_slice(request);
        }
        self.file.write_all(&lines)
    }
}

/// Creates a file, in place of what has its name. Another user must not learn who has which address, nor have put a link there.
fn create(path: &Path) -> io::Result<File> {
    fs::remove_file(path).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })?;
    OpenOptions::new().append(true).create_new(true).mode(0o640).open(path)
}

/// Opens the file of an earlier run to append to it; `None` if there is none, or if its last line is not whole.
pub(super) fn open_whole(path: &Path) -> Option<Numbered> {
    let without_waiting = OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().read(true).append(true).custom_flags(without_waiting).open(path).ok()?;
    let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
    let length = (MAX_NUMBERED as u64).min(metadata.len());
    let mut end = vec![0; length as usize];
    file.read_exact_at(&mut end, metadata.len() - length).ok()?;
    let last = end.strip_suffix(b"\n")?.rsplit(|&byte| byte == b'\n').next()?;
    let last = if *last == HEADER[..HEADER.len() - 1] { 0 } else { split_number(last)?.0 };
    Some(Numbered { file, last })
}

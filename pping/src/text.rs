//! Text files that people write: reading them, and positions in them.

use std::{fs::File, io, io::Read as _, path::Path, string::FromUtf8Error};

/// A position in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The line, from 1.
    pub(crate) line: usize,
    /// The character in the line, from 1, as editors count.
    pub(crate) column: usize,
}

impl Position {
    /// The position of a byte of a text.
    pub(crate) fn new(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = 1 + before.bytes().filter(|&byte| byte == b'\n').count();
        Self { line, column: 1 + before[line_start..].trim_start_matches('\u{feff}').chars().count() }
    }
}

/// Why a text could not be read.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The file could not be read.
    Io(io::Error),
    /// The file is not UTF-8 from this position on.
    NotUtf8(Position),
}

impl ReadError {
    /// The message at the position of a byte that is not UTF-8.
    pub(crate) const NOT_UTF8: &str = "this is not UTF-8; save the file as UTF-8";
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<FromUtf8Error> for ReadError {
    fn from(error: FromUtf8Error) -> Self {
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(&error.as_bytes()[..valid]);
        Self::NotUtf8(Position::new(&text, valid))
    }
}

/// Reads a text of at most `max_bytes`, so that a device or the wrong file does not fill the memory.
///
/// # Errors
/// When the file cannot be read, is longer, or is not UTF-8.
pub(crate) fn read(path: &Path, max_bytes: u64) -> Result<String, ReadError> {
    let file = File::open(path)?;
    let mut bytes = Vec::new();
    bytes.reserve_exact(file.metadata()?.len().min(max_bytes) as usize);
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        let message = format!("it is longer than {} MiB", max_bytes >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message).into());
    }
    Ok(String::from_utf8(bytes)?)
}

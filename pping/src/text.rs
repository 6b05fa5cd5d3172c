//! Text files that people write: reading them, and positions in them.

use std::{
    fs::{File, OpenOptions},
    io,
    io::Read as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    string::FromUtf8Error,
};

use rustix::fs::OFlags;

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

/// Why a file that people write could not be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It could not be read.
    #[error("{}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is invalid.
    #[error("{}:{line}:{column}: {reason}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The character in the line, from 1.
        column: usize,
        /// The error, and the text to write instead.
        reason: String,
    },
}

/// An error in a text, and the byte at which it is.
#[derive(Debug)]
pub(crate) struct TextError {
    pub(crate) offset: usize,
    pub(crate) reason: String,
}

impl TextError {
    pub(crate) fn new(offset: usize, reason: impl Into<String>) -> Self {
        Self { offset, reason: reason.into() }
    }

    /// An error in a text that is not TOML.
    pub(crate) fn of_toml(error: &toml::de::Error) -> Self {
        Self::new(error.span().map_or(0, |span| span.start), error.message().trim_end())
    }

    /// An error in a value.
    pub(crate) fn at<T>(value: &toml::Spanned<T>, reason: impl Into<String>) -> Self {
        Self::new(value.span().start, reason)
    }
}

/// The highest number of errors of a text that are reported. Others are only counted.
const MAX_ERRORS: usize = 100;

/// The errors of a text.
#[derive(Debug, Default)]
pub(crate) struct TextErrors {
    found: Vec<TextError>,
    more: usize,
}

impl TextErrors {
    pub(crate) fn add(&mut self, error: TextError) {
        if self.found.len() < MAX_ERRORS {
            self.found.push(error);
        } else {
            self.more += 1;
        }
    }

    /// Adds the error of a result, if it has one, for a reader that goes on.
    pub(crate) fn ok_or_add<T>(&mut self, result: Result<T, TextError>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns them in the order of the text.
    fn at(mut self, path: &Path, text: &str) -> Vec<FileError> {
        self.found.sort_by_key(|error| error.offset);
        if let Some(last) = self.found.last_mut().filter(|_| self.more > 0) {
            last.reason = format!("{} (and there are {} more errors)", last.reason, self.more);
        }
        let at = |TextError { offset, reason }| FileError::invalid(path, Position::new(text, offset), reason);
        self.found.into_iter().map(at).collect()
    }
}

/// Reads a file of at most `max_bytes`, and parses it.
///
/// # Errors
/// Like [`parse`], with all errors in the order of the text.
pub(crate) fn parse_all<T>(
    path: &Path,
    max_bytes: u64,
    parse: impl FnOnce(&str) -> Result<T, TextErrors>,
) -> Result<T, Vec<FileError>> {
    let text = read_text(path, max_bytes).map_err(|error| vec![error])?;
    parse(&text).map_err(|errors| errors.at(path, &text))
}

/// Reads standard input, of at most `max_bytes`, and parses it.
///
/// # Errors
/// Like [`parse_all`].
#[cfg(feature = "live")]
pub(crate) fn parse_all_of_stdin<T>(
    max_bytes: u64,
    parse: impl FnOnce(&str) -> Result<T, TextErrors>,
) -> Result<T, Vec<FileError>> {
    let name = Path::new("standard input");
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(max_bytes).read_to_end(&mut bytes).map_err(ReadError::from);
    let text = read.and_then(|_| Ok(String::from_utf8(bytes)?));
    let text = text.map_err(|error| vec![error.of(name)])?;
    parse(&text).map_err(|errors| errors.at(name, &text))
}

/// Reads a file of at most `max_bytes`, and parses it.
///
/// # Errors
/// If the file cannot be read, is longer or is not UTF-8, or has an error.
pub(crate) fn parse<T>(
    path: &Path,
    max_bytes: u64,
    parse: impl FnOnce(&str) -> Result<T, TextError>,
) -> Result<T, FileError> {
    parse_text(path, &read_text(path, max_bytes)?, parse)
}

/// Reads a text file of at most `max_bytes`.
///
/// # Errors
/// Like [`read`].
pub(crate) fn read_text(path: &Path, max_bytes: u64) -> Result<String, FileError> {
    read(path, max_bytes).map_err(|error| error.of(path))
}

/// Parses the text of a file.
///
/// # Errors
/// If the text has an error.
pub(crate) fn parse_text<T>(
    path: &Path,
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, TextError>,
) -> Result<T, FileError> {
    parse(text)
        .map_err(|TextError { offset, reason }| FileError::invalid(path, Position::new(text, offset), reason))
}

impl FileError {
    /// An error at a position of a file.
    pub(crate) fn invalid(path: &Path, Position { line, column }: Position, reason: String) -> Self {
        Self::Invalid { path: path.to_owned(), line, column, reason }
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

    /// The error of a file.
    fn of(self, path: &Path) -> FileError {
        match self {
            Self::Io(source) => FileError::Open { path: path.to_owned(), source },
            Self::NotUtf8(position) => FileError::invalid(path, position, Self::NOT_UTF8.to_owned()),
        }
    }
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

/// Reads a text of at most `max_bytes`.
///
/// # Errors
/// If [`open`] refuses the file, or if it cannot be read, is longer, or is not UTF-8.
pub(crate) fn read(path: &Path, max_bytes: u64) -> Result<String, ReadError> {
    Ok(String::from_utf8(read_bytes(open(path)?, max_bytes)?)?)
}

/// Reads a file of at most `max_bytes` that is no text.
///
/// # Errors
/// If [`open`] refuses the file, or if it cannot be read or is longer.
pub(crate) fn read_file(path: &Path, max_bytes: u64) -> Result<Vec<u8>, FileError> {
    let read = open(path).and_then(|file| read_bytes(file, max_bytes));
    read.map_err(|source| FileError::Open { path: path.to_owned(), source })
}

/// Opens a file that people write. It must be a regular file: opening a named pipe, or reading a terminal, would wait for
/// as long as nobody writes, and a reload would never end.
///
/// # Errors
/// If it cannot be opened, or is something else.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    // Without this flag, opening a named pipe waits for its writer.
    let without_waiting = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(without_waiting).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    let reason = "this is not a regular file; pping reads no directories, pipes or devices here";
    Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
}

/// Reads the rest of a file of at most `max_bytes`, so that the wrong file does not fill the memory.
///
/// # Errors
/// If the file cannot be read or is longer.
pub(crate) fn read_bytes(file: File, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.reserve_exact(file.metadata()?.len().min(max_bytes) as usize);
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        let longest = if max_bytes < 1 << 20 {
            format!("{} KiB", max_bytes >> 10)
        } else {
            format!("{} MiB", max_bytes >> 20)
        };
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is longer than {longest}")));
    }
    Ok(bytes)
}

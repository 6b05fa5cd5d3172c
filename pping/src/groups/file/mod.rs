//! Reading a groups file.

mod lines;
mod listed;
mod tables;
#[cfg(test)]
mod tests;

use std::path::Path;

pub use self::listed::Groups;
use self::listed::{Listed, Mistake};
use super::{error::Error, labels::Labels};
use crate::text::{self, Position, ReadError};

/// The longest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// Reads a groups file: TOML if its name ends in `.toml`, else CSV. Labels that are new get numbers.
///
/// # Errors
/// What is wrong with the file, and where; `labels` are as they were.
pub fn load(path: &Path, labels: &mut Labels) -> Result<Groups, Error> {
    let invalid = |Position { line, column }: Position, reason: String| Error::Invalid {
        path: path.to_owned(),
        line,
        column,
        reason,
    };
    let text = text::read(path, MAX_BYTES).map_err(|error| match error {
        ReadError::Io(source) => Error::Open { path: path.to_owned(), source },
        ReadError::NotUtf8(position) => invalid(position, ReadError::NOT_UTF8.to_owned()),
    })?;
    let read = if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) {
        tables::read
    } else {
        lines::read
    };
    let mut listed = Listed::new(&text);
    read(&text, &mut listed)
        .and_then(|()| listed.check())
        .map_err(|Mistake { offset, reason }| invalid(Position::new(&text, offset), reason))
        .map(|()| listed.number(labels))
}

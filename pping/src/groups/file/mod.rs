//! Reading a groups file.

mod lines;
mod listed;
mod tables;
#[cfg(test)]
mod tests;

use std::path::Path;

pub use self::listed::Groups;
use self::listed::Listed;
use super::labels::Labels;
use crate::text::{self, FileError};

/// The longest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// Reads a groups file: TOML if its name ends in `.toml`, else CSV. New labels get numbers.
///
/// # Errors
/// If the file cannot be read or has a mistake, with its position. `labels` are unchanged then.
pub fn load(path: &Path, labels: &mut Labels) -> Result<Groups, FileError> {
    let is_toml = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
    let read = if is_toml { tables::read } else { lines::read };
    text::parse(path, MAX_BYTES, |text| {
        let mut listed = Listed::new(text);
        read(text, &mut listed)?;
        listed.check()?;
        Ok(listed.number(labels))
    })
}

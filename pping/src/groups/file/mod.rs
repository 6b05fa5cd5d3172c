//! Reading a groups file.

mod fields;
mod lines;
mod listed;
mod tables;
#[cfg(test)]
mod tests;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

pub use self::listed::{Groups, GroupsFile, PrefixRule};
use self::listed::{Listed, into_file};
use super::{labels::Labels, levels::Levels};
use crate::text::{self, FileError, TextErrors};

/// The longest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// The number of errors that are not counted for somebody who sees the first alone.
const MANY: usize = 20;

/// Reads a groups file: TOML if its name ends in `.toml`, else CSV. New labels get numbers.
///
/// # Errors
/// If the file cannot be read or has errors: the first, with its position, and how many follow. `labels` are unchanged
/// then.
pub fn load(path: &Path, prefixes: PrefixRule, labels: &mut Labels) -> Result<Groups, FileError> {
    let groups = open(path, prefixes)?.number(|step| step(labels));
    for (number, columns) in &groups.columns {
        labels.set_columns(*number, Arc::clone(columns));
    }
    Ok(groups)
}

/// Reads a groups file, and leaves its labels without numbers.
///
/// # Errors
/// As [`load`].
pub fn open(path: &Path, prefixes: PrefixRule) -> Result<GroupsFile, FileError> {
    read(path, prefixes, into_file).map_err(first)
}

/// Reads groups as CSV from standard input, and leaves their labels without numbers.
///
/// # Errors
/// As [`load`].
#[cfg(feature = "live")]
pub fn open_stdin(prefixes: PrefixRule) -> Result<GroupsFile, FileError> {
    text::parse_all_of_stdin(MAX_BYTES, |text| listed(text, prefixes, lines::read, into_file)).map_err(first)
}

/// Checks a groups file. Returns all errors, or why it cannot be read.
pub fn check(path: &Path, prefixes: PrefixRule) -> Vec<FileError> {
    read(path, prefixes, |_| ()).err().unwrap_or_default()
}

/// Describes the levels that a groups file has no columns for; `None` if it has all, or has errors itself.
pub fn missing_levels(path: &Path, levels: &Levels) -> Option<String> {
    read(path, PrefixRule::Optional, |listed| levels.missing_in(listed.columns())).ok().flatten()
}

fn read<T>(
    path: &Path,
    prefixes: PrefixRule,
    make: impl FnOnce(Listed<'_>) -> T,
) -> Result<T, Vec<FileError>> {
    let is_toml = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
    let read = if is_toml { tables::read } else { lines::read };
    text::parse_all(path, MAX_BYTES, |text| listed(text, prefixes, read, make))
}

/// Makes something of a text, if it has no errors.
fn listed<'a, T>(
    text: &'a str,
    prefixes: PrefixRule,
    read: impl FnOnce(&'a str, &mut Listed<'a>),
    make: impl FnOnce(Listed<'a>) -> T,
) -> Result<T, TextErrors> {
    let mut listed = Listed::new(text, prefixes);
    read(text, &mut listed);
    listed.check();
    if listed.errors.is_empty() { Ok(make(listed)) } else { Err(listed.errors) }
}

/// The first of several errors, with the number of the others.
fn first(errors: Vec<FileError>) -> FileError {
    let others = errors.len().saturating_sub(1);
    match errors.into_iter().next() {
        Some(FileError::Invalid { path, line, column, reason }) if others > 0 => {
            let others = match others {
                1 => "1 more error".to_owned(),
                2..MANY => format!("{others} more errors"),
                _ => "many more errors".to_owned(),
            };
            FileError::Invalid { path, line, column, reason: format!("{reason} (and {others})") }
        }
        Some(error) => error,
        // There is at least one.
        None => FileError::Open { path: PathBuf::new(), source: io::ErrorKind::InvalidData.into() },
    }
}

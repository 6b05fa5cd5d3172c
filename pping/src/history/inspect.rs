//! `pping history check`: reads everything.

use std::{fmt::Write as _, path::Path};

use super::{
    error::Error,
    piece::{Piece, date},
    read::Wanted,
    store::Store,
    tier::Tier,
    time::{DAY, Moment},
};
use crate::aggregate::Measurements;

/// What a tier has.
#[derive(Default)]
struct Found {
    files: u64,
    /// Those that are of days to come.
    of_future: u64,
    rows: u64,
    bytes: u64,
    /// The first and the last day.
    days: Option<(u64, u64)>,
}

/// Reads all files of a history, and describes them.
///
/// # Errors
/// If there is none, or a file is damaged: the error has the description.
pub(super) fn check(directory: &Path, now: Moment) -> Result<String, Error> {
    let store = Store::open(directory)?;
    let (mut text, mut damaged) = (String::new(), Vec::new());
    for tier in Tier::ALL {
        let mut found = Found::default();
        for piece in store.pieces(tier)? {
            match read(&store, &piece) {
                Ok(rows) => found.rows += rows,
                // It was merged meanwhile.
                Err(error) if error.is_gone() => continue,
                Err(error) => damaged.push(error.to_string()),
            }
            found.files += 1;
            found.bytes += store.size(&piece);
            if piece.start > now + DAY {
                found.of_future += 1;
            } else {
                let (first, last) = found.days.unwrap_or((piece.start, piece.start));
                found.days = Some((first.min(piece.start), last.max(piece.start)));
            }
        }
        let Found { files, of_future, rows, bytes, days } = found;
        write!(text, "{}  {files} files, {rows} rows, {:.1} MB", tier.name(), bytes as f64 / 1e6).ok();
        if rows > 0 {
            write!(text, " ({:.0} bytes a row)", bytes as f64 / rows as f64).ok();
        }
        if of_future > 0 {
            write!(text, ", {of_future} of the future: the clock of this host was wrong").ok();
        }
        if let Some((first, last)) = days {
            write!(text, ", {} to {}", date(first), date(last)).ok();
        }
        text.push('\n');
    }
    if damaged.is_empty() {
        return Ok(text + "no file is damaged\n");
    }
    Err(Error::Unsound { found: text, damaged })
}

/// Reads a file, and checks each row. Returns their number.
fn read(store: &Store, piece: &Piece) -> Result<u64, Error> {
    let file = store.open_piece(piece)?;
    let mut rows = 0;
    for row in file.rows(Wanted::default()) {
        let Measurements { sum, range, .. } = row?.measured;
        if range.is_some_and(|(_, max)| sum < max) {
            return Err(Error::damaged(file.path(), "a sum of round-trip times is less than the longest"));
        }
        rows += 1;
    }
    if rows == file.count() { Ok(rows) } else { Err(Error::damaged(file.path(), "it lacks rows")) }
}

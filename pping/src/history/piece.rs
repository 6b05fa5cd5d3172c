//! The files of a history, and their names.
//!
//! ```text
//! 1m/2026-11-26/14-05.parquet   a minute, until its hour is over
//! 1m/2026-11-26/14.parquet      an hour
//! 5m/2026-11-26.parquet         a day, made of its hours
//! ```
//!
//! Names are in UTC. A file whose name is taken, because the clock was set back or pping began again within a minute, gets
//! a number: `14-05.2.parquet`.

use std::path::{Path, PathBuf};

use jiff::{Timestamp, civil::Date, tz::TimeZone};

use super::{
    tier::Tier,
    time::{DAY, HOUR},
};

/// The extension of complete files.
const EXTENSION: &str = "parquet";

/// The time that a file covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Span {
    /// A minute, of the finest tier.
    Minute,
    Hour,
    Day,
}

impl Span {
    /// Its length, seconds.
    pub(super) const fn length(self) -> u64 {
        match self {
            Self::Minute => Tier::Minute.step(),
            Self::Hour => HOUR,
            Self::Day => DAY,
        }
    }
}

/// A file of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Piece {
    pub(super) tier: Tier,
    /// The start of what it covers, seconds since the Unix epoch.
    pub(super) start: u64,
    pub(super) span: Span,
    /// Its number among those of the same time, from 1.
    pub(super) number: u32,
}

impl Piece {
    /// The first file of a time.
    pub(super) fn first(tier: Tier, span: Span, time: u64) -> Self {
        Self { tier, start: time - time % span.length(), span, number: 1 }
    }

    /// The end of what it covers, seconds since the Unix epoch.
    pub(super) fn end(&self) -> u64 {
        self.start + self.span.length()
    }

    /// The number of its day since the Unix epoch.
    pub(super) fn day(&self) -> u64 {
        self.start / DAY
    }

    /// Its path in the directory of the history.
    pub(super) fn path(&self) -> PathBuf {
        let number = if self.number > 1 { format!(".{}", self.number) } else { String::new() };
        let (hour, minute) = (self.start % DAY / HOUR, self.start % HOUR / 60);
        let time = match self.span {
            Span::Minute => format!("/{hour:02}-{minute:02}"),
            Span::Hour => format!("/{hour:02}"),
            Span::Day => String::new(),
        };
        PathBuf::from(format!("{}/{}{time}{number}.{EXTENSION}", self.tier.name(), date(self.start)))
    }

    /// The file with this path; `None` if a history has no such file.
    pub(super) fn from_path(path: &Path) -> Option<Self> {
        let parts: Option<Vec<&str>> = path.iter().map(|part| part.to_str()).collect();
        let (tier, date, time) = match parts.as_deref()? {
            [tier, name] => (*tier, *name, None),
            [tier, date, name] => (*tier, *date, Some(*name)),
            _ => return None,
        };
        let name = time.unwrap_or(date).strip_suffix(EXTENSION)?.strip_suffix('.')?;
        let (name, number) = match name.split_once('.') {
            Some((name, number)) => (name, number.parse().ok().filter(|&number: &u32| number > 1)?),
            None => (name, 1),
        };
        let day = day(if time.is_some() { date } else { name })?;
        let (span, offset) = match (time, name.split_once('-')) {
            (None, _) => (Span::Day, 0),
            (Some(_), None) => (Span::Hour, name.parse::<u64>().ok()? * HOUR),
            (Some(_), Some((hour, minute))) => {
                (Span::Minute, hour.parse::<u64>().ok()? * HOUR + minute.parse::<u64>().ok()? * 60)
            }
        };
        let piece = Self { tier: Tier::named(tier)?, start: day + offset, span, number };
        // Another spelling would be another file for the same name.
        let is_known = span != Span::Minute || piece.tier == Tier::Minute;
        (is_known && piece.path() == path).then_some(piece)
    }
}

/// The date of a time, as `2026-11-26`.
pub(super) fn date(time: u64) -> String {
    let time = i64::try_from(time).ok().and_then(|time| Timestamp::from_second(time).ok());
    time.unwrap_or(Timestamp::MAX).to_zoned(TimeZone::UTC).date().to_string()
}

/// The start of a day, seconds since the Unix epoch.
fn day(date: &str) -> Option<u64> {
    let date: Date = date.parse().ok()?;
    u64::try_from(date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_files_cover() {
        let time = 1_795_702_345;
        for (tier, span, number, path) in [
            (Tier::Minute, Span::Minute, 1, "1m/2026-11-26/14-12.parquet"),
            (Tier::Minute, Span::Minute, 3, "1m/2026-11-26/14-12.3.parquet"),
            (Tier::FiveMinutes, Span::Hour, 1, "5m/2026-11-26/14.parquet"),
            (Tier::Hour, Span::Day, 2, "1h/2026-11-26.2.parquet"),
        ] {
            let piece = Piece { number, ..Piece::first(tier, span, time) };
            assert_eq!(piece.path(), Path::new(path));
            assert_eq!(Piece::from_path(Path::new(path)), Some(piece));
            assert!(piece.start <= time && time < piece.end());
        }
    }

    #[test]
    fn other_files_are_not_of_a_history() {
        for path in [
            "1m/2026-11-26/14-12.parquet.tmp",
            "1m/2026-11-26/14-12.1.parquet",
            "1m/2026-11-26/14-12.02.parquet",
            "5m/2026-11-26/14-12.parquet",
            "1m/2026-11-26/4.parquet",
            "1m/2026-11-26/25.parquet",
            "1m/2026-11-26/14-60.parquet",
            "1m/2026-02-30.parquet",
            "2m/2026-11-26.parquet",
            "1m/2026-11-26/14/12.parquet",
            "1m/2026-11-26",
            "2026-11-26.parquet",
            "1h/1969-12-31.parquet",
            "",
        ] {
            assert_eq!(Piece::from_path(Path::new(path)), None, "{path}");
        }
    }
}

//! Moments of the past, as people write them.

use std::time::Duration;

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

use crate::foreign_text::sanitized;

/// The seconds of an hour.
pub const HOUR: u64 = 3600;

/// The seconds of a day.
pub const DAY: u64 = 24 * HOUR;

/// A moment, seconds since the Unix epoch.
pub type Moment = u64;

/// A moment in the zone of this host, as `2026-11-25 21:00`.
pub fn local(moment: Moment) -> String {
    let second = i64::try_from(moment).ok().and_then(|second| Timestamp::from_second(second).ok());
    second.unwrap_or(Timestamp::MAX).to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}

/// The last moment that is understood: the start of the year 2500. Later ones, in ns, are no 64-bit numbers some day.
pub(super) const LATEST: Moment = 16_725_225_600;

/// A length in words, from seconds: `5m`.
pub(super) fn length(seconds: u64) -> String {
    humantime::format_duration(Duration::from_secs(seconds)).to_string()
}

/// The present.
pub fn now() -> Moment {
    u64::try_from(Timestamp::now().as_second()).unwrap_or(0)
}

/// What a moment may look like.
const FORMS: &str = "write `now`, a time ago like `-24h` or `-7d`, a local time like `2026-11-25 21:00`, a date, \
                     or a time with a zone like `2026-11-25T21:00:00Z`";

/// Reads a range. Without `from` it begins a day ago, and without `to` it ends now.
///
/// # Errors
/// If one is no time, or the range is empty, in words.
pub(super) fn range(from: Option<&str>, to: Option<&str>, now: Moment) -> Result<(Moment, Moment), String> {
    let read = |name: &str, text: Option<&str>, unset: &str| {
        moment(text.unwrap_or(unset), now).map_err(|reason| format!("{name}: {reason}"))
    };
    let (from, to) = (read("from", from, "-24h")?, read("to", to, "now")?);
    if from >= to {
        return Err("from is not before to: give an earlier time as from, for instance -24h".to_owned());
    }
    Ok((from, to))
}

/// Reads a moment: `now`, `-24h`, `2026-11-25 21:00` in local time, `2026-11-25T21:00:00Z`, or the seconds or nanoseconds
/// since the Unix epoch.
///
/// # Errors
/// If it is none of these, in words.
pub fn moment(text: &str, now: Moment) -> Result<Moment, String> {
    let text = text.trim();
    let foreign = sanitized(text);
    if text == "now" {
        return Ok(now);
    }
    if let Some(ago) = text.strip_prefix('-') {
        let ago = humantime::parse_duration(ago.trim())
            .map_err(|error| format!("`{foreign}`: {error}; {FORMS}"))?;
        return Ok(now.saturating_sub(ago.as_secs()));
    }
    let timestamp = || {
        let zoned = text.parse::<Timestamp>().ok();
        let local = || Some(text.parse::<DateTime>().ok()?.to_zoned(TimeZone::system()).ok()?.timestamp());
        u64::try_from(zoned.or_else(local)?.as_second()).ok()
    };
    let second = match text.parse::<u64>() {
        // No time in nanoseconds is lower than this in our lifetimes, and none in seconds is higher.
        Ok(number) if number > 1_000_000_000_000_000 => Some(number / 1_000_000_000),
        Ok(number) => Some(number),
        Err(_) => timestamp(),
    };
    second.filter(|&second| second <= LATEST).ok_or_else(|| format!("`{foreign}` is no time; {FORMS}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_people_write_them() {
        let now = 1_795_702_345;
        for (text, expected) in [
            ("now", now),
            ("-24h", now - 86_400),
            ("-7d", now - 7 * 86_400),
            ("1795702345", now),
            ("1795702345000000000", now),
            ("2026-11-26T14:12:25Z", now),
            ("2026-11-26T15:12:25+01:00", now),
        ] {
            assert_eq!(moment(text, now), Ok(expected), "{text}");
        }
        let local: DateTime = "2026-11-26T14:12:00".parse().unwrap();
        let expected = local.to_zoned(TimeZone::system()).unwrap().timestamp().as_second() as u64;
        for text in ["2026-11-26 14:12", "2026-11-26 14:12:00", "2026-11-26T14:12"] {
            assert_eq!(moment(text, now), Ok(expected), "{text}");
        }
        for text in
            ["yesterday", "-", "-7", "2026-13-01", "", "1960-01-01T00:00:00Z", "2600-01-01", "99999999999"]
        {
            let said = moment(text, now).unwrap_err();
            assert!(said.contains("write `now`"), "{said}");
        }
    }
}

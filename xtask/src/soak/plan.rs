//! The plan of a soak: its length, and the intervals.

use std::time::Duration;

/// The times of a soak.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(super) length: Duration,
    /// When descriptors are first counted. At the end there must be as many.
    pub(super) settled: Duration,
    /// The interval between two readings of resources.
    pub(super) read: Duration,
    pub(super) restart: Duration,
    pub(super) reload: Duration,
    pub(super) dial: Duration,
    /// How long it may take until an interface is watched.
    pub(super) attach: Duration,
}

impl Plan {
    /// Makes a plan of this length. Descriptors are first counted after a quarter of it, or after five minutes if that
    /// is less.
    pub(crate) fn new(length: Duration) -> Self {
        let is_short = length < Duration::from_mins(20);
        Self {
            length,
            settled: (length / 4).min(Duration::from_mins(5)),
            read: if is_short { Duration::from_secs(30) } else { Duration::from_mins(1) },
            restart: if is_short { Duration::from_secs(20) } else { Duration::from_mins(1) },
            reload: Duration::from_secs(7),
            dial: Duration::from_secs(3),
            // A short soak runs beside other things, on busy machines. It must fail for what is wrong, not for what is
            // slow.
            attach: Duration::from_secs(if is_short { 10 } else { 1 }),
        }
    }
}

/// Reads `90s`, `5m` or `1h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let parse = || {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let number: u64 = number.parse().ok().filter(|number| *number > 0)?;
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            _ => return None,
        };
        number.checked_mul(seconds).map(Duration::from_secs)
    };
    parse().ok_or_else(|| "give a number with its unit, like 90s, 5m or 1h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("5m"), Ok(Duration::from_mins(5)));
        assert_eq!(duration("1h"), Ok(Duration::from_hours(1)));
        for wrong in ["", "5", "m", "0m", "-1m", "1d", "99999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}

//! Lengths of time on a chore's command line.

use std::time::Duration;

/// Reads `90s`, `5m` or `1h`.
pub fn parse(text: &str) -> Result<Duration, String> {
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
        assert_eq!(parse("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("5m"), Ok(Duration::from_mins(5)));
        assert_eq!(parse("1h"), Ok(Duration::from_hours(1)));
        for wrong in ["", "5", "m", "0m", "-1m", "1d", "99999999999999999h"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}

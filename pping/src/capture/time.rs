//! The time of a packet, in whole nanoseconds since 1970.

use pping_common::limits::{LATEST, SECOND};

const DECIMALS_OF_NANOSECOND: u32 = 9;

/// The clock of an interface in a pcapng file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    /// `if_tsresol`: the negative exponent of 10 or, if the highest bit is set, of 2.
    resolution: u8,
    /// Nanoseconds to add, from the seconds of `if_tsoffset`.
    offset: i128,
}

impl Clock {
    /// The default: microseconds since 1970.
    pub(super) const MICROSECONDS: Self = Self { resolution: 6, offset: 0 };

    /// Replaces the resolution, as in `if_tsresol`.
    pub(super) fn with_resolution(self, resolution: u8) -> Self {
        Self { resolution, ..self }
    }

    /// Replaces the offset, seconds.
    pub(super) fn with_offset(self, seconds: i64) -> Self {
        Self { offset: i128::from(seconds) * i128::from(SECOND), ..self }
    }

    /// Converts a timestamp to ns since 1970, rounded down and clamped to 0..=[`LATEST`].
    #[inline]
    pub(super) fn nanoseconds(self, units: u64) -> u64 {
        let nanoseconds = match self.resolution {
            decimal @ 0..=9 => units.saturating_mul(10_u64.pow(DECIMALS_OF_NANOSECOND - u32::from(decimal))),
            decimal @ 10..=127 => 10_u64
                .checked_pow(u32::from(decimal) - DECIMALS_OF_NANOSECOND)
                .map_or(0, |divisor| units / divisor),
            binary => {
                let nanoseconds = (u128::from(units) * u128::from(SECOND)) >> (binary & 0x7f);
                u64::try_from(nanoseconds).unwrap_or(u64::MAX)
            }
        };
        if self.offset == 0 {
            return nanoseconds.min(LATEST);
        }
        (i128::from(nanoseconds) + self.offset).clamp(0, i128::from(LATEST)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resolution_is_exact() {
        let clock = Clock::MICROSECONDS;
        let with = |resolution| clock.with_resolution(resolution);
        assert_eq!(clock.nanoseconds(1_700_000_000_123_456), 1_700_000_000_123_456_000);
        assert_eq!(with(0).nanoseconds(1_700_000_000), 1_700_000_000 * SECOND);
        assert_eq!(with(9).nanoseconds(1_700_000_000_123_456_789), 1_700_000_000_123_456_789);
        assert_eq!(with(12).nanoseconds(1_234_567_890_123), 1_234_567_890);
        assert_eq!(with(127).nanoseconds(u64::MAX), 0);
        assert_eq!(with(0x80).nanoseconds(7), 7 * SECOND);
        assert_eq!(with(0x8a).nanoseconds(1025), SECOND + 976_562);
        assert_eq!(with(0xff).nanoseconds(u64::MAX), 0);
    }

    #[test]
    fn implausible_times_are_clamped() {
        assert_eq!(Clock::MICROSECONDS.nanoseconds(u64::MAX), LATEST);
        assert_eq!(Clock::MICROSECONDS.with_resolution(0x80).nanoseconds(u64::MAX), LATEST);
        assert_eq!(Clock::MICROSECONDS.with_offset(i64::MIN).nanoseconds(5), 0);
        assert_eq!(Clock::MICROSECONDS.with_offset(i64::MAX).nanoseconds(5), LATEST);
        assert_eq!(Clock::MICROSECONDS.with_offset(-2).nanoseconds(5_000_001), 3 * SECOND + 1_000);
    }
}

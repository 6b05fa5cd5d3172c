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

    /// Converts a timestamp to ns since 1970, rounded down; `None` if it is earlier, or later than [`LATEST`].
    #[inline]
    pub(super) fn nanoseconds(self, units: u64) -> Option<u64> {
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
        let nanoseconds = match self.offset {
            0 => nanoseconds,
            offset => u64::try_from(i128::from(nanoseconds) + offset).ok()?,
        };
        (nanoseconds <= LATEST).then_some(nanoseconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resolution_is_exact() {
        let with = |resolution| Clock::MICROSECONDS.with_resolution(resolution);
        for (clock, units, nanoseconds) in [
            (Clock::MICROSECONDS, 1_700_000_000_123_456, 1_700_000_000_123_456_000),
            (with(0), 1_700_000_000, 1_700_000_000 * SECOND),
            (with(9), 1_700_000_000_123_456_789, 1_700_000_000_123_456_789),
            (with(12), 1_234_567_890_123, 1_234_567_890),
            (with(127), u64::MAX, 0),
            (with(0x80), 7, 7 * SECOND),
            (with(0x8a), 1025, SECOND + 976_562),
            (with(0xff), u64::MAX, 0),
            (Clock::MICROSECONDS.with_offset(-2), 5_000_001, 3 * SECOND + 1_000),
        ] {
            assert_eq!(clock.nanoseconds(units), Some(nanoseconds), "{clock:?} at {units}");
        }
    }

    #[test]
    fn times_before_1970_or_after_2262_are_none() {
        assert_eq!(Clock::MICROSECONDS.nanoseconds(u64::MAX), None);
        assert_eq!(Clock::MICROSECONDS.with_resolution(0x80).nanoseconds(u64::MAX), None);
        assert_eq!(Clock::MICROSECONDS.with_offset(i64::MIN).nanoseconds(5), None);
        assert_eq!(Clock::MICROSECONDS.with_offset(i64::MAX).nanoseconds(5), None);
    }
}

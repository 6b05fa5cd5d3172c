//! The time of a replay, taken from the packets.

use pping_common::limits::SECOND;

/// The time that a packet may be behind the newest one before the clock counts as set back, ns.
const SETBACK: u64 = 60 * SECOND;

/// Counts the seconds that measure idle time, from the first packet to the newest.
///
/// A packet that is more than a minute older than the newest restarts the count from its own time. The seconds before stay
/// counted, so time goes on even if captures were put one after the other in the wrong order, and even if a
/// capture goes back and forth by a century with each packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IdleClock {
    /// The start of the count and the time of the newest packet since, ns; `None` before the first packet.
    counted: Option<(u64, u64)>,
    /// Whole seconds counted before the last restart.
    before: u64,
}

impl IdleClock {
    /// Takes the time of a packet, and returns the whole seconds counted so far.
    #[inline]
    pub(super) fn advance(&mut self, time: u64) -> u64 {
        let (mut origin, mut newest) = self.counted.unwrap_or((time, time));
        if newest.saturating_sub(time) > SETBACK {
            self.before = self.before.saturating_add((newest - origin) / SECOND);
            (origin, newest) = (time, time);
        }
        newest = newest.max(time);
        self.counted = Some((origin, newest));
        self.before.saturating_add((newest - origin) / SECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_whole_and_count_from_the_first_packet() {
        let mut clock = IdleClock::default();
        let start = 1_700_000_000_900_000_000;
        assert_eq!(clock.advance(start), 0);
        assert_eq!(clock.advance(start + SECOND - 1), 0);
        assert_eq!(clock.advance(start + SECOND), 1);
        assert_eq!(clock.advance(start), 1, "a little disorder changes nothing");
        assert_eq!(clock.advance(start + 90 * SECOND), 90);
    }

    #[test]
    fn a_clock_set_back_keeps_the_seconds_it_counted() {
        let mut clock = IdleClock::default();
        clock.advance(200 * SECOND);
        assert_eq!(clock.advance(300 * SECOND + 5), 100);
        assert_eq!(clock.advance(240 * SECOND + 5), 100, "a minute is not more than a minute");
        assert_eq!(clock.advance(240 * SECOND + 4), 100);
        assert_eq!(clock.advance(250 * SECOND + 4), 110);
        assert_eq!(clock.advance(0), 110);
        assert_eq!(clock.advance(u64::MAX), 110 + u64::MAX / SECOND);
    }
}

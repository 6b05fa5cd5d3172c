//! The time, taken from the packets.

use crate::limits::SECOND;

/// The time that a packet may be behind the newest one before the clock counts as set back, ns.
const SETBACK: u64 = 60 * SECOND;

/// Counts the seconds that measure idle time, from the first packet to the newest.
///
/// A packet that is more than a minute older than the newest restarts the count from its own time. The seconds before stay
/// counted, so time goes on even if captures were put one after the other in the wrong order, and even if a
/// capture goes back and forth by a century with each packet.
#[derive(Clone, Copy, Debug, Default)]
struct IdleClock {
    /// The start of the count and the time of the newest packet since, ns; `None` before the first packet.
    counted: Option<(u64, u64)>,
    /// Whole seconds counted before the last restart.
    before: u64,
}

impl IdleClock {
    /// Takes the time of a packet, and returns the whole seconds counted so far.
    #[inline]
    fn advance(&mut self, time: u64) -> u64 {
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

/// A sweep visits all flows, so it waits until at least one packet per this many flows has come since the last sweep: there may
/// be only a packet a second for months.
const FLOWS_SWEPT_PER_PACKET: u64 = 8;

/// Says when flows are swept: once a second of the packets' time, and less often if packets are few.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    idle: IdleClock,
    /// The second of the last sweep.
    swept: u64,
    packets_since_sweep: u64,
}

impl Clock {
    /// Takes the time of a packet. Returns the second by which idle time is measured, and whether `flows` flows are to be swept.
    #[inline]
    pub fn packet(&mut self, time: u64, flows: usize) -> (u64, bool) {
        let second = self.idle.advance(time);
        self.packets_since_sweep += 1;
        let is_due =
            second != self.swept && self.packets_since_sweep * FLOWS_SWEPT_PER_PACKET >= flows as u64;
        if is_due {
            (self.swept, self.packets_since_sweep) = (second, 0);
        }
        (second, is_due)
    }

    /// Takes the time of a sweep, and returns the second by which idle time is measured.
    pub fn sweep(&mut self, time: u64) -> u64 {
        let second = self.idle.advance(time);
        (self.swept, self.packets_since_sweep) = (second, 0);
        second
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

//! The kernel's monotonic clock, and the wall clock.

use std::{
    fs, io,
    sync::OnceLock,
    time::{SystemTime, UNIX_EPOCH},
};

use pping_common::limits::SECOND;

/// Two readings of a clock that are at most this many nanoseconds apart count as simultaneous.
const CLOSE: u64 = 2_000;

/// Attempts to read both clocks at the same time.
const ATTEMPTS: u32 = 8;

/// Returns how many ticks of the kernel (`jiffies`) make up some seconds. The coarse clocks advance once a tick.
///
/// # Errors
/// If the operating system has no such clock.
pub fn ticks(seconds: u64) -> io::Result<u64> {
    let mut tick = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid pointer to write to.
    if unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut tick) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(seconds * SECOND / (tick.tv_nsec as u64).max(1))
}

/// The offset of the wall clock from `CLOCK_MONOTONIC`, which the kernel programs read. It drifts as NTP slews the wall
/// clock, so measure it again for every batch of events.
#[derive(Clone, Copy, Debug)]
pub struct WallClock {
    /// Nanoseconds since the epoch at monotonic time 0. Negative if the wall clock was never set, and is later than the
    /// epoch by less than the host has run.
    offset: i64,
}

impl WallClock {
    /// Measures the offset.
    ///
    /// # Errors
    /// If the operating system has no such clock.
    pub fn now() -> io::Result<Self> {
        let mut before = monotonic()?;
        let mut attempt = 0;
        loop {
            let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
            let after = monotonic()?;
            attempt += 1;
            // If another process ran between the two readings, they are too far apart.
            if after - before <= CLOSE || attempt == ATTEMPTS {
                return Ok(Self { offset: wall.wrapping_sub(before.midpoint(after)).cast_signed() });
            }
            before = after;
        }
    }

    /// Converts a monotonic time to nanoseconds since the Unix epoch.
    pub fn epoch(&self, monotonic: u64) -> u64 {
        monotonic.saturating_add_signed(self.offset)
    }
}

/// A step of the wall clock, in ns: it is not by slewing that the clock differs from the monotonic one by more.
const STEP: u64 = SECOND / 10;

/// A moment, by both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The wall time, in ns since the Unix epoch.
    pub wall: u64,
    /// The monotonic time, in ns.
    pub monotonic: u64,
}

impl Moment {
    /// Reads both clocks.
    ///
    /// # Errors
    /// If the operating system has no such clock.
    pub fn now() -> io::Result<Self> {
        let monotonic = monotonic()?;
        Ok(Self { wall: WallClock::now()?.epoch(monotonic), monotonic })
    }

    /// Returns this moment by the wall clock as it was at an earlier moment, if the wall clock was set in between,
    /// forward or back.
    pub fn before_step(&self, earlier: &Self) -> Option<u64> {
        let passed = self.monotonic.saturating_sub(earlier.monotonic);
        let expected = earlier.wall.saturating_add(passed);
        (expected.abs_diff(self.wall) > STEP).then_some(expected)
    }
}

/// Returns the wall time in nanoseconds since the Unix epoch.
///
/// # Errors
/// If the operating system has no such clock.
pub fn wall() -> io::Result<u64> {
    let now = monotonic()?;
    Ok(WallClock::now()?.epoch(now))
}

/// Returns the nanoseconds of the host's `CLOCK_MONOTONIC`, which the kernel programs read. In a time namespace that of
/// processes is another.
///
/// # Errors
/// If the operating system has no such clock.
pub(super) fn monotonic() -> io::Result<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid to write to.
    if unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let own = time.tv_sec as u64 * SECOND + time.tv_nsec as u64;
    Ok(own.saturating_add_signed(-namespace_offset()))
}

/// Returns by how many nanoseconds the monotonic clock of this process is ahead of the host's. A process does not change
/// its time namespace while it runs.
fn namespace_offset() -> i64 {
    static OFFSET: OnceLock<i64> = OnceLock::new();
    // Kernels before Linux 5.6 have no time namespaces, and no such file.
    *OFFSET.get_or_init(|| {
        fs::read_to_string("/proc/self/timens_offsets").ok().and_then(|text| parse_offset(&text)).unwrap_or(0)
    })
}

/// Reads the offset of `CLOCK_MONOTONIC`, as described in `time_namespaces(7)`.
fn parse_offset(text: &str) -> Option<i64> {
    let mut fields =
        text.lines().find_map(|line| line.trim_start().strip_prefix("monotonic"))?.split_whitespace();
    let seconds: i64 = fields.next()?.parse().ok()?;
    let nanoseconds: i64 = fields.next()?.parse().ok()?;
    seconds.checked_mul(SECOND as i64)?.checked_add(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_of_a_time_namespace_is_read() {
        for (text, offset) in [
            ("monotonic           0         0\nboottime            7         0\n", Some(0)),
            ("monotonic       86400       500\nboottime            0         0\n", Some(86_400_000_000_500)),
            ("boottime 1 1\nmonotonic          -2 999999999\n", Some(-1_000_000_001)),
            ("monotonic 9999999999999 0\n", None),
            ("", None),
        ] {
            assert_eq!(parse_offset(text), offset, "{text}");
        }
    }

    #[test]
    fn a_step_of_the_wall_clock_is_told_from_time_that_passes() {
        let start = Moment { wall: 50 * SECOND, monotonic: 7 * SECOND };
        let later = |wall| Moment { wall, monotonic: 9 * SECOND }.before_step(&start);
        for wall in [52 * SECOND, 52 * SECOND + STEP, 52 * SECOND - STEP] {
            assert_eq!(later(wall), None);
        }
        for wall in [0, 52 * SECOND - STEP - 1, 53 * SECOND, 1_795_689_304 * SECOND] {
            assert_eq!(later(wall), Some(52 * SECOND));
        }
    }

    #[test]
    fn a_wall_clock_that_was_never_set_is_near_the_epoch() {
        let clock = WallClock { offset: -5 * SECOND as i64 };
        assert_eq!((clock.epoch(7 * SECOND), clock.epoch(3 * SECOND)), (2 * SECOND, 0));
    }
}

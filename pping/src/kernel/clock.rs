//! The kernel's monotonic clock, and the wall clock.

use std::{
    io,
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
    /// Nanoseconds since the epoch at monotonic time 0.
    offset: u64,
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
                return Ok(Self { offset: wall.saturating_sub(before.midpoint(after)) });
            }
            before = after;
        }
    }

    /// Converts a monotonic time to nanoseconds since the Unix epoch.
    pub fn epoch(&self, monotonic: u64) -> u64 {
        self.offset.saturating_add(monotonic)
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

/// Returns the nanoseconds of `CLOCK_MONOTONIC`, which the kernel programs read.
///
/// # Errors
/// If the operating system has no such clock.
pub(super) fn monotonic() -> io::Result<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid to write to.
    if unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

//! The kernel's clock and the one on the wall.

use std::{
    io,
    time::{SystemTime, UNIX_EPOCH},
};

use pping_common::limits::SECOND;

/// Nanoseconds between two readings of a clock that count as no time.
const CLOSE: u64 = 2_000;

/// Attempts to read both clocks at the same time.
const ATTEMPTS: u32 = 8;

/// The number of ticks of the kernel (`jiffies`) in some seconds: the coarse clocks go forward once a tick.
///
/// # Errors
/// When the operating system has no such clock.
pub fn ticks(seconds: u64) -> io::Result<u64> {
    let mut tick = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid pointer to write to.
    if unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut tick) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(seconds * SECOND / (tick.tv_nsec as u64).max(1))
}

/// The distance from `CLOCK_MONOTONIC`, which the kernel programs read, to the Unix epoch. It drifts as
/// NTP slews the wall clock, so take it again for every batch of events.
#[derive(Clone, Copy, Debug)]
pub struct WallClock {
    /// Nanoseconds since the epoch at monotonic time 0.
    offset: u64,
}

impl WallClock {
    /// Takes the distance as of now.
    ///
    /// # Errors
    /// When the operating system has no such clock.
    pub fn now() -> io::Result<Self> {
        let mut before = monotonic()?;
        let mut attempt = 0;
        loop {
            let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
            let after = monotonic()?;
            attempt += 1;
            // If another process ran between the two readings, they are not of the same time.
            if after - before <= CLOSE || attempt == ATTEMPTS {
                return Ok(Self { offset: wall.saturating_sub(before.midpoint(after)) });
            }
            before = after;
        }
    }

    /// A monotonic time in nanoseconds since the Unix epoch.
    pub fn epoch(&self, monotonic: u64) -> u64 {
        self.offset.saturating_add(monotonic)
    }
}

/// Nanoseconds since the Unix epoch.
///
/// # Errors
/// When the operating system has no such clock.
pub fn wall() -> io::Result<u64> {
    let now = monotonic()?;
    Ok(WallClock::now()?.epoch(now))
}

/// Nanoseconds of `CLOCK_MONOTONIC`, which the kernel programs read.
///
/// # Errors
/// When the operating system has no such clock.
pub(super) fn monotonic() -> io::Result<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid to write to.
    if unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

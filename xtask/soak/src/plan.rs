//! The plan of a soak: its length, and the intervals.

use std::time::Duration;

/// The times of a soak.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
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
    pub(super) fn new(length: Duration) -> Self {
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

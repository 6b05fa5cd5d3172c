//! Requests per time, as `rate_limit` of a web configuration bounds them.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// A bucket of `burst` tokens, to which one is added every `interval`. Each request takes one.
#[derive(Debug)]
pub(super) struct RateLimit {
    interval: Duration,
    burst: u32,
    bucket: Mutex<(f64, Instant)>,
}

impl RateLimit {
    /// A full bucket. The interval is not zero.
    pub(super) fn new(interval: Duration, burst: u32, now: Instant) -> Self {
        Self { interval, burst, bucket: Mutex::new((burst.into(), now)) }
    }

    /// Takes a token, if there is one.
    pub(super) fn admits(&self, now: Instant) -> bool {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let (tokens, last) = *bucket;
        let gained = now.saturating_duration_since(last).as_secs_f64() / self.interval.as_secs_f64();
        let tokens = (tokens + gained).min(self.burst.into());
        let admitted = tokens >= 1.0;
        *bucket = (if admitted { tokens - 1.0 } else { tokens }, now);
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_admitted_and_then_one_per_interval() {
        let start = Instant::now();
        let limit = RateLimit::new(Duration::from_secs(2), 3, start);
        let admitted = |seconds| limit.admits(start + Duration::from_secs(seconds));
        assert_eq!([0, 0, 0, 0, 1].map(admitted), [true, true, true, false, false]);
        assert_eq!([2, 3, 4, 5].map(admitted), [true, false, true, false]);
        // However long nobody asks, there are no more than fit in.
        assert_eq!([99, 99, 99, 99].map(admitted), [true, true, true, false]);
    }
}

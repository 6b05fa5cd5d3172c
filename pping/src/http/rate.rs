//! The limit of requests that `rate_limit` of a web configuration sets.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// A token bucket: it holds `burst` tokens and gains one every `interval`; each request takes one.
#[derive(Debug)]
pub(super) struct RateLimit {
    interval: Duration,
    burst: u32,
    bucket: Mutex<(f64, Instant)>,
}

impl RateLimit {
    /// A full bucket. `interval` must not be zero.
    pub(super) fn new(interval: Duration, burst: u32, now: Instant) -> Self {
        Self { interval, burst, bucket: Mutex::new((burst.into(), now)) }
    }

    /// Takes a token. Returns false if there is none.
    pub(super) fn allows(&self, now: Instant) -> bool {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let (tokens, last) = *bucket;
        let gained = now.saturating_duration_since(last).as_secs_f64() / self.interval.as_secs_f64();
        let tokens = (tokens + gained).min(self.burst.into());
        let is_allowed = tokens >= 1.0;
        *bucket = (if is_allowed { tokens - 1.0 } else { tokens }, now);
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_allowed_and_then_one_request_per_interval() {
        let start = Instant::now();
        let limit = RateLimit::new(Duration::from_secs(2), 3, start);
        let allowed = |seconds| limit.allows(start + Duration::from_secs(seconds));
        assert_eq!([0, 0, 0, 0, 1].map(allowed), [true, true, true, false, false]);
        assert_eq!([2, 3, 4, 5].map(allowed), [true, false, true, false]);
        // A long pause does not overfill the bucket.
        assert_eq!([99, 99, 99, 99].map(allowed), [true, true, true, false]);
    }
}

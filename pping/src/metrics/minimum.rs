//! The lowest value of the last while.

use std::time::{Duration, Instant};

/// Parts that a window is made of: a value is forgotten a part's length late at most.
const PARTS: usize = 10;

/// The lowest value of the last window, to which up to a tenth of it is added.
#[derive(Clone, Copy, Debug)]
pub(super) struct Minimum {
    part: Duration,
    began: Instant,
    /// The lowest of the part that is under way, then of those before it.
    lowest: [Option<u64>; PARTS + 1],
}

impl Minimum {
    /// No value yet.
    pub(super) fn new(window: Duration, now: Instant) -> Self {
        Self { part: window / PARTS as u32, began: now, lowest: [None; PARTS + 1] }
    }

    /// Has the window be of another length from now on. What is remembered is taken to be spread over that.
    pub(super) fn set_window(&mut self, window: Duration) {
        self.part = window / PARTS as u32;
    }

    /// Takes a value.
    pub(super) fn take(&mut self, value: u64, now: Instant) {
        self.roll(now);
        self.lowest[0] = Some(self.lowest[0].map_or(value, |lowest| lowest.min(value)));
    }

    /// The lowest value, if there was any.
    pub(super) fn lowest(&mut self, now: Instant) -> Option<u64> {
        self.roll(now);
        self.lowest.into_iter().flatten().min()
    }

    fn roll(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.began);
        if age < self.part {
            return;
        }
        // A window of no length has no parts that could be counted.
        let parts = age.as_nanos().checked_div(self.part.as_nanos()).unwrap_or(u128::MAX);
        if parts > PARTS as u128 {
            self.lowest = [None; PARTS + 1];
            self.began = now;
            return;
        }
        self.lowest.copy_within(..=PARTS - parts as usize, parts as usize);
        self.lowest[..parts as usize].fill(None);
        self.began += self.part * parts as u32;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_low_value_is_forgotten_after_the_window() {
        let window = Duration::from_mins(1);
        let start = Instant::now();
        let mut minimum = Minimum::new(window, start);
        assert_eq!(minimum.lowest(start), None);
        minimum.take(5, start);
        minimum.take(9, start + window / 2);
        assert_eq!(minimum.lowest(start + window), Some(5));
        assert_eq!(minimum.lowest(start + window + window / 10), Some(9));
        assert_eq!(minimum.lowest(start + 5 * window), None);
        minimum.take(7, start + 5 * window);
        assert_eq!(minimum.lowest(start + 5 * window), Some(7));
    }

    #[test]
    fn a_window_of_no_length_is_no_reason_to_panic() {
        let start = Instant::now();
        let mut minimum = Minimum::new(Duration::from_nanos(1), start);
        minimum.take(5, start);
        assert_eq!(minimum.lowest(start + Duration::from_secs(1)), None);
    }

    proptest! {
        #[test]
        fn what_is_younger_than_the_window_counts_and_what_is_a_tenth_older_does_not(
            steps in prop::collection::vec((0_u64..40, 0_u64..1000), 1..60),
        ) {
            let (window, start) = (Duration::from_secs(100), Instant::now());
            let mut minimum = Minimum::new(window, start);
            let (mut now, mut taken) = (start, Vec::new());
            for (pause, value) in steps {
                now += Duration::from_secs(pause);
                minimum.take(value, now);
                taken.push((now, value));
                let lowest = minimum.lowest(now).unwrap();
                let among = |age: Duration| {
                    taken.iter().filter(|(at, _)| now - *at < age).map(|(_, value)| *value).min().unwrap()
                };
                prop_assert!(lowest <= among(window) && lowest >= among(window + window / PARTS as u32));
            }
        }
    }
}

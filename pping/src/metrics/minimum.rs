//! The lowest value of a sliding window.

use std::time::{Duration, Instant};

/// The number of parts of a window. A value expires late by up to the length of a part.
const PARTS: usize = 10;

/// The lowest value of a window, which is up to a tenth longer than asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Minimum {
    part: Duration,
    began: Instant,
    /// The lowest value of each part, the present part first.
    lowest: [Option<u64>; PARTS + 1],
}

impl Minimum {
    /// Creates a window without values.
    pub(super) fn new(window: Duration, now: Instant) -> Self {
        Self { part: window / PARTS as u32, began: now, lowest: [None; PARTS + 1] }
    }

    /// Changes the length of the window. The values of the old parts are kept, as values of parts of the new length.
    pub(super) fn set_window(&mut self, window: Duration) {
        self.part = window / PARTS as u32;
    }

    /// Adds a value.
    pub(super) fn add(&mut self, value: u64, now: Instant) {
        self.roll(now);
        self.lowest[0] = Some(self.lowest[0].map_or(value, |lowest| lowest.min(value)));
    }

    /// Returns the lowest value in the window, if any.
    pub(super) fn lowest(&mut self, now: Instant) -> Option<u64> {
        self.roll(now);
        self.lowest.into_iter().flatten().min()
    }

    fn roll(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.began);
        if age < self.part {
            return;
        }
        // A window shorter than its number of parts in ns has parts of length 0.
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
    fn a_low_value_expires_after_the_window() {
        let window = Duration::from_mins(1);
        let start = Instant::now();
        let mut minimum = Minimum::new(window, start);
        assert_eq!(minimum.lowest(start), None);
        minimum.add(5, start);
        minimum.add(9, start + window / 2);
        assert_eq!(minimum.lowest(start + window), Some(5));
        assert_eq!(minimum.lowest(start + window + window / 10), Some(9));
        assert_eq!(minimum.lowest(start + 5 * window), None);
        minimum.add(7, start + 5 * window);
        assert_eq!(minimum.lowest(start + 5 * window), Some(7));
    }

    #[test]
    fn a_window_without_length_does_not_panic() {
        let start = Instant::now();
        let mut minimum = Minimum::new(Duration::from_nanos(1), start);
        minimum.add(5, start);
        assert_eq!(minimum.lowest(start + Duration::from_secs(1)), None);
    }

    proptest! {
        #[test]
        fn values_in_the_window_count_and_those_a_tenth_older_do_not(
            steps in prop::collection::vec((0_u64..40, 0_u64..1000), 1..60),
        ) {
            let (window, start) = (Duration::from_secs(100), Instant::now());
            let mut minimum = Minimum::new(window, start);
            let (mut now, mut taken) = (start, Vec::new());
            for (pause, value) in steps {
                now += Duration::from_secs(pause);
                minimum.add(value, now);
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

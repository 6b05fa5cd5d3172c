//! The lowest value of the last while.

use std::time::{Duration, Instant};

/// The lowest value of the last one to two windows.
#[derive(Clone, Copy, Debug)]
pub struct Minimum {
    window: Duration,
    began: Instant,
    current: Option<u64>,
    previous: Option<u64>,
}

impl Minimum {
    /// No value yet.
    pub fn new(window: Duration, now: Instant) -> Self {
        Self { window, began: now, current: None, previous: None }
    }

    /// Takes a value.
    pub fn take(&mut self, value: u64, now: Instant) {
        self.roll(now);
        self.current = Some(self.current.map_or(value, |lowest| lowest.min(value)));
    }

    /// The lowest value, if there was any.
    pub fn lowest(&mut self, now: Instant) -> Option<u64> {
        self.roll(now);
        self.current.into_iter().chain(self.previous).min()
    }

    fn roll(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.began);
        if age < self.window {
            return;
        }
        self.previous = if age < 2 * self.window { self.current } else { None };
        self.current = None;
        self.began = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_value_is_forgotten_after_two_windows() {
        let window = Duration::from_mins(1);
        let start = Instant::now();
        let mut minimum = Minimum::new(window, start);
        assert_eq!(minimum.lowest(start), None);
        minimum.take(5, start);
        minimum.take(9, start + window);
        assert_eq!(minimum.lowest(start + window), Some(5));
        assert_eq!(minimum.lowest(start + 2 * window), Some(9));
        assert_eq!(minimum.lowest(start + 5 * window), None);
    }
}

//! Losses, and when the log last spoke of them.

use std::time::{Duration, Instant};

/// The losses that were last logged, or acted on.
#[derive(Default)]
pub(super) struct Losses {
    pub(super) are_groups_logged: bool,
    pub(super) are_slots_logged: bool,
    pub(super) is_pool_logged: bool,
    pub(super) unaggregated: Logged,
    pub(super) flows: Logged,
    pub(super) records: Logged,
    /// Lines of `--hdr-log`.
    pub(super) log_lines: Logged,
    pub(super) groups: u64,
    pub(super) groups_resolved: Option<Instant>,
}

/// How much was lost when the log last said so. A flood may lose something every second, for hours.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Logged {
    lost: u64,
    at: Option<Instant>,
}

impl Logged {
    const INTERVAL: Duration = Duration::from_mins(1);

    /// Returns how much more is lost at `now`, if that is to be logged.
    pub(super) fn more(&mut self, lost: u64, now: Instant) -> Option<u64> {
        // The total falls when the counters of an interface are cleared.
        self.lost = self.lost.min(lost);
        let more = lost - self.lost;
        let is_due = self.at.is_none_or(|at| now.saturating_duration_since(at) >= Self::INTERVAL);
        if more == 0 || !is_due {
            return None;
        }
        *self = Self { lost, at: Some(now) };
        Some(more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_logged_at_once_and_then_once_a_minute() {
        let (mut logged, start) = (Logged::default(), Instant::now());
        let mut at = |seconds, lost| logged.more(lost, start + Duration::from_secs(seconds));
        assert_eq!(at(0, 0), None);
        assert_eq!(at(1, 3), Some(3));
        assert_eq!([at(2, 5), at(60, 10)], [None; 2]);
        assert_eq!(at(61, 11), Some(8));
        assert_eq!(at(200, 11), None);
        assert_eq!(at(201, 12), Some(1));
        assert_eq!(at(262, 2), None);
        assert_eq!(at(263, 3), Some(1));
    }
}

//! A file that cannot be written for a while, for instance on a full disk: when to warn, and when to try again.

use std::{
    fmt, io,
    time::{Duration, Instant},
};

/// The time between two attempts to write.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// The time for which writing must succeed before the outage counts as over. On a disk that is almost full, a short record still
/// fits where a long one does not.
const RECOVERY: Duration = Duration::from_secs(5);

/// Whether a file can be written at present.
#[derive(Default)]
pub(super) struct Outage {
    state: State,
    /// Records dropped since the outage began.
    dropped: u64,
}

#[derive(Default)]
enum State {
    /// Writing works.
    #[default]
    None,
    /// The last attempt, at this time, failed.
    Failing(Instant),
    /// All attempts since this time succeeded.
    Recovering(Instant),
}

impl Outage {
    /// Whether an attempt to write is due.
    pub(super) fn may_write(&self, now: Instant) -> bool {
        !matches!(self.state, State::Failing(last) if now.duration_since(last) < RETRY_INTERVAL)
    }

    /// Makes the next attempt due at once, since the file was opened again.
    pub(super) fn retry(&mut self, now: Instant) {
        if matches!(self.state, State::Failing(_)) {
            self.state = State::Recovering(now);
        }
    }

    /// Counts records that were dropped.
    pub(super) fn dropped(&mut self, records: u64) {
        self.dropped += records;
    }

    /// Notes that an attempt failed.
    pub(super) fn failed(&mut self, now: Instant, target: &dyn fmt::Display, error: &io::Error) {
        if matches!(self.state, State::None) {
            tracing::warn!(
                "writing to {target} failed: {error}; records are dropped and counted until it can be written to again"
            );
        }
        self.state = State::Failing(now);
    }

    /// Notes that an attempt succeeded.
    pub(super) fn succeeded(&mut self, now: Instant, target: &dyn fmt::Display) {
        match self.state {
            State::None => {}
            State::Failing(_) => self.state = State::Recovering(now),
            State::Recovering(since) if now.duration_since(since) < RECOVERY => {}
            State::Recovering(_) => {
                tracing::warn!(
                    "{target} can be written to again; {} records were dropped meanwhile",
                    self.dropped
                );
                *self = Self::default();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_spaced_and_success_must_last() {
        let (mut outage, start) = (Outage::default(), Instant::now());
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert!(outage.may_write(at(0)));
        outage.failed(at(0), &"it", &full);
        assert!(!outage.may_write(at(100)) && outage.may_write(at(300)));
        outage.succeeded(at(300), &"it");
        outage.failed(at(400), &"it", &full);
        assert!(!outage.may_write(at(500)));
        outage.retry(at(500));
        assert!(outage.may_write(at(500)));
        outage.succeeded(at(600), &"it");
        assert!(matches!(outage.state, State::Recovering(_)));
        outage.succeeded(at(5_600), &"it");
        assert!(matches!(outage.state, State::None));
    }
}

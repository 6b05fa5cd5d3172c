//! A file that cannot be written to for a while: what is said of it, and when it is tried again.

use std::{
    fmt, io,
    time::{Duration, Instant},
};

/// How long to wait before writing is tried again. A full disk gets no emptier by asking more often.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// How long writing must go well before trouble is said to be over. On a disk that is almost full, a short record finds
/// room where a long one does not.
const CALM: Duration = Duration::from_secs(5);

/// Trouble with a file, and how it goes on.
#[derive(Default)]
pub(crate) struct Trouble {
    state: State,
    /// Lines that were dropped since it began.
    dropped: u64,
}

#[derive(Default)]
enum State {
    /// There is none.
    #[default]
    None,
    /// The last try, at this time, failed.
    Failing(Instant),
    /// Since this time all has gone well.
    Recovering(Instant),
}

impl Trouble {
    /// Whether it is time for another try.
    pub(crate) fn lets_try(&self, now: Instant) -> bool {
        !matches!(self.state, State::Failing(last) if now.duration_since(last) < RETRY_INTERVAL)
    }

    /// Has the next try made at once, since it is another file by now.
    pub(crate) fn retry(&mut self, now: Instant) {
        if matches!(self.state, State::Failing(_)) {
            self.state = State::Recovering(now);
        }
    }

    /// Counts lines that were dropped for it.
    pub(crate) fn dropped(&mut self, lines: u64) {
        self.dropped += lines;
    }

    /// A try failed.
    pub(crate) fn failed(&mut self, now: Instant, target: &dyn fmt::Display, error: &io::Error) {
        if matches!(self.state, State::None) {
            tracing::warn!(
                "writing to {target} failed: {error}; records are dropped, and counted, until it can be written to again"
            );
        }
        self.state = State::Failing(now);
    }

    /// A try succeeded.
    pub(crate) fn succeeded(&mut self, now: Instant, target: &dyn fmt::Display) {
        match self.state {
            State::None => {}
            State::Failing(_) => self.state = State::Recovering(now),
            State::Recovering(since) if now.duration_since(since) < CALM => {}
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
    fn a_try_is_made_now_and_then_and_a_success_must_last() {
        let (mut trouble, start) = (Trouble::default(), Instant::now());
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert!(trouble.lets_try(at(0)));
        trouble.failed(at(0), &"it", &full);
        assert!(!trouble.lets_try(at(100)) && trouble.lets_try(at(300)));
        trouble.succeeded(at(300), &"it");
        trouble.failed(at(400), &"it", &full);
        assert!(!trouble.lets_try(at(500)));
        trouble.retry(at(500));
        assert!(trouble.lets_try(at(500)));
        trouble.succeeded(at(600), &"it");
        assert!(matches!(trouble.state, State::Recovering(_)));
        trouble.succeeded(at(5_600), &"it");
        assert!(matches!(trouble.state, State::None));
    }
}

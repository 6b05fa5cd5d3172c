//! Warnings about what others sent, at a bounded rate.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use indexmap::IndexMap;

/// At most one warning of a kind is logged in this time.
const INTERVAL: Duration = Duration::from_mins(1);

/// Logs the first warning of a kind, and then one a minute with the number of those between. Counts them all.
#[derive(Debug, Default)]
pub(super) struct Complaints {
    kinds: IndexMap<&'static str, Kind>,
}

#[derive(Debug)]
struct Kind {
    logged: Instant,
    /// Those since.
    more: u64,
    total: u64,
}

impl Complaints {
    /// Warns of something. `kind` names it in the summary.
    pub(super) fn warn(&mut self, kind: &'static str, text: impl FnOnce() -> String) {
        if let Some(line) = self.line(kind, text, Instant::now()) {
            tracing::warn!("{line}");
        }
    }

    /// The line to log now, if any.
    fn line(&mut self, kind: &'static str, text: impl FnOnce() -> String, now: Instant) -> Option<String> {
        let Some(known) = self.kinds.get_mut(kind) else {
            self.kinds.insert(kind, Kind { logged: now, more: 0, total: 1 });
            return Some(text());
        };
        known.total += 1;
        if now.duration_since(known.logged) < INTERVAL {
            known.more += 1;
            return None;
        }
        known.logged = now;
        let more = std::mem::take(&mut known.more);
        Some(if more == 0 { text() } else { format!("{} (and {more} more since the last line)", text()) })
    }

    /// The totals, for a summary; empty if there were none.
    pub(super) fn summary(&self) -> String {
        let mut summary = String::new();
        for (kind, Kind { total, .. }) in &self.kinds {
            // Writing to a string does not fail.
            write!(summary, ", {total} {kind}").ok();
        }
        summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_minute_counts_the_others() {
        let (mut complaints, start) = (Complaints::default(), Instant::now());
        let mut line =
            |seconds| complaints.line("malformed", || "bad".to_owned(), start + Duration::from_secs(seconds));
        assert_eq!(line(0).as_deref(), Some("bad"));
        assert_eq!(line(1), None);
        assert_eq!(line(59), None);
        assert_eq!(line(60).as_deref(), Some("bad (and 2 more since the last line)"));
        assert_eq!(line(130).as_deref(), Some("bad"));
        assert_eq!(complaints.summary(), ", 5 malformed");
    }
}

//! The log of changes: single ones while they are few, else sums once a second.

use crate::{groups::protocol::Effect, spelling::counted};

/// The changes of a second that are logged one by one.
const SINGLE: u64 = 10;

/// The changes and refusals of the present second.
#[derive(Debug, Default)]
pub(super) struct ChangeLog {
    logged: u64,
    /// Those that were not logged: added, moved and removed prefixes, and labels with other columns.
    others: [u64; 4],
    refused: u64,
    /// The last refusal that was not logged.
    last_refusal: String,
    refusals_logged: u64,
}

impl ChangeLog {
    /// Whether the next change is logged by itself. If not, counts it.
    pub(super) fn is_single(&mut self, effect: Effect) -> bool {
        if self.logged < SINGLE {
            self.logged += 1;
            return true;
        }
        match effect {
            Effect::Added => self.others[0] += 1,
            Effect::Moved => self.others[1] += 1,
            Effect::Removed => self.others[2] += 1,
            Effect::Columns => self.others[3] += 1,
            Effect::Unchanged => {}
        }
        false
    }

    /// Logs a refusal, or counts it.
    pub(super) fn refuse(&mut self, reason: &str) {
        if self.refusals_logged < SINGLE {
            self.refusals_logged += 1;
            tracing::info!("--groups-socket: refused: {reason}");
        } else {
            self.refused += 1;
            reason.clone_into(&mut self.last_refusal);
        }
    }

    /// Ends a second, and logs its sums.
    pub(super) fn end_second(&mut self) {
        let Self { others, refused, last_refusal, .. } = std::mem::take(self);
        if others != [0; 4] {
            let [added, moved, removed, columns] = others;
            tracing::info!(
                "--groups-socket: in the last second also {} added, {moved} moved and {removed} removed, and {} with other columns",
                counted(added as usize, "prefix", "prefixes"),
                counted(columns as usize, "label", "labels")
            );
        }
        if refused > 0 {
            tracing::info!("--groups-socket: {refused} more requests refused, the last one: {last_refusal}");
        }
    }
}

//! The log of changes: single ones while they are few, else sums once a second.

use std::sync::Arc;

use crate::{
    foreign_text::sanitized,
    groups::{
        Columns,
        protocol::{Addition, Effect, Request},
    },
    spelling::counted,
};

/// The changes of a second that are logged one by one.
const SINGLE: u64 = 10;

/// What a change did.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) effect: Effect,
    /// The label that the prefix had, and the one that it has.
    pub(super) before: Option<Arc<str>>,
    pub(super) now: Option<Arc<str>>,
}

impl Done {
    /// The same, for a label whose columns have changed or not.
    pub(super) fn with(self, are_columns_changed: bool) -> Self {
        let is_only_that = self.effect == Effect::Unchanged && are_columns_changed;
        Self { effect: if is_only_that { Effect::Columns } else { self.effect }, ..self }
    }
}

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
    /// Logs what a change did, or counts it. `columns` are those of its label.
    pub(super) fn change(
        &mut self,
        change: &Request,
        Done { effect, before, now }: &Done,
        columns: &Columns,
    ) {
        let (Request::Add(Addition { source, .. })
        | Request::Remove { source, .. }
        | Request::Columns { source, .. }) = change
        else {
            return;
        };
        if *effect == Effect::Unchanged || !self.is_single(*effect) {
            return;
        }
        let [before, now] = [before, now].map(|label| label.as_deref().map(sanitized));
        if *effect == Effect::Columns {
            let columns: Vec<_> =
                columns.iter().map(|(name, value)| sanitized(&format!("{name}={value}"))).collect();
            let columns = if columns.is_empty() { "no columns".to_owned() } else { columns.join(" ") };
            let label = now.unwrap_or_default();
            tracing::info!("--groups-socket: `{label}` has {columns} now (from {source})");
            return;
        }
        let (Request::Add(Addition { prefix, .. }) | Request::Remove { prefix, .. }) = change else { return };
        match (before, now) {
            (None, Some(now)) => tracing::info!("--groups-socket: {prefix} is now `{now}` (from {source})"),
            (Some(before), Some(now)) => {
                tracing::info!("--groups-socket: {prefix} is now `{now}`, before `{before}` (from {source})");
            }
            (Some(before), None) => {
                tracing::info!("--groups-socket: {prefix} is removed, before `{before}` (from {source})");
            }
            (None, None) => {}
        }
    }

    /// Whether the next change is logged by itself. If not, counts it.
    fn is_single(&mut self, effect: Effect) -> bool {
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

//! What the model takes beside the samples.

use crate::snapshot::{Snapshot, Usage};

/// What is read once a second.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The counters of interfaces.
    pub snapshot: Snapshot,
    /// Lines of output that were lost so far.
    pub lines_lost: u64,
    /// What pping took so far.
    pub usage: Usage,
}

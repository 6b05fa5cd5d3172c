//! The input of the model besides samples.

use crate::snapshot::{Snapshot, Usage};

/// The values that are read once a second.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The counters of interfaces.
    pub snapshot: Snapshot,
    /// Lines of output that were lost so far.
    pub lines_lost: u64,
    /// The CPU time that pping took so far, and its memory.
    pub usage: Usage,
}

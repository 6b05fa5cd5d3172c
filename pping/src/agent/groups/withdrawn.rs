//! Labels that lost their last prefix, which are forgotten once no series has them any more.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use pping_common::group::End;

use crate::kernel::series::SeriesTable;

/// A label is forgotten at the earliest this long after its last prefix: the programs may just have seen it.
const FORGET_AFTER: Duration = Duration::from_secs(2);

/// The interval at which labels are forgotten, unless there are [many](FORGET_MANY).
const FORGET_INTERVAL: Duration = Duration::from_secs(10);

/// The number of labels without a prefix from which on they are forgotten every second.
const FORGET_MANY: usize = 4096;

/// The labels that nothing lists any more, and since when.
#[derive(Default)]
pub(super) struct Withdrawn {
    labels: HashMap<u32, Instant>,
    last_look: Option<Instant>,
}

impl Withdrawn {
    /// Notes a label that has lost its last prefix just now.
    pub(super) fn note(&mut self, label: u32) {
        self.labels.insert(label, Instant::now());
    }

    /// Takes the labels to forget: those that are not `is_used` again, and that no series has.
    pub(super) fn take_due(&mut self, series: &SeriesTable, is_used: impl Fn(u32) -> bool) -> Vec<u32> {
        let is_due = self.last_look.is_none_or(|last| last.elapsed() >= FORGET_INTERVAL);
        if self.labels.is_empty() || !is_due && self.labels.len() < FORGET_MANY {
            return Vec::new();
        }
        self.last_look = Some(Instant::now());
        let ends = series.keys().flat_map(|key| [key.group.source(), key.group.destination()]);
        let counted: HashSet<u32> = ends
            .filter_map(|end| match end {
                End::Label(label) => Some(label),
                End::Any | End::Prefix { .. } => None,
            })
            .collect();
        self.labels.retain(|&label, _| !is_used(label));
        let is_over =
            |label: &u32, since: &mut Instant| !counted.contains(label) && since.elapsed() >= FORGET_AFTER;
        self.labels.extract_if(is_over).map(|(label, _)| label).collect()
    }
}

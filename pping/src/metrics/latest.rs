//! The latest values of what is not counted by group.

use std::{
    collections::BTreeSet,
    ops::AddAssign,
    sync::{Arc, Mutex},
};

use crate::{
    residence::InterfaceTimes,
    snapshot::{ProgramRuns, Snapshot},
};

/// The agent's own losses, and the fill of the kernel's maps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    /// Records that were dropped on their way to the output.
    pub lines_lost: u64,
    /// Lines that were dropped on their way to `--hdr-log`.
    pub log_lines_lost: u64,
    /// The highest number of flows per address family.
    pub max_flows: u32,
    /// The number of groups in the kernel.
    pub groups: u32,
    /// The highest number of groups.
    pub max_groups: u32,
    /// The number of interfaces that need their interface id.
    pub interfaces: u32,
    /// The highest number of interfaces.
    pub max_interfaces: u32,
    /// The number of series in the kernel.
    pub series: u32,
    /// The highest number of series.
    pub max_series: u32,
    /// The counts of the history, with `--history`.
    pub history: Option<HistoryCounts>,
}

/// The counts of the groups socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupChanges {
    /// The prefixes of each source: `file` is the groups file.
    pub prefixes: Vec<(Arc<str>, u64)>,
    /// The changes by each source: prefixes that were added, moved to another label, and removed, and labels that got other columns.
    pub changes: Vec<(Arc<str>, [u64; 4])>,
    /// Requests that were refused.
    pub refused: u64,
}

/// The counts of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryCounts {
    /// Rows that were written.
    pub rows: u64,
    /// Rows that could not be written.
    pub lost_rows: u64,
    /// Files that were found damaged.
    pub damaged_files: u64,
    /// The bytes that all files take.
    pub disk: u64,
}

/// The latest values, which the agent replaces once a second.
#[derive(Clone, Debug, Default)]
pub(super) struct Latest {
    pub(super) snapshot: Snapshot,
    /// The names of the interfaces that should be there.
    pub(super) expected: BTreeSet<String>,
    pub(super) fill: Fill,
    pub(super) programs: Vec<ProgramRuns>,
    /// The times of packets in this host, with `--residence`.
    pub(super) residence: Vec<InterfaceTimes>,
    /// The counts of the groups socket, if there is one.
    pub(super) group_changes: Option<GroupChanges>,
    /// The counts of an exporter, if there is one.
    pub(super) pushes: Option<Pushes>,
}

/// The counts of an exporter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pushes {
    /// Requests that the receiver accepted.
    pub accepted: u64,
    /// Requests given up by [`Dropped`].
    pub dropped: [u64; Dropped::COUNT],
    /// Attempts that failed by [`Failed`].
    pub failed: [u64; Failed::COUNT],
    /// Data points that the receiver rejected of requests that it accepted.
    pub rejected_points: u64,
}

impl AddAssign for Pushes {
    fn add_assign(&mut self, more: Self) {
        self.accepted += more.accepted;
        self.dropped.iter_mut().zip(more.dropped).for_each(|(sum, more)| *sum += more);
        self.failed.iter_mut().zip(more.failed).for_each(|(sum, more)| *sum += more);
        self.rejected_points = self.rejected_points.saturating_add(more.rejected_points);
    }
}

/// Why a request was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Newer requests needed its room in the queue.
    QueueFull,
    /// The receiver refused it for good.
    Refused,
    /// pping ended before the receiver had accepted it.
    Stopped,
}

impl Dropped {
    pub(super) const COUNT: usize = 3;
    pub(super) const NAMES: [&str; Self::COUNT] = ["queue_full", "refused", "stopped"];
}

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// There was no connection, or it broke.
    Connection,
    /// The TLS handshake failed, for example because the certificate is for another host.
    Tls,
    /// The receiver took too long.
    Timeout,
    /// The receiver answered with a status other than success.
    Status,
    /// The answer was not an OTLP message.
    Answer,
}

impl Failed {
    pub(super) const COUNT: usize = 5;
    pub(super) const NAMES: [&str; Self::COUNT] = ["connection", "tls", "timeout", "status", "answer"];
}

pub(super) type LatestStore = Arc<Mutex<Latest>>;

//! A running agent: its parts, and what it waits for.

use std::{
    collections::BTreeSet,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use pping_common::abi::Counters;
use tokio::{io::unix::AsyncFd, signal::unix::Signal};

use super::{arms::Evidence, groups::GroupsFile, interfaces::Interfaces};
use crate::{
    config::{Config, Loader},
    groups::Names,
    http::{Readiness, Server},
    kernel::{clock::Moment, loaded::Kernel, netlink::Notices, pins::Pins},
    metrics::Metrics,
    notify::Notify,
    otlp::Exporter,
    output::{Ended, Output},
    records::{Reporter, format::Encoder},
    view::View,
};

/// The highest number of interfaces that a message names.
const MAX_NAMES: usize = 16;

/// The parts of a running agent.
pub(super) struct Agent {
    /// The configuration in force.
    pub(super) config: Config,
    /// Makes the configuration again.
    pub(super) loader: Loader,
    pub(super) kernel: Kernel,
    /// The pins, with `--pin`.
    pub(super) pins: Option<Pins>,
    pub(super) interfaces: Interfaces,
    /// What shows how many arms they have.
    pub(super) arms: Evidence,
    /// The addresses of this host that the kernel programs know.
    pub(super) local_addresses: BTreeSet<[u8; 16]>,
    pub(super) groups: Option<GroupsFile>,
    /// The names of series and groups.
    pub(super) names: Names,
    pub(super) reporter: Reporter,
    pub(super) encoder: Box<dyn Encoder>,
    pub(super) output: Output,
    pub(super) metrics: Metrics,
    pub(super) view: View,
    /// Whether a screen of this process shows the view.
    pub(super) has_screen: bool,
    pub(super) server: Option<Server>,
    pub(super) exporter: Option<Exporter>,
    pub(super) readiness: Readiness,
    pub(super) losses: Losses,
    /// What was counted before this run, with `--pin`.
    pub(super) counters_before: Counters,
    /// When the last cycle began, or the first interval.
    pub(super) last_cycle: Moment,
    pub(super) notify: Notify,
    pub(super) started: Instant,
}

/// The inputs that the agent waits for.
pub(super) struct Inputs {
    pub(super) notices: Notices,
    /// Readable once the events' ring is an eighth full.
    pub(super) ring: AsyncFd<OwnedFd>,
    pub(super) hangup: Signal,
    pub(super) output_ended: Ended,
}

impl Agent {
    /// Whether a screen or the HTTP server shows the view, which has to be filled then.
    pub(super) fn is_viewed(&self) -> bool {
        self.has_screen || self.server.is_some()
    }

    /// The state that the service manager shows.
    pub(super) fn status(&self) -> String {
        let names: Vec<&str> = self.interfaces.up().collect();
        let (shown, others) = names.split_at(names.len().min(MAX_NAMES));
        match (shown, others.len()) {
            ([], _) => "waiting for interfaces".to_owned(),
            (shown, 0) => format!("watching {}", shown.join(", ")),
            (shown, others) => format!("watching {} and {others} more", shown.join(", ")),
        }
    }
}

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

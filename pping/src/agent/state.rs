//! A running agent: its parts, and what it waits for.

use std::{collections::BTreeSet, os::fd::OwnedFd, time::Instant};

use pping_common::abi::Counters;
use tokio::{io::unix::AsyncFd, signal::unix::Signal};

use super::{
    arms::Evidence, groups::Groups, interfaces::Interfaces, losses::Losses, networks::RemoteNetworks,
    placement::Placement,
};
#[cfg(feature = "history")]
use crate::history::HistoryWriter;
#[cfg(feature = "otlp")]
use crate::otlp::Exporter;
use crate::{
    config::{Config, Loader},
    groups::Names,
    http::{Readiness, Server},
    kernel::{clock::Moment, loaded::Kernel, netlink::Notices, pins::Pins},
    metrics::Metrics,
    notify::Notify,
    output::{Ended, Output},
    recent::RecentHistory,
    records::{Reporter, format::Encoder},
};

/// The highest number of interfaces that a message names.
const MAX_NAMES: usize = 16;

/// The parts of a running agent.
pub(super) struct Agent {
    /// The current configuration.
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
    /// Whether they have to be listed again.
    pub(super) are_addresses_due: bool,
    pub(super) groups: Option<Groups>,
    /// The networks at the other end, with `--remote-groups`.
    pub(super) networks: Option<RemoteNetworks>,
    /// The names of series and groups.
    pub(super) names: Names,
    pub(super) reporter: Reporter,
    pub(super) encoder: Box<dyn Encoder>,
    pub(super) output: Output,
    pub(super) metrics: Metrics,
    pub(super) recent: RecentHistory,
    /// Whether a screen of this process shows the recent history.
    pub(super) has_screen: bool,
    pub(super) server: Option<Server>,
    /// The writer of the history, with `--history`.
    #[cfg(feature = "history")]
    pub(super) history: Option<HistoryWriter>,
    #[cfg(feature = "otlp")]
    pub(super) exporter: Option<Exporter>,
    pub(super) readiness: Readiness,
    pub(super) losses: Losses,
    /// What shows that this is the wrong place.
    pub(super) placement: Placement,
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
    /// Whether a screen or the HTTP server shows the recent history, which has to be filled then.
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

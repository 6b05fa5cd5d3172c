//! What pping and the kernel have counted.

use std::{
    thread,
    time::{Duration, Instant},
};

use super::{
    super::{
        http::{Exposition, scrape},
        monitor::PATIENCE,
    },
    cable::{Cable, NEAR},
};

/// How long the agent takes to show what it has, on a busy machine.
const SETTLING: Duration = Duration::from_secs(3);

/// What pping has counted of an interface at one time.
pub(super) struct Counted {
    metrics: Exposition,
    kernel: [u64; 2],
}

impl Counted {
    /// At a time when nothing passes. On a busy machine the agent may take long until it shows what the kernel had counted by
    /// then, so this waits until it shows all that passed since `start`, as long as there is hope.
    pub(super) fn quietly(cable: &Cable, start: Option<&Self>) -> Self {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let before = cable.counted();
            thread::sleep(SETTLING);
            let found = Self { metrics: scrape(&cable.near), kernel: cable.counted() };
            let is_complete = start.is_none_or(|start| found.counted(start) == found.passed(start));
            if before == found.kernel && is_complete || Instant::now() > deadline {
                return found;
            }
        }
    }

    /// Packets received and sent since then, as the kernel has counted.
    pub(super) fn passed(&self, start: &Self) -> [u64; 2] {
        [0, 1].map(|direction| self.kernel[direction] - start.kernel[direction])
    }

    /// The same as pping has.
    pub(super) fn counted(&self, start: &Self) -> [u64; 2] {
        [0, 1].map(|direction| self.packets()[direction] - start.packets()[direction])
    }

    pub(super) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        self.metrics.sum(name, labels).unwrap_or_default() as u64
    }

    fn packets(&self) -> [u64; 2] {
        ["ingress", "egress"].map(|direction| {
            self.sum("pping_packets_total", &[("interface", NEAR), ("direction", direction)])
        })
    }

    pub(super) fn skipped(&self, reason: &str) -> usize {
        self.sum("pping_recordings_skipped_total", &[("interface", NEAR), ("reason", reason)]) as usize
    }
}

//! The packet counts of pping and of the kernel.

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

/// How long a busy machine's agent takes to publish its counts.
const SETTLING: Duration = Duration::from_secs(3);

/// The counts of pping and of the kernel for an interface at one time.
pub(super) struct Counted {
    metrics: Exposition,
    kernel: [u64; 2],
}

impl Counted {
    /// Counts while no packets pass. A busy machine's agent may be slow to publish its counts. So this waits until
    /// pping's count of all packets since `start` equals the kernel's, but no longer than [`PATIENCE`].
    pub(super) fn once_quiet(cable: &Cable, start: Option<&Self>) -> Self {
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

    /// Returns the packets received and sent since `start`, as the kernel counted them.
    pub(super) fn passed(&self, start: &Self) -> [u64; 2] {
        [0, 1].map(|direction| self.kernel[direction] - start.kernel[direction])
    }

    /// Returns the packets received and sent since `start`, as pping counted them.
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

//! pping and tcpdump on the same interface.

use std::{path::Path, time::Duration};

use pping_lab::{Namespace, Process, Signal};
use tempfile::TempDir;

use super::{
    capture::Capture,
    ok,
    records::Records,
    reference::{self, Expected},
};

/// How many recordings of a flow direction can be pending, as in docs/methods.md.
const PENDING: u32 = 8;
/// More recordings than are ever pending.
const UNLIMITED: u32 = 1_000_000;

/// The pending recordings of both directions of a flow. A missed packet invalidates all of them.
const INVALIDATED: usize = 2 * PENDING as usize;

const PATIENCE: Duration = Duration::from_mins(1);

/// A running pping and a running tcpdump. tcpdump starts last and stops first, and the hosts talk only in between, so
/// no sample is lost at the edges.
pub(super) struct Watch {
    pping: Process,
    capture: Capture,
    directory: TempDir,
    decap: String,
}

/// What pping and tcpdump have seen.
pub(super) struct Seen {
    pub(super) records: Records,
    pub(super) expected: Vec<Expected>,
    /// The samples if the number of pending recordings were unlimited. Which recording gets the last free entry depends
    /// on the order of packets on two CPUs, and tcpdump and pping may see different orders.
    pub(super) justified: Vec<Expected>,
    /// How many samples may be missing because pping reports that it skipped packets. It skips packets if another CPU
    /// holds their flow and is then paused for long, as a guest's CPU may be.
    pub(super) excused: usize,
}

impl Watch {
    /// Starts both, and returns once they are watching. Spaces separate the `arguments`.
    pub(super) fn start(host: &Namespace, interface: &str, arguments: &str) -> Self {
        let mut command = host.command(env!("CARGO_BIN_EXE_pping"));
        command.args(["-v", "-i", interface, "--format", "jsonl"]).args(arguments.split_whitespace());
        let mut pping = ok(Process::spawn(command));
        ok(pping.wait_for_output(&format!("watching {interface}"), PATIENCE));
        ok(pping.wait_for_output("measuring round-trip times", PATIENCE));
        let directory = tempfile::tempdir().unwrap();
        let capture = ok(Capture::start(host, interface, &directory.path().join("reference.pcap"), ""));
        let decap = arguments.split_once("--decap ").and_then(|(_, rest)| rest.split_whitespace().next());
        Self { pping, capture, directory, decap: decap.unwrap_or_default().to_owned() }
    }

    /// Stops both, once tcpdump has received the last packets.
    pub(super) fn finish(mut self) -> Seen {
        let file = ok(self.capture.finish());
        ok(self.pping.stop(Signal::SIGINT, PATIENCE));
        let summary = ok(self.pping.stderr());
        assert!(summary.contains("lost: 0 events, 0 lines"), "{summary}");
        let seen = Seen::new(Records::parse(&ok(self.pping.stdout())), &file, &self.decap, &summary);
        drop(self.directory);
        seen
    }
}

impl Seen {
    /// What pping wrote, and said at its end, beside a capture of the same interface.
    pub(super) fn new(records: Records, capture: &Path, decap: &str, summary: &str) -> Self {
        Self {
            records,
            expected: reference::expected_samples(capture, PENDING, decap),
            justified: reference::expected_samples(capture, UNLIMITED, decap),
            excused: not_matched(summary) * INVALIDATED,
        }
    }
}

/// Returns how many packets pping skipped, which is rare.
fn not_matched(summary: &str) -> usize {
    let number = |words: &str| words.split(' ').next()?.parse::<usize>().ok();
    let packets = summary.lines().find_map(|line| number(line.split_once(" s, ")?.1)).unwrap();
    let line = summary.lines().find_map(|line| line.strip_prefix("not matched: "));
    let not_matched = line.map_or(0, |line| number(line).unwrap());
    assert!(not_matched <= 2 + packets / 100, "{summary}");
    not_matched
}

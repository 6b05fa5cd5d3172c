//! Runs tcpdump with as little disturbance as possible.

use std::{
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use pping_lab::{Namespace, Process, Result, Signal};

/// Enough for the headers of everything that pping parses, without payload.
const SNAP_LENGTH: &str = "128";
/// The kernel's buffer in KiB.
const BUFFER_KIB: &str = "16384";
const PATIENCE: Duration = Duration::from_mins(1);
/// tcpdump fetches packets once a second, and loses the last batch when it ends.
const HANDED_OVER: Duration = Duration::from_millis(1500);

/// A running tcpdump.
///
/// Unlike [`pping_lab::Capture`] it does not use immediate mode, in which every packet wakes tcpdump. The kernel would
/// wake it between tcpdump's timestamp and the tc ingress hook. On a virtual machine that alone takes as long as the
/// two may differ.
pub(crate) struct Capture {
    tcpdump: Process,
    file: PathBuf,
}

impl Capture {
    /// Starts tcpdump. Packets sent after this returns are in the capture, if the filter accepts them: the empty one
    /// accepts all.
    pub(crate) fn start(namespace: &Namespace, interface: &str, file: &Path, filter: &str) -> Result<Self> {
        let mut command = namespace.command("tcpdump");
        command.args(["-i", interface, "-n", "--time-stamp-precision=nano"]);
        // Without `-Z root` tcpdump gives up root first, and may then be unable to write the file.
        command.args(["-s", SNAP_LENGTH, "-B", BUFFER_KIB, "-Z", "root", "-w"]).arg(file).arg(filter);
        let mut tcpdump = Process::spawn(command)?;
        tcpdump.wait_for_output("listening on", PATIENCE)?;
        Ok(Self { tcpdump, file: file.to_owned() })
    }

    /// Stops tcpdump, and returns the file. A capture with gaps proves nothing and fails the test.
    pub(crate) fn finish(mut self) -> Result<PathBuf> {
        thread::sleep(HANDED_OVER);
        self.tcpdump.stop(Signal::SIGINT, PATIENCE)?;
        let report = self.tcpdump.stderr()?;
        assert!(report.contains("\n0 packets dropped by kernel"), "{report}");
        Ok(self.file)
    }
}

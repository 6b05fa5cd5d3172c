//! A tcpdump that disturbs as little as it can.

use std::{
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use pping_lab::{Namespace, Process, Result, Signal};

/// Headers of everything pping looks at, and no payload.
const SNAP_LENGTH: &str = "128";
/// The kernel's buffer in KiB.
const BUFFER_KIB: &str = "16384";
const PATIENCE: Duration = Duration::from_mins(1);
/// tcpdump asks the kernel to hand over what it has once a second; what it has not, it loses when it ends.
const HANDED_OVER: Duration = Duration::from_millis(1500);

/// A running tcpdump.
///
/// Other than [`pping_lab::Capture`] it does without the immediate mode, in which every packet wakes tcpdump up.
/// The kernel does that between the moment from which tcpdump has its time and the tc ingress hook, and on a
/// virtual machine it takes as long as the two may differ.
pub(super) struct Capture {
    tcpdump: Process,
    file: PathBuf,
}

impl Capture {
    /// Packets sent after this returns are in the capture.
    pub(super) fn start(namespace: &Namespace, interface: &str, file: &Path) -> Result<Self> {
        let mut command = namespace.command("tcpdump");
        command.args(["-i", interface, "-n", "--time-stamp-precision=nano"]);
        // Without -Z root it gives up root first, and then may not write where root may.
        command.args(["-s", SNAP_LENGTH, "-B", BUFFER_KIB, "-Z", "root", "-w"]).arg(file);
        let mut tcpdump = Process::spawn(command)?;
        tcpdump.wait_for_output("listening on", PATIENCE)?;
        Ok(Self { tcpdump, file: file.to_owned() })
    }

    /// Ends it and returns the file. A capture with gaps is no witness, and fails the test.
    pub(super) fn finish(mut self) -> Result<PathBuf> {
        thread::sleep(HANDED_OVER);
        self.tcpdump.stop(Signal::SIGINT, PATIENCE)?;
        let report = self.tcpdump.stderr()?;
        assert!(report.contains("\n0 packets dropped by kernel"), "{report}");
        Ok(self.file)
    }
}

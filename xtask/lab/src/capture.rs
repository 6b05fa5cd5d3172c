use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use crate::{Error, Namespace, Process, Result, Signal, error::Context};

/// Enough for the headers of everything that pping parses, without payload.
const SNAP_LENGTH: &str = "128";
/// The kernel's buffer in KiB, enough to sleep through a short bulk transfer.
const BUFFER_KIB: &str = "65536";
/// How long the file must not grow before the capture counts as complete.
const SETTLE: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(10);

/// A running tcpdump. Tests compare measured round-trip times with its timestamps.
#[derive(Debug)]
pub struct Capture {
    tcpdump: Process,
    file: PathBuf,
}

/// A finished capture without gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// The pcap file, with time stamps in nanoseconds.
    pub file: PathBuf,
    /// The packets in it.
    pub packets: u64,
}

impl Capture {
    /// Captures both directions of an interface into `file`. Packets sent after this returns are in it.
    ///
    /// # Errors
    /// If tcpdump or the interface is missing, or the file cannot be written.
    pub fn start(namespace: &Namespace, interface: &str, file: &Path) -> Result<Self> {
        let mut command = namespace.command("tcpdump");
        command.args(["-i", interface, "-n", "-U", "--immediate-mode", "--time-stamp-precision=nano"]);
        // Without -Z root, tcpdump gives up root first and then may be unable to write the file.
        command.args(["-s", SNAP_LENGTH, "-B", BUFFER_KIB, "-Z", "root", "-w"]).arg(file);
        let mut tcpdump = Process::spawn(command)?;
        tcpdump.wait_for_output("listening on", PATIENCE)?;
        Ok(Self { tcpdump, file: file.to_owned() })
    }

    /// Waits until the packets seen so far are written, and ends the capture.
    ///
    /// # Errors
    /// [`Error::Incomplete`] if any packet was lost.
    pub fn finish(mut self) -> Result<Captured> {
        self.settle()?;
        self.tcpdump.stop(Signal::SIGINT, PATIENCE)?;
        let report = self.tcpdump.stderr()?;
        // "1 packet captured", "2 packets captured"
        let count = |what: &str| {
            let line = report.lines().find(|line| line.ends_with(what))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        let packets = count("captured");
        // tcpdump leaves out the second line if it is zero.
        let lost = [count("dropped by kernel"), count("dropped by interface").or(Some(0))];
        match packets {
            Some(packets) if lost == [Some(0); 2] => Ok(Captured { file: self.file.clone(), packets }),
            _ => {
                Err(Error::Incomplete { file: self.file.clone(), report: report.trim().replace('\n', ", ") })
            }
        }
    }

    /// On SIGINT tcpdump drops what it has not read yet: let it catch up first.
    fn settle(&self) -> Result<()> {
        let size = || {
            let metadata =
                fs::metadata(&self.file).while_doing(|| format!("read {}", self.file.display()))?;
            Ok(metadata.len())
        };
        let mut before = size()?;
        loop {
            thread::sleep(SETTLE);
            let now = size()?;
            if now == before {
                return Ok(());
            }
            before = now;
        }
    }
}

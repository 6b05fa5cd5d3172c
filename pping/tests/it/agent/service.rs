//! pping as a service manager starts it: its notifications to the manager, and its lines in the journal. The test plays
//! the manager, with its own socket.

use std::{
    fs::File,
    io::Read as _,
    os::unix::{fs::MetadataExt as _, net::UnixDatagram},
    process::Command,
    time::{Duration, Instant},
};

use pping_lab::{BpfObject, Process, Signal, run, uninterrupted};
use tempfile::TempDir;

use super::{
    host::Host,
    leftovers::objects,
    monitor::{ENDING, PATIENCE, PPING, ok},
};

/// The watchdog interval in us. A keep-alive is due every quarter of it.
const WATCHDOG: &str = "8000000";

/// The socket of a service manager.
struct Manager {
    socket: UnixDatagram,
    directory: TempDir,
}

impl Manager {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = UnixDatagram::bind(directory.path().join("notify")).unwrap();
        Self { socket, directory }
    }

    fn start(&self, host: &Host, variables: &[(&str, &str)]) -> Process {
        self.start_on(host, &["-i", Host::ETH], variables)
    }

    fn start_on(&self, host: &Host, interfaces: &[&str], variables: &[(&str, &str)]) -> Process {
        let mut command = host.namespace.command(PPING);
        command.args(interfaces).args(["--format", "none"]).envs(variables.iter().copied());
        command.env("NOTIFY_SOCKET", self.directory.path().join("notify"));
        ok(Process::spawn(command))
    }

    /// Returns the next message, or `None` if none arrives in time.
    fn next(&self, within: Duration) -> Option<String> {
        let mut bytes = [0; 4096];
        self.socket.set_read_timeout(Some(within)).unwrap();
        let length = uninterrupted(|| self.socket.recv(&mut bytes)).ok()?;
        Some(String::from_utf8(bytes[..length].to_vec()).unwrap())
    }

    /// Returns the next message that is not a keep-alive.
    #[track_caller]
    fn next_state(&self) -> String {
        loop {
            let message = self.next(PATIENCE).expect("a message");
            if message != "WATCHDOG=1\n" {
                return message;
            }
        }
    }

    /// Waits for a keep-alive.
    #[track_caller]
    fn next_alive(&self) {
        let message = self.next(PATIENCE).expect("a keep-alive");
        assert_eq!(message, "WATCHDOG=1\n");
    }

    /// Counts the keep-alives in this time.
    fn count_alive(&self, within: Duration) -> usize {
        let end = Instant::now() + within;
        let mut count = 0;
        while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            if let Some(message) = self.next(left) {
                assert_eq!(message, "WATCHDOG=1\n");
                count += 1;
            }
        }
        count
    }
}

#[test]
fn service_manager_hears_ready_reloading_stopping() {
    let (host, manager) = (Host::new(), Manager::new());
    let mut pping = manager.start(&host, &[]);
    assert_eq!(manager.next_state(), "STATUS=loading the kernel programs\n");
    let ready = format!("READY=1\nSTATUS=watching {}\n", Host::ETH);
    assert_eq!(manager.next_state(), ready);
    let links = objects(&pping).iter().filter(|(kind, _)| *kind == BpfObject::Link).count();
    assert!(links >= 2, "ready before it was attached");

    ok(pping.signal(Signal::SIGHUP));
    let reloading = manager.next_state();
    let (state, since_boot) = reloading.split_once('\n').unwrap();
    assert_eq!(state, "RELOADING=1");
    let microseconds = since_boot.trim_end().strip_prefix("MONOTONIC_USEC=").unwrap();
    assert!(microseconds.parse::<u64>().unwrap() > 0);
    assert_eq!(manager.next_state(), ready);

    ok(pping.stop(Signal::SIGTERM, ENDING));
    assert_eq!(manager.next_state(), "STOPPING=1\nSTATUS=detaching\n");
    assert_eq!(manager.next(Duration::from_millis(50)), None);
}

/// If pping did not report that it is ready, the manager would give up on it before a dial-up link exists.
#[test]
fn ready_while_waiting_for_interfaces() {
    let (host, manager) = (Host::new(), Manager::new());
    let mut pping = manager.start_on(&host, &["-i", "ppp0", "--wait"], &[]);
    assert_eq!(manager.next_state(), "STATUS=loading the kernel programs\n");
    assert_eq!(manager.next_state(), "READY=1\nSTATUS=waiting for interfaces\n");
    let add = ["link", "add", "ppp0", "type", "veth", "peer", "name", "far0"];
    ok(run(host.namespace.command("ip").args(add)));
    assert_eq!(manager.next_state(), "STATUS=watching ppp0\n");
    ok(run(host.namespace.command("ip").args(["link", "delete", "ppp0"])));
    assert_eq!(manager.next_state(), "STATUS=waiting for interfaces\n");
    ok(pping.stop(Signal::SIGTERM, ENDING));
}

#[test]
fn the_watchdog_is_fed_only_while_the_ring_is_drained() {
    let (host, manager) = (Host::new(), Manager::new());
    let mut pping = manager.start(&host, &[("WATCHDOG_USEC", WATCHDOG)]);
    while !manager.next_state().starts_with("READY=1\n") {}
    let second = Duration::from_secs(1);
    // pping sends a keep-alive every second cycle: a quarter of the watchdog interval is two seconds.
    manager.next_alive();
    manager.next_alive();
    ok(pping.signal(Signal::SIGSTOP));
    manager.count_alive(second);
    assert_eq!(manager.count_alive(4 * second), 0, "a stopped pping sends keep-alives");
    ok(pping.signal(Signal::SIGCONT));
    manager.next_alive();
    ok(pping.stop(Signal::SIGTERM, ENDING));
}

#[test]
fn the_watchdog_of_another_process_is_not_fed() {
    let (host, manager) = (Host::new(), Manager::new());
    let mut pping = manager.start(&host, &[("WATCHDOG_USEC", WATCHDOG), ("WATCHDOG_PID", "1")]);
    while !manager.next_state().starts_with("READY=1\n") {}
    assert_eq!(manager.count_alive(Duration::from_secs(5)), 0);
    ok(pping.stop(Signal::SIGTERM, ENDING));
}

#[test]
fn a_missing_service_manager_does_not_stop_measuring() {
    let (host, manager) = (Host::new(), Manager::new());
    std::fs::remove_file(manager.directory.path().join("notify")).unwrap();
    let mut pping = manager.start(&host, &[]);
    ok(pping.wait_for_output("cannot notify the service manager (NOTIFY_SOCKET)", PATIENCE));
    ok(pping.stop(Signal::SIGTERM, ENDING));
}

/// Returns the output of pping with these arguments, which end it at once. `is_journal` says whether standard error is
/// the journal.
fn said_to_journal(is_journal: bool, arguments: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    let journal = File::create(&path).unwrap();
    let metadata = journal.metadata().unwrap();
    let inode = if is_journal { metadata.ino() } else { metadata.ino() + 1 };
    let mut pping = Command::new(PPING);
    pping.args(arguments).env("JOURNAL_STREAM", format!("{}:{inode}", metadata.dev()));
    pping.stdin(std::process::Stdio::null()).stderr(journal).status().unwrap();
    let mut said = String::new();
    File::open(&path).unwrap().read_to_string(&mut said).unwrap();
    said
}

#[test]
fn only_the_journal_gets_priorities() {
    let capture = tempfile::NamedTempFile::new().unwrap();
    let nothing = ["-r", capture.path().to_str().unwrap()];
    let to_journal = said_to_journal(true, &nothing);
    assert!(to_journal.starts_with("<3>pping: --read "), "{to_journal}");
    assert!(to_journal.lines().all(|line| line.starts_with("<3>")), "{to_journal}");
    let elsewhere = said_to_journal(false, &nothing);
    assert!(elsewhere.starts_with("pping: --read "), "{elsewhere}");
}

#[test]
fn log_lines_in_the_journal_have_neither_time_nor_colour() {
    let host = Host::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    let journal = File::create(&path).unwrap();
    let metadata = journal.metadata().unwrap();
    let mut pping = host.namespace.command("sh");
    // The lab reads standard error itself, so a shell redirects pping's.
    let line = format!("exec {PPING} -v -i {} --format none 2>{}", Host::ETH, path.display());
    pping.args(["-c", &line]).env("JOURNAL_STREAM", format!("{}:{}", metadata.dev(), metadata.ino()));
    let mut pping = ok(Process::spawn(pping));
    let read = || std::fs::read_to_string(&path).unwrap();
    super::monitor::wait_until("it is watching", || read().contains("watching eth0 at"));
    let said = read();
    ok(pping.stop(Signal::SIGTERM, ENDING));
    assert!(said.lines().any(|line| line.starts_with("<6>watching eth0 at")), "{said}");
    assert!(said.lines().all(|line| line.starts_with('<')) && !said.contains('\u{1b}'), "{said}");
}

#[test]
fn a_full_disk_under_standard_error_does_not_end_it() {
    let (host, manager) = (Host::new(), Manager::new());
    let mut pping = host.namespace.command("sh");
    pping.args(["-c", &format!("exec {PPING} -vv -i {} --format none 2>/dev/full", Host::ETH)]);
    pping.env("NOTIFY_SOCKET", manager.directory.path().join("notify"));
    let mut pping = ok(Process::spawn(pping));
    while !manager.next_state().starts_with("READY=1\n") {}
    ok(pping.stop(Signal::SIGTERM, ENDING));
}

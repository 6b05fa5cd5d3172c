//! A running pping, and traffic for it to measure.

use std::{
    ffi::OsStr,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use pping_lab::{
    Namespace, Process, Signal, Topology, run,
    traffic::{self, Behaviour, Pace, Server},
};

pub(super) const PPING: &str = env!("CARGO_BIN_EXE_pping");

/// How long something may take on a busy machine before the test fails.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// What pping says if its programs take longer than a second to load.
pub(super) const LOADING: &str = "loading the kernel programs";

/// What pping prints once it measures.
pub(super) const MEASURING: &str = "measuring round-trip times";

/// How long pping may take to end. pping itself is quick, but other processes may hold the kernel's global network
/// lock.
pub(super) const ENDING: Duration = Duration::from_mins(1);

/// How long the wire of [`topology`] holds a packet each way.
pub(super) const HOLD: Duration = Duration::from_millis(5);

/// Fails with the error's message instead of its debug representation.
#[track_caller]
pub(super) fn ok<T>(result: pping_lab::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// The path of a file in the repository.
pub(super) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Creates a client, a router and a server, with a round trip of 10 ms.
pub(super) fn topology() -> Topology {
    ok(Topology::builder().hold(HOLD).build())
}

/// Returns the command `pping` with a line of arguments, to be run by `host`. No argument may contain a space.
pub(super) fn pping(host: &Namespace, arguments: &str) -> Command {
    let mut command = host.command(PPING);
    command.args(arguments.split_whitespace());
    command
}

/// Starts pping, and returns once it watches `interface` and measures.
pub(super) fn watch(host: &Namespace, interface: &str, arguments: &str) -> Process {
    watch_with(pping(host, &format!("-v -i {interface} {arguments}")), interface)
}

/// Like [`watch`], with a given command that contains `-v`.
pub(super) fn watch_with(command: Command, interface: &str) -> Process {
    let mut process = ok(Process::spawn(command));
    ok(process.wait_for_output(&format!("watching {interface} at"), PATIENCE));
    ok(process.wait_for_output(MEASURING, PATIENCE));
    process
}

/// Stops pping as Ctrl-C does, and returns its standard output.
#[track_caller]
pub(super) fn interrupt(mut pping: Process) -> String {
    ok(pping.stop(Signal::SIGINT, ENDING));
    ok(pping.stdout())
}

#[track_caller]
pub(super) fn wait_until(what: &str, mut has_happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !has_happened() {
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Pings with `options` such as `-c5 -i0.2`. Every reply must arrive.
#[track_caller]
pub(super) fn ping(from: &Namespace, to: impl Into<IpAddr>, options: &str) {
    let mut ping = from.command("ping");
    ping.args(options.split_whitespace()).arg("-W10").arg(to.into().to_string());
    ok(run(&mut ping));
}

/// Holds a TCP conversation of `chunks` segments and their echoes with each address of the server.
#[track_caller]
pub(super) fn converse(topology: &Topology, chunks: u32) {
    let server = ok(Server::start(topology.server(), 0, Behaviour::Echo));
    let pace = Pace { chunks, bytes: 500, pause: Duration::from_millis(5) };
    for address in [IpAddr::from(Topology::SERVER_IPV4), Topology::SERVER_IPV6.into()] {
        ok(traffic::echo(topology.client(), SocketAddr::new(address, server.port()), pace));
    }
}

/// Sends a hundred pings a second until dropped.
pub(super) fn endless_ping(from: &Namespace, to: impl Into<IpAddr>) -> Process {
    let mut ping = from.command("ping");
    ping.args(["-q", "-i0.01"]).arg(to.into().to_string());
    ok(Process::spawn(ping))
}

/// Runs a tool to its end. Returns whether it succeeded, and its whole output.
///
/// # Panics
/// If the tool is missing: a test that cannot run has not passed.
pub(super) fn tool(program: impl AsRef<OsStr>, arguments: &[&str]) -> (bool, String) {
    let name = program.as_ref().to_string_lossy().into_owned();
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| {
        panic!("this test needs {name}, which `cargo xtask setup --tests` installs: {error}")
    });
    let written = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&written).into_owned())
}

/// Returns everything that `tc`, `ip` and `bpftool` show attached to an interface.
pub(super) fn attachments(host: &Namespace, interface: &str) -> String {
    let mut seen = String::new();
    for command in [
        &["tc", "qdisc", "show", "dev", interface][..],
        &["tc", "filter", "show", "dev", interface, "ingress"],
        &["tc", "filter", "show", "dev", interface, "egress"],
        &["ip", "-details", "link", "show", "dev", interface],
        &["bpftool", "net", "show"],
    ] {
        // Without clsact some of these fail, with a message on standard error.
        seen += &ok(run(host.command(command[0]).args(&command[1..])));
    }
    seen
}

//! The lab itself, on the real kernel. Needs root.

use std::{
    net::{IpAddr, SocketAddr},
    panic::{self, AssertUnwindSafe},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use pping_lab::{
    Capture, Error, Fate, Leg, Namespace, Process, Signal, Topology, run,
    traffic::{self, Behaviour, Pace, Server},
};

const HOLD: Duration = Duration::from_millis(10);
const ETHERNET: usize = 14;

/// Fails with the error's message instead of its debug representation.
#[track_caller]
#[expect(clippy::panic, reason = "a test helper")]
fn ok<T>(result: pping_lab::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

fn topology(hold: Duration) -> Topology {
    ok(Topology::builder().hold(hold).build())
}

/// The lowest round-trip time of a few pings, in milliseconds.
fn min_rtt(from: &Namespace, to: IpAddr) -> f64 {
    let output = ok(run(from.command("ping").args(["-c5", "-i0.05", "-W5", &to.to_string()])));
    let figures = output.split_once("min/avg/max/mdev = ").and_then(|(_, figures)| figures.split('/').next());
    figures.and_then(|min| min.parse().ok()).unwrap_or(f64::NAN)
}

#[test]
fn ping_takes_as_long_as_the_wire_holds() {
    let topology = topology(HOLD);
    for (server, router) in [
        (IpAddr::from(Topology::SERVER_IPV4), IpAddr::from(Topology::WAN_IPV4)),
        (Topology::SERVER_IPV6.into(), Topology::WAN_IPV6.into()),
    ] {
        let rtt = min_rtt(topology.client(), server);
        assert!((20.0..100.0).contains(&rtt), "{rtt} ms to {server} over a wire that holds 10 ms each way");
        let near = min_rtt(topology.client(), router);
        assert!(near < 10.0, "{near} ms to {router}, which is before the wire");
    }
}

#[test]
fn the_hold_of_each_leg_can_change() {
    let topology = topology(Duration::ZERO);
    topology.wire().set_hold(Leg::Backward, Duration::from_millis(30));
    let rtt = min_rtt(topology.client(), Topology::SERVER_IPV4.into());
    assert!((30.0..60.0).contains(&rtt), "{rtt} ms with 30 ms on one leg only");
}

#[test]
fn a_transfer_arrives_unchanged() {
    let topology = topology(Duration::from_millis(1));
    let server = ok(Server::start(topology.server(), 0, Behaviour::Echo));
    let pace = Pace { chunks: 64, bytes: 65_536, pause: Duration::ZERO };
    for address in [IpAddr::from(Topology::SERVER_IPV4), Topology::SERVER_IPV6.into()] {
        let sent = ok(traffic::echo(topology.client(), SocketAddr::new(address, server.port()), pace));
        assert_eq!(sent.bytes, 64 * 65_536);
    }
    for leg in [Leg::Forward, Leg::Backward] {
        let stats = topology.wire().stats(leg);
        assert!(stats.forwarded > 2 * 64 * 65_536 / 1500, "{stats:?}");
        assert_eq!((stats.lost, stats.incomplete, stats.dropped), (0, 0, 0), "{stats:?}");
    }
}

#[test]
fn the_wire_drops_the_chosen_frames() {
    let topology = topology(Duration::ZERO);
    let seen = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&seen);
    topology.wire().set_fate(Leg::Forward, move |frame| {
        let is_ping = frame[12..ETHERNET] == [0x08, 0x00] && frame[ETHERNET + 9] == 1;
        match is_ping.then(|| count.fetch_add(1, Relaxed)) {
            Some(number) if number % 2 == 1 => Fate::Drop,
            _ => Fate::Pass,
        }
    });
    let mut ping = topology.client().command("ping");
    let output = ok(run(ping.args(["-c10", "-i0.02", "-W1", &Topology::SERVER_IPV4.to_string()])));
    assert!(output.contains("10 packets transmitted, 5 received"), "{output}");
    assert_eq!(topology.wire().stats(Leg::Forward).dropped, 5);
    assert_eq!(seen.load(Relaxed), 10);
    topology.wire().clear_fate(Leg::Forward);
    min_rtt(topology.client(), Topology::SERVER_IPV4.into());
    assert_eq!(seen.load(Relaxed), 10, "the closure was called after it was cleared");
}

#[test]
fn the_wire_holds_a_frame_for_its_own_time() {
    let topology = topology(HOLD);
    topology.wire().set_fate(Leg::Forward, |_| Fate::Hold(Duration::from_millis(40)));
    let rtt = min_rtt(topology.client(), Topology::SERVER_IPV4.into());
    assert!((50.0..150.0).contains(&rtt), "{rtt} ms with 40 ms one way and 10 ms the other");
}

#[test]
fn tcp_survives_loss_and_reordering() {
    let topology = topology(Duration::from_millis(1));
    let mut number = 0_u32;
    topology.wire().set_fate(Leg::Forward, move |_| {
        number += 1;
        match number {
            number if number % 50 == 0 => Fate::Drop,
            number if number % 20 == 0 => Fate::Hold(Duration::from_millis(4)),
            _ => Fate::Pass,
        }
    });
    let server = ok(Server::start(topology.server(), 0, Behaviour::Sink));
    let pace = Pace { chunks: 8, bytes: 65_536, pause: Duration::ZERO };
    ok(traffic::send(topology.client(), (Topology::SERVER_IPV4, server.port()), pace));
    assert_eq!(server.received(), 8 * 65_536);
    assert!(topology.wire().stats(Leg::Forward).dropped > 0);
}

#[test]
fn a_capture_has_every_packet_and_the_held_time() {
    let topology = topology(HOLD);
    let directory = tempfile::tempdir().unwrap();
    let capture = ok(Capture::start(topology.router(), Topology::WAN, &directory.path().join("wan0.pcap")));
    min_rtt(topology.client(), Topology::SERVER_IPV4.into());
    let captured = ok(capture.finish());
    let mut tcpdump = Command::new("tcpdump");
    let output = ok(run(tcpdump.args(["-n", "-ttt", "-r"]).arg(&captured.file).arg("icmp")));
    let gaps: Vec<_> = output.lines().filter(|line| line.contains("echo reply")).collect();
    assert_eq!(gaps.len(), 5, "{output}");
    for gap in gaps {
        let (_, seconds) = gap.split_once("00:00:").expect("tcpdump begins a line with the time that passed");
        let seconds: f64 = seconds.split(' ').next().unwrap().parse().unwrap();
        assert!((0.020..0.2).contains(&seconds), "{gap}");
    }
    assert!(captured.packets >= 10, "{captured:?}");
}

#[test]
fn nothing_stays_behind() {
    let exists = |name: &str| std::path::Path::new("/run/netns").join(name).exists();
    let namespace = ok(Namespace::new("drop"));
    let name = namespace.name().to_owned();
    assert!(exists(&name));
    drop(namespace);
    assert!(!exists(&name));

    let mut name = String::new();
    let panicked = panic::catch_unwind(AssertUnwindSafe(|| {
        let topology = topology(HOLD);
        topology.server().name().clone_into(&mut name);
        assert!(!exists(&name), "this panic is part of the test");
    }));
    assert!(panicked.is_err());
    assert!(!name.is_empty() && !exists(&name));
}

#[test]
fn a_process_is_heard_signalled_and_reaped() {
    let host = ok(Namespace::new("host"));
    let mut shell = host.command("sh");
    // Not SIGINT: where the tests run in the background of a script it is ignored, and a shell cannot trap what was ignored.
    shell.args(["-c", "trap 'echo goodbye; exit 0' TERM; echo ready; while :; do sleep 0.01; done"]);
    let mut process = ok(Process::spawn(shell));
    ok(process.wait_for_output("ready", Duration::from_secs(5)));
    assert!(matches!(process.wait_timeout(Duration::from_millis(20)), Err(Error::Timeout { .. })));
    ok(process.stop(Signal::SIGTERM, Duration::from_secs(5)));
    assert_eq!(ok(process.stdout()), "ready\ngoodbye\n");

    let mut sleep = host.command("sleep");
    sleep.arg("1000");
    let process = ok(Process::spawn(sleep));
    let directory = std::path::Path::new("/proc").join(process.id().to_string());
    assert!(directory.exists());
    drop(process);
    assert!(!directory.exists());
}

#[test]
fn a_program_that_ends_early_is_reported() {
    let host = ok(Namespace::new("host"));
    let mut process = ok(Process::spawn(host.command("false")));
    let start = Instant::now();
    let result = process.wait_for_output("ready", Duration::from_secs(20));
    assert!(matches!(result, Err(Error::Failed { .. })), "{result:?}");
    assert!(start.elapsed() < Duration::from_secs(10));
    let missing = Process::spawn(host.command("no-such-program")).expect_err("there is no such program");
    assert!(missing.to_string().contains("cannot run `no-such-program`"), "{missing}");
}

#[test]
fn hosts_do_not_see_each_other() {
    let (one, other) = (ok(Namespace::new("one")), ok(Namespace::new("other")));
    let listener = ok(one.enter(|| std::net::TcpListener::bind("127.0.0.1:0"))).unwrap();
    let address = listener.local_addr().unwrap();
    assert!(ok(one.enter(|| std::net::TcpStream::connect(address))).is_ok());
    assert!(ok(other.enter(|| std::net::TcpStream::connect(address))).is_err());
}

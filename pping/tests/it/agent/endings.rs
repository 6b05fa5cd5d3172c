//! However pping ends, it prints a summary.

use std::{
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use pping_lab::{BpfObject, Fate, Leg, Process, Signal, Topology, run};

use super::{
    http::{LISTEN, is_ready, scrape},
    leftovers::objects,
    monitor::{
        ENDING, HOLD, LOADING, PPING, converse, endless_ping, ok, ping, pping, topology, wait_until, watch,
    },
};

/// The number before a word: `3` in `3 samples`.
fn figure(text: &str, word: &str) -> u64 {
    let (before, _) = text.split_once(&format!(" {word}")).unwrap_or_else(|| panic!("no {word} in {text}"));
    before.rsplit(' ').next().and_then(|figure| figure.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

/// The number after a word, in milliseconds.
fn milliseconds(text: &str, word: &str) -> f64 {
    let (_, after) = text.split_once(&format!("{word} ")).unwrap_or_else(|| panic!("no {word} in {text}"));
    let (figure, _) = after.split_once(" ms").unwrap_or_else(|| panic!("no unit behind {word} in {text}"));
    figure.parse().unwrap()
}

fn assert_sums_up(stderr: &str) {
    // A slow start says first what it waits for.
    let mut lines = stderr.lines().filter(|line| !line.ends_with(LOADING));
    let start = lines.next().unwrap();
    assert!(start.ends_with(&format!("watching {}: measuring", Topology::WAN)), "{stderr}");
    let first = lines.next().unwrap();
    let seconds: f64 = first.split_once(" s, ").unwrap().0.parse().unwrap();
    assert!(seconds > 0.4, "{stderr}");
    let samples = figure(first, "samples");
    assert!(figure(first, "packets") > samples && samples > 0, "{stderr}");
    let mut by_series = 0;
    // Client replies are matched on the near side of the router, and server replies on the far side.
    for (method, matched, is_far) in [
        ("tcp-ts", "ingress", true),
        ("tcp-ts", "egress", false),
        ("tcp-handshake", "ingress", true),
        ("tcp-handshake", "egress", false),
        ("icmp-echo", "ingress", true),
    ] {
        let line = stderr.lines().find(|line| line.starts_with(method) && line.contains(matched));
        let line = line.unwrap_or_else(|| panic!("no {method} {matched} in {stderr}"));
        let quantiles = ["p50", "p90", "p99"].map(|quantile| milliseconds(line, quantile));
        assert!(quantiles.is_sorted(), "{line}");
        // Quantiles are exact to one part in a thousand.
        assert!(!is_far || quantiles[0] >= 2e3 * HOLD.as_secs_f64() * 0.999, "{line}");
        by_series += figure(line, "samples");
    }
    assert_eq!(by_series, samples, "{stderr}");
    assert!(stderr.lines().any(|line| line == "lost: 0 events, 0 lines"), "{stderr}");
    // Neighbour discovery is not measured, and a guest's CPU may be paused: both print lines by chance.
    let is_by_chance = |line: &str| {
        line.starts_with("not measured: ") || line.starts_with("not matched: ") || line.ends_with(LOADING)
    };
    let lines = stderr.lines().filter(|line| !is_by_chance(line)).count();
    assert_eq!(lines, 8, "more than the start and a summary: {stderr}");
}

#[test]
fn a_signal_ends_it_while_it_waits_for_the_writer_of_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    ok(run(Command::new("mkfifo").arg(&pipe)));
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut command = Command::new(PPING);
        command.args(["-r".as_ref(), pipe.as_os_str()]);
        let mut pping = ok(Process::spawn(command));
        thread::sleep(Duration::from_millis(300));
        ok(pping.stop(signal, ENDING));
        assert!(ok(pping.stderr()).contains("0 packets"), "{}", ok(pping.stderr()));
    }
}

#[test]
fn a_signal_ends_it_with_a_summary() {
    let topology = topology();
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let arguments = format!("-i {} --rate-limit 0 {LISTEN}", Topology::WAN);
        let mut pping = ok(Process::spawn(pping(topology.router(), &arguments)));
        wait_until("pping is ready", || is_ready(topology.router()));
        converse(&topology, 10);
        ping(topology.client(), Topology::SERVER_IPV4, "-c4 -i0.1");
        ok(pping.stop(signal, ENDING));
        assert_sums_up(&ok(pping.stderr()));
    }
}

#[test]
fn packets_to_this_host_are_named_unless_they_are_measured() {
    let topology = topology();
    for (arguments, is_named) in [("", true), ("--include-local", false)] {
        let arguments = format!("--format none --rate-limit 0 {arguments}");
        let mut pping = watch(topology.router(), Topology::LAN, &arguments);
        ping(topology.client(), Topology::LAN_IPV4, "-c4 -i0.1");
        ok(pping.stop(Signal::SIGINT, ENDING));
        let said = ok(pping.stderr());
        let line = "\nnot timed: 4 packets to this host itself; --include-local times them";
        assert_eq!(said.contains(line), is_named, "{said}");
        assert_eq!(said.contains("not timed"), is_named, "{said}");
        assert!(!said.contains("not answered"), "{said}");
    }
}

#[test]
fn pings_without_a_reply_are_counted() {
    let topology = topology();
    // Neighbours are resolved before replies are lost.
    ping(topology.client(), Topology::SERVER_IPV4, "-c1");
    let mut pping = watch(topology.router(), Topology::WAN, &format!("--format none {LISTEN}"));
    ping(topology.client(), Topology::SERVER_IPV4, "-c5 -i0.05");
    topology.wire().set_fate(Leg::Backward, |_| Fate::Drop);
    let mut lost = topology.client().command("ping");
    lost.args(["-c7", "-i0.05", "-W1"]).arg(Topology::SERVER_IPV4.to_string());
    assert!(run(&mut lost).is_err(), "no reply comes");
    let count = |name| scrape(topology.router()).sum(name, &[("interface", Topology::WAN)]);
    wait_until("all are counted", || count("pping_echo_requests_total") == Some(12.0));
    assert_eq!(count("pping_echo_replies_total"), Some(5.0), "the rate limit drops samples, not replies");
    assert_eq!(count("pping_echo_requests_not_awaited_total"), Some(0.0));
    assert_eq!(count("pping_untimed_local_packets_total"), Some(0.0));
    ok(pping.stop(Signal::SIGINT, ENDING));
    let said = ok(pping.stderr());
    let line = "\nnot answered: 7 of 12 echo requests when pping ended; look for loss or an outage";
    assert!(said.contains(line) && !said.contains("not timed"), "{said}");
}

#[test]
fn it_can_be_stopped_before_the_first_record() {
    let topology = topology();
    let arguments = format!("-i {} {LISTEN}", Topology::WAN);
    let mut pping = ok(Process::spawn(pping(topology.router(), &arguments)));
    wait_until("pping is ready", || is_ready(topology.router()));
    ok(pping.stop(Signal::SIGINT, ENDING));
    let stderr = ok(pping.stderr());
    assert!(stderr.contains(" 0 samples\n") && stderr.ends_with("lost: 0 events, 0 lines\n"), "{stderr}");
}

struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn an_unread_pipe_stops_neither_shutdown_nor_metrics() {
    const SAMPLES: f64 = 400.0;
    let topology = topology();
    let arguments = format!("-i {} --rate-limit 0 {LISTEN}", Topology::WAN);
    let mut command = pping(topology.router(), &arguments);
    let stderr = tempfile::NamedTempFile::new().unwrap();
    command.stdout(Stdio::piped()).stderr(stderr.reopen().unwrap());
    let mut pping = Guard(command.spawn().unwrap());
    wait_until("pping is ready", || is_ready(topology.router()));
    // A pipe holds 64 KiB, about 200 records. On a busy machine some requests are not recorded.
    ping(topology.client(), Topology::SERVER_IPV4, "-q -i0.004 -c600");
    wait_until("the metrics go on counting", || {
        scrape(topology.router()).sum("pping_samples_total", &[]) >= Some(SAMPLES)
    });
    let pid = pping.0.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    wait_until("the end", || pping.0.try_wait().unwrap().is_some());
    let status = pping.0.wait().unwrap();
    let said = std::fs::read_to_string(stderr.path()).unwrap();
    assert!(status.success(), "{status}: {said}");
    assert!(figure(&said, "samples") >= SAMPLES as u64, "{said}");
    assert!(said.contains("p99"), "{said}");
    let (_, losses) = said.split_once("lost: ").expect("losses");
    // Lines that were waiting for the reader are lost, and the summary counts them.
    assert!(figure(losses, "lines") > 100, "{said}");
}

#[test]
fn it_ends_quickly_under_load() {
    let topology = topology();
    let _pings = endless_ping(topology.client(), Topology::SERVER_IPV4);
    let mut command = topology.router().command(PPING);
    command.args(["-v", "-i", Topology::WAN, "-i", Topology::LAN, "--rate-limit", "0"]);
    let mut pping = super::monitor::watch_with(command, Topology::LAN);
    wait_until("records", || ok(pping.stdout()).lines().count() > 50);
    ok(pping.stop(Signal::SIGTERM, ENDING));
    super::formats::records(&ok(pping.stdout()));
}

#[test]
fn signals_while_it_loads_are_no_failure() {
    let topology = topology();
    for delay in [0, 10, 20, 30] {
        let arguments = format!("-i {}", Topology::WAN);
        let mut pping = ok(Process::spawn(pping(topology.router(), &arguments)));
        // pping creates all maps before it loads the programs, and the verifier gives up when a signal arrives. aya may
        // create the first few maps to probe the kernel.
        let maps = || objects(&pping).iter().filter(|(kind, _)| *kind == BpfObject::Map).count();
        wait_until("the maps are there", || maps() >= 6);
        thread::sleep(Duration::from_millis(delay));
        // aya survives one signal by itself: it retries the load to get the verifier's log.
        for _ in 0..4 {
            ok(pping.signal(Signal::SIGINT));
            thread::sleep(Duration::from_millis(8));
        }
        let status = ok(pping.wait_timeout(ENDING));
        assert!(status.success(), "{status}: {}", ok(pping.stderr()));
    }
}

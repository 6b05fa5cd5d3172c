//! A start: pping counts packets once its programs are attached, and measures once the stages are loaded too.

use std::{fs, process::Command, thread, time::Duration};

use pping_lab::{Process, Signal, Topology};

use super::{
    host::Host,
    http::{LISTEN, is_ready, scrape},
    monitor::{
        ENDING, LOADING, MEASURING, PATIENCE, PPING, attachments, interrupt, ok, ping, pping, topology,
        wait_until, watch,
    },
};

/// Pings in each part of a test.
const PINGS: u32 = 5;

/// How often a test tries to stop pping in the tenth of a second between counting and measuring.
const TRIES: usize = 20;

/// Starts pping, and suspends it once it counts packets.
fn stopped(topology: &Topology, ingress: &str) -> Process {
    let arguments =
        format!("-v -i {} --ingress {ingress} --rate-limit 0 --format none {LISTEN}", Topology::WAN);
    let mut pping = ok(Process::spawn(pping(topology.router(), &arguments)));
    ok(pping.wait_for_output(&format!("watching {} at", Topology::WAN), PATIENCE));
    ok(pping.signal(Signal::SIGSTOP));
    let stat = format!("/proc/{}/stat", pping.id());
    wait_until("it is stopped", || fs::read_to_string(&stat).unwrap().contains(") T "));
    pping
}

/// Returns the packets of pings, the samples, and the packets that met a stage that was not loaded.
fn start_counts(topology: &Topology) -> [Option<f64>; 3] {
    let exposition = scrape(topology.router());
    [
        exposition.sum("pping_packets_total", &[("protocol", "icmp")]),
        exposition.sum("pping_samples_total", &[("method", "icmp-echo")]),
        exposition.sum("pping_untracked_packets_total", &[("reason", "not_loaded")]),
    ]
}

fn assert_counts_before_it_measures(ingress: &str) {
    let topology = topology();
    // One request and one reply per ping.
    let packets = f64::from(2 * PINGS);
    for _ in 0..TRIES {
        let mut pping = stopped(&topology, ingress);
        ping(topology.client(), Topology::SERVER_IPV4, &format!("-c{PINGS} -i0.05"));
        ok(pping.signal(Signal::SIGCONT));
        ok(pping.wait_for_output(MEASURING, PATIENCE));
        wait_until("it is ready", || is_ready(topology.router()));
        ping(topology.client(), Topology::SERVER_IPV4, &format!("-c{PINGS} -i0.05"));
        wait_until("each packet is counted", || start_counts(&topology)[0] >= Some(2.0 * packets));
        let [all, samples, not_loaded] = start_counts(&topology);
        interrupt(pping);
        assert_eq!(all, Some(2.0 * packets));
        if samples > Some(f64::from(PINGS)) {
            // pping was suspended too late, and measured all of them.
            continue;
        }
        assert_eq!(samples, Some(f64::from(PINGS)));
        // Neighbour discovery may add more.
        assert!(not_loaded >= Some(packets), "{not_loaded:?}");
        return;
    }
    panic!("never stopped in time");
}

#[test]
fn packets_at_tc_are_counted_before_they_are_measured() {
    assert_counts_before_it_measures("tc");
}

#[test]
fn packets_at_xdp_are_counted_before_they_are_measured() {
    assert_counts_before_it_measures("xdp");
}

#[test]
fn signals_during_start_are_handled_afterwards() {
    let topology = topology();
    for signals in [&[Signal::SIGTERM][..], &[Signal::SIGHUP, Signal::SIGINT]] {
        let mut pping = stopped(&topology, "tc");
        for &signal in signals {
            ok(pping.signal(signal));
        }
        ok(pping.signal(Signal::SIGCONT));
        let status = ok(pping.wait_timeout(ENDING));
        let said = ok(pping.stderr());
        assert!(status.success() && said.contains(MEASURING) && said.contains("lost: 0 events"), "{said}");
    }
}

#[test]
fn slow_start_says_what_it_waits_for() {
    /// Some starts are over before they are stopped.
    const ATTEMPTS: usize = 20;
    let topology = topology();
    let started = format!("watching {}: measuring", Topology::WAN);
    let has_said = (0..ATTEMPTS).any(|_| {
        let said = stopped_start(&topology, &started);
        let lines: Vec<&str> = said.lines().collect();
        let says_so = lines[0].ends_with(LOADING);
        assert!(
            lines.len() == 1 + usize::from(says_so) && lines[lines.len() - 1].ends_with(&started),
            "{said}"
        );
        says_so
    });
    assert!(has_said);
}

/// Stops a pping for a second while it loads programs, and returns what it says until it measures.
fn stopped_start(topology: &Topology, started: &str) -> String {
    let arguments = format!("-i {} --format none", Topology::WAN);
    let mut pping = ok(Process::spawn(pping(topology.router(), &arguments)));
    let tasks = format!("/proc/{}/task", pping.id());
    let is_loading = || {
        let mut tasks = fs::read_dir(&tasks).unwrap().flatten();
        tasks.any(|it| fs::read_to_string(it.path().join("comm")).is_ok_and(|name| name == "pping-start\n"))
    };
    while !is_loading() && !ok(pping.stderr()).contains(started) {
        thread::sleep(Duration::from_millis(2));
    }
    ok(pping.signal(Signal::SIGSTOP));
    thread::sleep(Duration::from_millis(1100));
    ok(pping.signal(Signal::SIGCONT));
    ok(pping.wait_for_output(started, PATIENCE));
    let said = ok(pping.stderr());
    interrupt(pping);
    said
}

/// Runs pping with a limited number of descriptors, and asserts that it ends or measures. Returns its output if it
/// ended.
fn with_descriptors(host: &Host, limit: usize) -> Option<String> {
    let mut command = host.namespace.command("sh");
    let line = format!("ulimit -n {limit}; exec {PPING} -v -i {} --format none", Host::ETH);
    command.args(["-c", &line]);
    let mut pping = ok(Process::spawn(command));
    wait_until("it measures or ends", || {
        ok(pping.status()).is_some() || ok(pping.stderr()).contains(MEASURING)
    });
    if ok(pping.stderr()).contains(MEASURING) {
        ok(pping.signal(Signal::SIGKILL));
        ok(pping.wait_timeout(ENDING));
        return None;
    }
    let status = ok(pping.wait_timeout(ENDING));
    let said = ok(pping.stderr());
    assert_eq!(status.code(), Some(1), "{said}");
    Some(said)
}

/// The kernel refuses a stage, here because the process has no descriptor left for it.
#[test]
fn a_stage_that_is_refused_ends_it_and_nothing_stays_attached() {
    let host = Host::new();
    let before = attachments(&host.namespace, Host::ETH);
    let pping = watch(&host.namespace, Host::ETH, "--format none");
    let needed = fs::read_dir(format!("/proc/{}/fd", pping.id())).unwrap().count();
    interrupt(pping);
    let mut refused = Vec::new();
    for limit in (1..=needed).rev() {
        let Some(said) = with_descriptors(&host, limit) else { continue };
        // The kernel detaches programs with a delay.
        thread::sleep(Duration::from_millis(50));
        assert_eq!(attachments(&host.namespace, Host::ETH), before, "{said}");
        if !said.contains("watching eth0 at") {
            break;
        }
        refused.push(said);
    }
    let of_stages = refused.iter().filter(|said| said.contains("rejected pping_tc_")).count();
    assert!(of_stages > 0, "{refused:#?}");
}

#[test]
fn too_few_descriptors_are_named_as_the_cause() {
    // Enough for the program itself, and not for its maps.
    let command = format!("ulimit -n 30; exec {PPING} -i lo --format none");
    let output = Command::new("sh").args(["-c", &command]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("too many open files") && message.contains("ulimit -n"), "{message}");
}

//! On kernels without TCX, programs outlive their agent. They measure only while an agent renews their lease.

use std::{
    path::Path,
    sync::mpsc,
    thread,
    time::{Duration, UNIX_EPOCH},
};

use nix::{
    sys::{
        ptrace::{self, Options},
        wait::{WaitPidFlag, waitpid},
    },
    unistd::Pid,
};
use pping_common::limits::{LEASE_SECONDS, SECOND};
use pping_lab::{BpfObject, Fate, Leg, Process, Signal, Topology, run};
use serde_json::Value;

use super::{
    leftovers::objects,
    monitor::{
        ENDING, PATIENCE, endless_ping, interrupt, ok, ping, pping, tool, topology, wait_until, watch_with,
    },
    neighbours::tc,
    web::privileges::threads,
};

/// The offset of the `EtherType` in a frame without VLAN tags, and the value for IPv4.
const ETHER_TYPE: usize = 12;
const IPV4: [u8; 2] = [0x08, 0x00];
const PROTOCOL: usize = 23;
const ICMP: u8 = 1;

/// Watches the router's interface towards the server as on a kernel without TCX.
fn watch(topology: &Topology) -> Process {
    let arguments = format!("-v -i {} --ingress tc --rate-limit 0 --format jsonl", Topology::WAN);
    let mut command = pping(topology.router(), &arguments);
    command.env("PPING_WITHOUT", "tcx");
    watch_with(command, Topology::WAN)
}

/// Returns the id of the map in which a process's programs count packets.
fn counters(pping: &Process) -> u32 {
    let is_counters =
        |number: &u32| tool("bpftool", &["map", "show", "id", &number.to_string()]).1.contains("COUNTERS");
    let maps =
        objects(pping).into_iter().filter(|(kind, _)| *kind == BpfObject::Map).map(|(_, number)| number);
    maps.into_iter().find(is_counters).unwrap()
}

/// Counts the samples whose RTT is at least `bound`.
fn longer_than(bound: Duration, lines: &str) -> usize {
    let records = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.filter(|record| u128::from(record["rtt"].as_u64().unwrap_or(0)) >= bound.as_nanos()).count()
}

/// Has the agent's loop wait, as for the kernel, while the other threads of the process go on.
fn hold_up(pping: &Process, time: Duration) {
    // Not in a sweep, which begins with the second and is no time to wait for anything.
    let since_second = UNIX_EPOCH.elapsed().unwrap().subsec_nanos();
    thread::sleep(Duration::from_nanos(SECOND * 3 / 2 - u64::from(since_second)));
    let main_thread = Pid::from_raw(pping.id().cast_signed());
    ptrace::seize(main_thread, Options::empty()).unwrap();
    ptrace::interrupt(main_thread).unwrap();
    waitpid(main_thread, Some(WaitPidFlag::__WALL)).unwrap();
    thread::sleep(time);
    ptrace::detach(main_thread, None).unwrap();
}

/// Sends one ping whose reply the wire holds back. Returns once the wire holds the reply.
fn ping_held(topology: &Topology, hold: Duration) -> Process {
    // Two pings resolve the neighbours first, over the same wire.
    ping(topology.client(), Topology::SERVER_IPV4, "-c2 -i0.2");
    let (sender, is_held) = mpsc::channel();
    topology.wire().set_fate(Leg::Backward, move |frame| {
        if frame[ETHER_TYPE..].starts_with(&IPV4) && frame[PROTOCOL] == ICMP && sender.send(()).is_ok() {
            return Fate::Hold(hold);
        }
        Fate::Pass
    });
    let mut command = topology.client().command("ping");
    command.args(["-c1", "-W60"]).arg(Topology::SERVER_IPV4.to_string());
    let ping = ok(Process::spawn(command));
    is_held.recv_timeout(PATIENCE).expect("a reply to hold");
    ping
}

#[test]
fn programs_a_killed_agent_leaves_measure_nothing() {
    let topology = topology();
    let _pings = endless_ping(topology.client(), Topology::SERVER_IPV4);
    let mut pping = watch(&topology);
    thread::sleep(Duration::from_secs(LEASE_SECONDS + 2));
    let lines = ok(pping.stdout()).lines().count();
    wait_until("samples long after the first lease", || ok(pping.stdout()).lines().count() > lines + 50);

    let map = counters(&pping).to_string();
    // The filters keep the programs alive, and the programs keep the map.
    let dump = || {
        let (is_there, dump) = tool("bpftool", &["map", "dump", "id", &map]);
        assert!(is_there, "the filters went, or took the map along: {dump}");
        dump
    };
    ok(pping.signal(Signal::SIGKILL));
    ok(pping.wait_timeout(ENDING));
    wait_until("the programs count no packets any more", || {
        let before = dump();
        ping(topology.client(), Topology::SERVER_IPV4, "-c5 -i0.1");
        dump() == before
    });
}

#[test]
fn an_agent_that_waits_for_longer_than_the_lease_misses_nothing() {
    const PINGS: usize = 100;
    let topology = topology();
    let pping = watch(&topology);
    let mut ping = topology.client().command("ping");
    ping.args(["-c", &PINGS.to_string(), "-i0.1"]).arg(Topology::SERVER_IPV4.to_string());
    let mut pings = ok(Process::spawn(ping));
    hold_up(&pping, Duration::from_secs(LEASE_SECONDS + 3));
    ok(pings.wait_timeout(PATIENCE));
    let log = ok(pping.stderr());
    assert_eq!(interrupt(pping).lines().filter(|line| line.contains("icmp-echo")).count(), PINGS, "{log}");
    assert!(!log.contains("all flows start over"), "{log}");
}

#[test]
fn the_thread_that_renews_the_lease_keeps_only_what_that_takes() {
    const CAP_BPF: &str = "0000008000000000";
    const NONE: &str = "0000000000000000";
    let topology = topology();
    let pping = watch(&topology);
    let tasks = format!("/proc/{}/task", pping.id());
    let renewer = || threads(Path::new(&tasks)).into_iter().find(|(name, _)| name == "pping-lease");
    let expected =
        Some(("pping-lease".to_owned(), [NONE, CAP_BPF, CAP_BPF, NONE].map(str::to_owned).to_vec()));
    assert_eq!(renewer(), expected, "inheritable, permitted, effective, ambient");
}

#[test]
fn removed_filters_return_and_flows_start_over() {
    const PUT_BACK: &str = "wan0: another program had removed filters of pping, which are back";
    // Longer than it takes to put them back.
    let held = Duration::from_secs(8);
    let topology = topology();
    let pping = watch(&topology);
    for (times, removal) in [(1, "qdisc del dev wan0 clsact"), (2, "filter del dev wan0 egress")] {
        let mut across = ping_held(&topology, held);
        tc(&topology, removal);
        wait_until(removal, || ok(pping.stderr()).matches(PUT_BACK).count() == times);
        ok(across.wait_timeout(PATIENCE));
        // Samples come in order, so the one to come shows that there was none before.
        ping(topology.client(), Topology::SERVER_IPV4, "-c1");
    }
    let mut undisturbed = ping_held(&topology, held);
    ok(undisturbed.wait_timeout(PATIENCE));
    wait_until("the last ping", || longer_than(held, &ok(pping.stdout())) > 0);
    assert_eq!(longer_than(held / 2, &interrupt(pping)), 1, "the last ping alone");
    let left = tc(&topology, "qdisc show dev wan0");
    assert!(!left.contains("clsact"), "{left}");
}

#[test]
fn removed_filters_are_retried_until_possible() {
    let topology = topology();
    let pping = watch(&topology);
    // An ingress qdisc has the place of the clsact qdisc, and no room for filters at egress. If pping is faster than
    // the second command, the place is taken, and both are repeated.
    let take_the_place = "tc qdisc del dev wan0 clsact; tc qdisc add dev wan0 ingress";
    wait_until(take_the_place, || run(topology.router().command("sh").args(["-c", take_the_place])).is_ok());
    wait_until("it is given up", || ok(pping.stderr()).contains("is not watched any more: another program"));
    tc(&topology, "qdisc del dev wan0 ingress");
    wait_until("it is watched again", || ok(pping.stderr()).matches("watching wan0 at").count() > 1);
    ping(topology.client(), Topology::SERVER_IPV4, "-c5 -i0.1");
    assert_eq!(interrupt(pping).lines().filter(|line| line.contains("icmp-echo")).count(), 5);
    let left = tc(&topology, "qdisc show dev wan0");
    assert!(!left.contains("clsact"), "{left}");
}

#[test]
fn recordings_from_before_an_expired_lease_are_not_matched() {
    let held = Duration::from_secs(LEASE_SECONDS + 4);
    let topology = topology();
    let mut pping = watch(&topology);

    let mut across = ping_held(&topology, held);
    ok(pping.signal(Signal::SIGSTOP));
    thread::sleep(Duration::from_secs(LEASE_SECONDS + 2));
    ok(pping.signal(Signal::SIGCONT));
    ok(pping.wait_for_output("all flows start over", PATIENCE));
    ok(across.wait_timeout(PATIENCE));
    let mut undisturbed = ping_held(&topology, held);
    ok(undisturbed.wait_timeout(PATIENCE));

    wait_until("the second ping", || longer_than(held, &ok(pping.stdout())) > 0);
    assert_eq!(longer_than(held / 2, &interrupt(pping)), 1, "and not the first");
}

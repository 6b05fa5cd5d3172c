//! pping in a wrong place says so: a mirror port that gets one direction, and an `--inside` that does not fit.

use std::{net::SocketAddr, thread, time::Duration};

use pping_lab::{
    Namespace, Process, Signal, Topology,
    traffic::{self, Behaviour, Pace, Server},
    veth::{End, Offloads, connect},
};
use serde_json::Value;

use super::{Family, ok, topology};

const TO_PROBE: &str = "mirror0";
const PROBE: &str = "probe0";
const PATIENCE: Duration = Duration::from_mins(2);
/// More than enough for a share of them to say something.
const CONNECTIONS: usize = 60;
const CONVERSATION: Pace = Pace { chunks: 4, bytes: 100, pause: Duration::from_millis(1) };
const ONE_DIRECTION: &str = "the other direction of 100 % of the flows was not seen";
const NOTHING_INSIDE: &str = "--inside: no host inside of the network replied";

/// Mirrors packets that pass these hooks of the router's uplink to a new probe.
fn mirror(topology: &Topology, hooks: &[&str]) -> Namespace {
    let probe = ok(Namespace::new("probe"));
    ok(connect(End::new(topology.router(), TO_PROBE), End::new(&probe, PROBE), Offloads::On));
    let tc = |arguments: String| {
        ok(pping_lab::run(topology.router().command("tc").args(arguments.split_whitespace())));
    };
    tc(format!("qdisc add dev {} clsact", Topology::WAN));
    for hook in hooks {
        tc(format!(
            "filter add dev {} {hook} protocol all u32 match u32 0 0 action mirred egress mirror dev {TO_PROBE}",
            Topology::WAN
        ));
    }
    probe
}

fn start(host: &Namespace, arguments: &str) -> Process {
    let mut command = host.command(env!("CARGO_BIN_EXE_pping"));
    command.args(["-v", "--format", "none", "--rate-limit", "0", "--listen", "127.0.0.1:9464"]);
    command.args(arguments.split_whitespace());
    let mut pping = ok(Process::spawn(command));
    ok(pping.wait_for_output("measuring round-trip times", PATIENCE));
    pping
}

/// Makes connections one after the other, and closes them.
fn converse(topology: &Topology) {
    let server = ok(Server::start(topology.server(), 0, Behaviour::Echo));
    let address = SocketAddr::new(Family::Ipv4.server(), server.port());
    for _ in 0..CONNECTIONS {
        ok(traffic::echo(topology.client(), address, CONVERSATION));
    }
}

/// The warnings that page and `pping top` show.
fn warnings(host: &Namespace) -> Vec<String> {
    let mut curl = host.command("curl");
    let summary = ok(pping_lab::run(curl.args(["-s", "http://127.0.0.1:9464/api/v1/summary"])));
    let summary: Value = serde_json::from_str(&summary).unwrap();
    serde_json::from_value(summary["warnings"].clone()).unwrap()
}

/// Ends pping, and returns its log with the summary.
fn stop(mut pping: Process) -> String {
    ok(pping.stop(Signal::SIGINT, PATIENCE));
    ok(pping.stderr())
}

#[test]
fn a_mirror_of_one_direction_is_named() {
    let topology = topology();
    let probe = mirror(&topology, &["ingress"]);
    let mut pping = start(&probe, &format!("-i {PROBE} --arms one"));
    converse(&topology);
    assert_eq!(warnings(&probe), [""; 0], "no flow has ended yet");
    // Flows that closed end after ten seconds.
    ok(pping.wait_for_output(&format!("{PROBE}: {ONE_DIRECTION}"), PATIENCE));
    thread::sleep(Duration::from_millis(2_500));
    let shown = warnings(&probe);
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert!(shown[0].starts_with(&format!("{PROBE}: {ONE_DIRECTION}")), "{shown:?}");
    // The rest of the flows may be open at the end.
    let said = stop(pping);
    let (log, summary) = said.split_once(" packets, ").unwrap();
    assert_eq!(log.matches(ONE_DIRECTION).count(), 1, "{log}");
    assert!(log.contains("join them (-i eth1+eth2), or let the mirror show both directions"), "{log}");
    let line = format!("\nnot measured: {CONNECTIONS} TCP flows (one_way): {ONE_DIRECTION}");
    assert!(summary.contains(&line), "{summary}");
}

#[test]
fn an_inside_without_replies_is_named() {
    let topology = topology();
    let probe = mirror(&topology, &["ingress", "egress"]);
    let mut wrong = start(&probe, &format!("-i {PROBE} --arms one --inside 192.0.2.0/24"));
    let right = start(topology.router(), &format!("-i {} --inside 10.11.1.0/24", Topology::WAN));
    converse(&topology);
    ok(wrong.wait_for_output(NOTHING_INSIDE, PATIENCE));
    thread::sleep(Duration::from_millis(2_500));
    let shown = warnings(&probe);
    assert!(shown.len() == 1 && shown[0].starts_with(NOTHING_INSIDE), "{shown:?}");
    assert_eq!(warnings(topology.router()), [""; 0]);
    let [wrong, right] = [wrong, right].map(stop);
    assert_eq!(wrong.matches(NOTHING_INSIDE).count(), 1, "{wrong}");
    assert!(wrong.contains("\none side: no host inside of the network replied"), "{wrong}");
    assert!(!right.contains("inside of the network"), "{right}");
    // Both directions were seen.
    for said in [wrong, right] {
        assert!(!said.contains("other direction") && !said.contains("one_way"), "{said}");
    }
}

//! A mirror port beside a router: with `--inside`, pping there measures the same as pping on the router, side by side.

use std::{collections::BTreeMap, net::SocketAddr, thread, time::Duration};

use pping_lab::{
    Namespace, Process, Signal, Topology,
    traffic::{self, Behaviour, Pace, Server},
    veth::{End, Offloads, connect},
};
use serde_json::Value;

use super::{Family, ROUND_TRIP, ok, statistics::median, topology};

/// The router's interface to the probe, and the probe's.
const TO_PROBE: &str = "mirror0";
const PROBE: &str = "probe0";
/// The network of the client.
const INSIDE: &str = "--inside 10.11.1.0/24,fd00:11:1::/64";
const CONVERSATION: Pace = Pace { chunks: 300, bytes: 100, pause: Duration::from_millis(3) };
const PATIENCE: Duration = Duration::from_mins(1);
/// How far the medians of the two places may differ: the copies of both packets of a sample wait about as long, even on a busy
/// machine, and the two sides are 20 ms apart.
const SAME_RTT: Duration = Duration::from_millis(5);
/// How many samples each packet may cost that is not matched because another CPU has its flow: all that is pending.
const LOST_AT_ONCE: u64 = 32;

fn start(host: &Namespace, arguments: &str) -> Process {
    let mut command = host.command(env!("CARGO_BIN_EXE_pping"));
    command.args(["-v", "--format", "jsonl", "--rate-limit", "0", "--aggregate", "1d", "--with-samples"]);
    command.args(arguments.split_whitespace());
    let mut pping = ok(Process::spawn(command));
    ok(pping.wait_for_output("measuring round-trip times", PATIENCE));
    pping
}

/// Ends pping, and returns its records, and how many packets it could not match.
fn records(mut pping: Process) -> (Vec<Value>, u64) {
    ok(pping.stop(Signal::SIGINT, PATIENCE));
    let records = ok(pping.stdout()).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = ok(pping.stderr());
    let not_matched =
        summary.lines().filter_map(|line| line.strip_prefix("not matched: ")?.split(' ').next());
    (records, not_matched.map(|number| number.parse::<u64>().unwrap()).sum())
}

/// The RTTs of each side and method, in ns.
fn rtts(records: &[Value]) -> BTreeMap<(String, String), Vec<u64>> {
    let mut rtts: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for record in records.iter().filter(|record| record["type"] == "rtt") {
        let name = |field: &str| record[field].as_str().unwrap_or("-").to_owned();
        rtts.entry((name("side"), name("method"))).or_default().push(record["rtt"].as_u64().unwrap());
    }
    rtts
}

/// The samples of each side by the aggregates.
fn counts(records: &[Value]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for record in records.iter().filter(|record| record["type"] == "aggregate") {
        *counts.entry(record["side"].as_str().unwrap_or("-").to_owned()).or_default() +=
            record["count"].as_u64().unwrap();
    }
    counts
}

#[test]
fn a_mirror_port_has_the_samples_of_the_router_on_the_same_sides() {
    let topology = topology();
    let probe = ok(Namespace::new("probe"));
    ok(connect(End::new(topology.router(), TO_PROBE), End::new(&probe, PROBE), Offloads::On));
    let tc = |arguments: String| {
        ok(pping_lab::run(topology.router().command("tc").args(arguments.split_whitespace())));
    };
    tc(format!("qdisc add dev {} clsact", Topology::WAN));
    for hook in ["ingress", "egress"] {
        tc(format!(
            "filter add dev {} {hook} protocol all u32 match u32 0 0 action mirred egress mirror dev {TO_PROBE}",
            Topology::WAN
        ));
    }
    let on_router = start(topology.router(), &format!("-i {} {INSIDE}", Topology::WAN));
    let on_mirror = start(&probe, &format!("-i {PROBE} --arms one {INSIDE}"));
    let server = ok(Server::start(topology.server(), 0, Behaviour::Echo));
    for family in [Family::Ipv4, Family::Ipv6] {
        let address = SocketAddr::new(family.server(), server.port());
        ok(traffic::echo(topology.client(), address, CONVERSATION));
        let mut ping = topology.client().command("ping");
        let to = family.server().to_string();
        ok(pping_lab::run(ping.args(["-n", "-i", "0.02", "-c", "20", &to])));
    }
    // The last copies are still on their way.
    thread::sleep(Duration::from_millis(200));
    let [(on_router, lost), (on_mirror, lost_on_mirror)] = [on_router, on_mirror].map(records);
    let excused = LOST_AT_ONCE * (lost + lost_on_mirror);

    let (expected, found) = (rtts(&on_router), rtts(&on_mirror));
    assert!(found.keys().eq(expected.keys()), "{:?}, on the router {:?}", found.keys(), expected.keys());
    for (side, count) in counts(&on_router) {
        let of_mirror = counts(&on_mirror)[&side];
        assert!(
            of_mirror.abs_diff(count) <= excused,
            "{side}: {of_mirror}, on the router {count} ({excused} excused)"
        );
    }
    let sides: Vec<_> = counts(&on_router).into_keys().collect();
    assert_eq!(sides, ["inside", "outside"]);
    for (key, rtts) in &found {
        let (count, of_router) = (rtts.len() as u64, expected[key].len() as u64);
        assert!(
            count.abs_diff(of_router) <= excused,
            "{key:?}: {count}, on the router {of_router} ({excused} excused)"
        );
        let [here, there] =
            [rtts, &expected[key]].map(|rtts| Duration::from_nanos(median(rtts.iter().copied())));
        assert!(here.abs_diff(there) < SAME_RTT, "{key:?}: {here:?}, on the router {there:?}");
        assert_eq!(here >= ROUND_TRIP, key.0 == "outside", "{key:?}: {here:?}");
    }
    assert!(expected[&("outside".to_owned(), "tcp-ts".to_owned())].len() > 200);

    // Without --inside nothing tells the sides apart: all packets come in by the port.
    assert!(on_mirror.iter().all(|record| record["match_on_egress"] != true));
}

//! Mirror ports beside a router: with `--mirror`, pping there measures the same as pping on the router, side by side.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    process::Command,
    thread,
    time::Duration,
};

use pping_lab::{
    Fate, Leg, Namespace, Process, Signal, Topology,
    traffic::{self, Behaviour, Pace, Server},
    veth::{End, Offloads, connect},
};
use serde_json::Value;

use super::{Family, ROUND_TRIP, capture::Capture, ok, statistics::median, topology};

/// The router's interfaces to the probe, and the probe's.
const TO_PROBE: [&str; 2] = ["mirror0", "mirror1"];
const PROBE: [&str; 2] = ["probe0", "probe1"];
/// The network of the client.
const INSIDE: &str = "--inside 10.11.1.0/24,fd00:11:1::/64";
const CONVERSATION: Pace = Pace { chunks: 300, bytes: 100, pause: Duration::from_millis(3) };
const PATIENCE: Duration = Duration::from_mins(1);
/// The offset of the `EtherType`. The lab's frames have no VLAN tags.
const ETHER_TYPE: usize = 12;
/// How far the medians of the two places may differ: the copies of both packets of a sample wait about as long, even on a busy
/// machine, and the two sides are 20 ms apart.
const SAME_RTT: Duration = Duration::from_millis(5);
/// How far the scores of the two places may differ, of 100: those of latency follow the percentiles.
const SAME_SCORE: u64 = 5;
const REPORTS: &str = "--format jsonl --rate-limit 0 --aggregate 1d --with-samples --group-by /24,/64";
/// The wire loses one in this many packets to the server.
const LOST: u32 = 29;
/// How many samples each packet may cost that is not matched because another CPU has its flow: all that is pending.
const LOST_AT_ONCE: u64 = 32;
/// How many samples two ports may lose: two CPUs handle their copies, and one may be at an answer before the other is at the
/// packet that it answers, which came microseconds earlier.
const LOST_BETWEEN_PORTS: u64 = 4;

fn start(host: &Namespace, arguments: &str) -> Process {
    let mut command = host.command(env!("CARGO_BIN_EXE_pping"));
    command.args(REPORTS.split_whitespace()).arg("-v").args(arguments.split_whitespace());
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

/// What the aggregates of a group, a side and a method say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Measured {
    samples: u64,
    retransmissions: u64,
    /// Scores by profile.
    quality: BTreeMap<String, Option<i64>>,
}

/// The aggregates by group, side and method.
fn measured(records: &[Value]) -> BTreeMap<[String; 3], Measured> {
    let mut measured: BTreeMap<_, Measured> = BTreeMap::new();
    for record in records.iter().filter(|record| record["type"] == "aggregate") {
        let number = |field: &str| record[field].as_u64().unwrap();
        let key = ["group", "side", "method"].map(|field| record[field].as_str().unwrap().to_owned());
        let measured = measured.entry(key).or_default();
        measured.samples += number("count");
        measured.retransmissions += number("sent_retransmissions") + number("rec_retransmissions");
        let scores = record["quality"].as_object().unwrap();
        measured.quality.extend(scores.iter().map(|(profile, score)| (profile.clone(), score.as_i64())));
    }
    measured
}

/// Asserts that a mirror shows what the router measured, but for samples that are excused.
fn assert_same(on_mirror: &[Value], on_router: &[Value], excused: u64) {
    let (expected, found) = (rtts(on_router), rtts(on_mirror));
    assert!(found.keys().eq(expected.keys()), "{:?}, on the router {:?}", found.keys(), expected.keys());
    let (of_router, of_mirror) = (measured(on_router), measured(on_mirror));
    assert!(of_mirror.keys().eq(of_router.keys()), "{of_mirror:#?}, on the router {of_router:#?}");
    for (key, of_router) in &of_router {
        let of_mirror = &of_mirror[key];
        let what = format!("{key:?}: {of_mirror:?}, on the router {of_router:?} ({excused} excused)");
        assert!(of_mirror.samples.abs_diff(of_router.samples) <= excused, "{what}");
        assert!(of_mirror.retransmissions.abs_diff(of_router.retransmissions) <= excused, "{what}");
        for (profile, score) in &of_router.quality {
            let pair = score.zip(of_mirror.quality[profile]);
            assert!(pair.is_none_or(|(there, here)| here.abs_diff(there) <= SAME_SCORE), "{what}");
        }
    }
    let sides: BTreeSet<_> = of_router.keys().map(|[_, side, _]| side.as_str()).collect();
    assert_eq!(sides, BTreeSet::from(["inside", "outside"]));
    let retransmissions: u64 = of_router.values().map(|it| it.retransmissions).sum();
    assert!(retransmissions > 5, "{retransmissions} of the segments that the wire lost");
    assert!(of_router.values().any(|it| it.quality.values().any(Option::is_some)), "{of_router:#?}");
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
}

/// What a router mirrors: an interface, one of its hooks, and the interface to the probe that gets the copies.
type Mirrored = (&'static str, &'static str, &'static str);

/// A router that mirrors what passes it to a probe.
struct Mirror {
    topology: Topology,
    probe: Namespace,
}

impl Mirror {
    fn new(mirrored: &[Mirrored]) -> Self {
        let topology = topology();
        let mut packets = 0_u32;
        topology.wire().set_fate(Leg::Forward, move |frame| {
            // ARP must get through, or the hosts forget each other's link-layer addresses.
            let is_ip = matches!(frame[ETHER_TYPE..], [0x08, 0x00, ..] | [0x86, 0xdd, ..]);
            packets += u32::from(is_ip);
            if is_ip && packets.is_multiple_of(LOST) { Fate::Drop } else { Fate::Pass }
        });
        let probe = ok(Namespace::new("probe"));
        for (to_probe, port) in TO_PROBE.into_iter().zip(PROBE) {
            ok(connect(End::new(topology.router(), to_probe), End::new(&probe, port), Offloads::On));
        }
        let tc = |arguments: String| {
            ok(pping_lab::run(topology.router().command("tc").args(arguments.split_whitespace())));
        };
        for interface in [Topology::WAN, Topology::LAN] {
            tc(format!("qdisc add dev {interface} clsact"));
        }
        for (interface, hook, to_probe) in mirrored {
            tc(format!(
                "filter add dev {interface} {hook} protocol all u32 match u32 0 0 action mirred egress mirror dev {to_probe}"
            ));
        }
        Self { topology, probe }
    }

    /// Lets client and server talk by IPv4 and IPv6.
    fn talk(&self) {
        let server = ok(Server::start(self.topology.server(), 0, Behaviour::Echo));
        for family in [Family::Ipv4, Family::Ipv6] {
            let address = SocketAddr::new(family.server(), server.port());
            ok(traffic::echo(self.topology.client(), address, CONVERSATION));
            let mut ping = self.topology.client().command("ping");
            let to = family.server().to_string();
            ok(pping_lab::run(ping.args(["-n", "-i", "0.02", "-c", "20", &to])));
        }
        // The last copies are still on their way.
        thread::sleep(Duration::from_millis(200));
    }

    /// Measures on the router and on the probe at the same time, and compares. Returns the records of the probe.
    fn compare(&self, on_probe: &str) -> Vec<Value> {
        let on_router = start(self.topology.router(), &format!("-i {} {INSIDE}", Topology::WAN));
        let on_mirror = start(&self.probe, &format!("{on_probe} {INSIDE}"));
        self.talk();
        let [(on_router, lost), (on_mirror, lost_on_mirror)] = [on_router, on_mirror].map(records);
        let between_ports = if on_probe.contains('+') { LOST_BETWEEN_PORTS } else { 0 };
        assert_same(&on_mirror, &on_router, LOST_AT_ONCE * (lost + lost_on_mirror) + between_ports);
        on_mirror
    }

    /// Whether a port of the probe is in promiscuous mode.
    fn is_promiscuous(&self, port: &str) -> bool {
        let link = ok(pping_lab::run(self.probe.command("ip").args(["-d", "link", "show", port])));
        link.contains("promiscuity 1")
    }
}

#[test]
fn a_mirror_port_has_the_samples_of_the_router_on_the_same_sides() {
    let mirror =
        Mirror::new(&[(Topology::WAN, "ingress", TO_PROBE[0]), (Topology::WAN, "egress", TO_PROBE[0])]);
    mirror.compare(&format!("-i {} --mirror", PROBE[0]));
}

#[test]
fn two_joined_ports_of_a_tap_have_the_samples_of_the_router() {
    let mirror =
        Mirror::new(&[(Topology::WAN, "ingress", TO_PROBE[0]), (Topology::WAN, "egress", TO_PROBE[1])]);
    let joined = PROBE.join("+");
    let records = mirror.compare(&format!("-i {joined} --mirror"));
    let interfaces: BTreeSet<_> =
        records.iter().filter(|it| it["type"] == "rtt").map(|it| it["interface"].as_str().unwrap()).collect();
    assert_eq!(interfaces, BTreeSet::from([&*joined]));
}

#[test]
fn copies_before_and_after_routing_count_once() {
    let both = |interface| ["ingress", "egress"].map(|hook| (interface, hook, TO_PROBE[0]));
    let mirror = Mirror::new(&[both(Topology::WAN), both(Topology::LAN)].concat());
    let summary = {
        let pping = start(&mirror.probe, &format!("-i {} --mirror {INSIDE}", PROBE[0]));
        assert!(mirror.is_promiscuous(PROBE[0]));
        mirror.talk();
        let mut pping = pping;
        ok(pping.stop(Signal::SIGINT, PATIENCE));
        ok(pping.stderr())
    };
    assert!(!mirror.is_promiscuous(PROBE[0]), "the mode ends with pping");
    assert!(summary.contains("(duplicate)"), "{summary}");
    mirror.compare(&format!("-i {} --mirror", PROBE[0]));
}

#[test]
fn a_capture_of_any_interface_has_each_packet_twice_and_counts_it_once() {
    let mirror = Mirror::new(&[]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("any.pcap");
    let router = mirror.topology.router();
    let witness = ok(Capture::start(router, "any", &file, "ip or ip6"));
    let on_router = start(router, &format!("-i {} {INSIDE}", Topology::WAN));
    mirror.talk();
    let (on_router, lost) = records(on_router);
    let file = ok(witness.finish());
    let mut replay = Command::new(env!("CARGO_BIN_EXE_pping"));
    replay.arg("-r").arg(file).args(REPORTS.split_whitespace()).args(["--mirror", "--join"]);
    let replayed = ok(pping_lab::run(replay.args(INSIDE.split_whitespace())));
    let replayed: Vec<_> = replayed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_same(&replayed, &on_router, LOST_AT_ONCE * lost);
}

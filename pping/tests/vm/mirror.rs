//! A probe at mirror ports beside a router measures what pping on the router does, by the microsecond.

use std::{collections::BTreeMap, net::Ipv4Addr, thread, time::Duration};

use pping_lab::{
    Namespace, Process, Topology, run,
    traffic::Pace,
    veth::{self, End, Offloads},
};
use serde_json::Value;

use super::{
    monitor::{interrupt, ok, ping, pping, watch_with},
    net::{FAMILIES, Net, ip},
};

const DELAY: Duration = Duration::from_millis(20);
const CONVERSATION: Pace = Pace { chunks: 40, bytes: 100, pause: Duration::from_millis(10) };
const PINGS: &str = "-c10 -i0.05";

/// The router's interfaces to the probe, and the probe's.
const TO_PROBE: [&str; 2] = ["mirror0", "mirror1"];
const PORTS: [&str; 2] = ["probe0", "probe1"];

/// The tunnel by which the router sends its mirror, and the addresses of its ends.
const TUNNEL: &str = "span0";
const ENDS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 72, 9, 1), Ipv4Addr::new(10, 72, 9, 2)];

/// The networks of the client.
const INSIDE: &str = "--inside 10.11.1.0/24,fd00:11:1::/64";

/// How far the medians of both places may differ: to put a copy into a tunnel takes longer for one packet than for another.
const SAME_MEDIAN: Duration = Duration::from_micros(20);

/// How far single round trips may differ, as those of a handshake.
const SAME: Duration = Duration::from_micros(100);

/// Samples from which on their median says something.
const SEVERAL: usize = 10;

/// How the probe gets copies of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By one port.
    OnePort,
    /// Each direction by another port.
    TwoPorts,
    /// By one port, before and after routing.
    Twice,
    /// In ERSPAN of this version of Linux: 1 is type II, 2 is type III.
    Erspan(u8),
}

impl Way {
    /// The options of pping on the probe.
    fn options(self) -> String {
        match self {
            Self::OnePort | Self::Twice => format!("-i {}", PORTS[0]),
            Self::TwoPorts => format!("-i {}", PORTS.join("+")),
            Self::Erspan(_) => format!("-i {} --decap erspan", PORTS[0]),
        }
    }

    /// What is mirrored: an interface of the router, its hook, and the interface that gets the copies.
    fn mirrored(self) -> Vec<(&'static str, &'static str, &'static str)> {
        let both = |interface, to| vec![(interface, "ingress", to), (interface, "egress", to)];
        match self {
            Self::OnePort => both(Topology::WAN, TO_PROBE[0]),
            Self::TwoPorts => {
                vec![(Topology::WAN, "ingress", TO_PROBE[0]), (Topology::WAN, "egress", TO_PROBE[1])]
            }
            Self::Twice => [both(Topology::WAN, TO_PROBE[0]), both(Topology::LAN, TO_PROBE[0])].concat(),
            Self::Erspan(_) => both(Topology::WAN, TUNNEL),
        }
    }
}

/// A router that mirrors to a probe.
struct Mirror {
    net: Net,
    probe: Namespace,
}

impl Mirror {
    fn new(way: Way) -> Self {
        let (net, probe) = (Net::new(), ok(Namespace::new("probe")));
        for (near, far) in TO_PROBE.into_iter().zip(PORTS) {
            ok(veth::connect(End::new(&net.router, near), End::new(&probe, far), Offloads::On));
        }
        if let Way::Erspan(version) = way {
            ip(&net.router, &format!("address add {}/24 dev {}", ENDS[0], TO_PROBE[0]));
            ip(&probe, &format!("address add {}/24 dev {}", ENDS[1], PORTS[0]));
            let header = if version == 1 { "erspan 7" } else { "erspan_dir ingress erspan_hwid 7" };
            ip(
                &net.router,
                &format!(
                    "link add {TUNNEL} type erspan seq key 5 local {} remote {} erspan_ver {version} {header}",
                    ENDS[0], ENDS[1]
                ),
            );
            ip(&net.router, &format!("link set {TUNNEL} up"));
            // The first copy does not wait for the address of the probe.
            ping(&net.router, ENDS[1], "-c1");
        }
        let tc = |arguments: &str| ok(run(net.router.command("tc").args(arguments.split_whitespace())));
        for interface in [Topology::WAN, Topology::LAN] {
            tc(&format!("qdisc add dev {interface} clsact"));
        }
        for (interface, hook, to) in way.mirrored() {
            tc(&format!("filter add dev {interface} {hook} matchall action mirred egress mirror dev {to}"));
        }
        net.delay(DELAY);
        Self { net, probe }
    }

    fn watch(host: &Namespace, options: &str, first: &str) -> Process {
        let options = format!("-v --rate-limit 0 --max-flows 1024 {INSIDE} {options}");
        watch_with(pping(host, &options), first)
    }
}

/// The RTTs by side, method and host that replied, ns.
fn rtts(jsonl: &str) -> BTreeMap<[String; 3], Vec<u64>> {
    let mut rtts: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for line in jsonl.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        if record["type"] == "rtt" {
            let key = ["side", "method", "src_ip"].map(|field| record[field].as_str().unwrap().to_owned());
            rtts.entry(key).or_default().push(record["rtt"].as_u64().unwrap());
        }
    }
    rtts
}

fn median(rtts: &[u64]) -> Duration {
    let mut rtts = rtts.to_vec();
    rtts.sort_unstable();
    Duration::from_nanos(rtts[rtts.len() / 2])
}

fn agrees(way: Way) {
    let mirror = Mirror::new(way);
    let Mirror { net, probe } = &mirror;
    let on_router = Mirror::watch(&net.router, &format!("-i {}", Topology::WAN), Topology::WAN);
    let on_probe = Mirror::watch(
        probe,
        &format!("--mirror {}", way.options()),
        &format!("what comes in by {}", PORTS[0]),
    );
    for family in FAMILIES {
        net.converse(family, CONVERSATION);
        ping(&net.client, family.server(), PINGS);
    }
    thread::sleep(Duration::from_secs(2));
    let [on_router, on_probe] = [on_router, on_probe].map(|pping| rtts(&interrupt(pping)));

    let counts = |of: &BTreeMap<[String; 3], Vec<u64>>| -> BTreeMap<_, _> {
        of.iter().map(|(key, rtts)| (key.clone(), rtts.len())).collect()
    };
    assert_eq!(counts(&on_probe), counts(&on_router), "{way:?}");
    for (key, rtts) in &on_probe {
        let (here, there) = (median(rtts), median(&on_router[key]));
        let tolerance = if rtts.len() < SEVERAL { SAME } else { SAME_MEDIAN };
        assert!(here.abs_diff(there) <= tolerance, "{way:?}, {key:?}: {here:?}, on the router {there:?}");
        assert_eq!(here >= DELAY, key[0] == "outside", "{way:?}, {key:?}: {here:?}");
    }
    for family in FAMILIES {
        let outside = |method: &str| ["outside".into(), method.to_owned(), family.server().to_string()];
        assert_eq!(on_probe[&outside("icmp-echo")].len(), 10, "{way:?}");
        assert!(on_probe[&outside("tcp-ts")].len() >= 20, "{way:?}");
    }
}

#[test]
fn one_port_agrees_with_the_router() {
    agrees(Way::OnePort);
}

#[test]
fn joined_ports_agree_with_the_router() {
    agrees(Way::TwoPorts);
}

#[test]
fn copies_before_and_after_routing_agree_with_the_router() {
    agrees(Way::Twice);
}

#[test]
fn erspan_ii_agrees_with_the_router() {
    agrees(Way::Erspan(1));
}

#[test]
fn erspan_iii_agrees_with_the_router() {
    agrees(Way::Erspan(2));
}

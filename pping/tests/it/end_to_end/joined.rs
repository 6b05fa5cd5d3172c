//! Two uplinks of one router: packets leave by one, and answers come by the other. Joined they are one interface.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use pping_lab::{
    Namespace, Process, Signal,
    traffic::{self, Behaviour, Pace, Server},
    veth::{End, Offloads, connect},
};
use serde_json::Value;

use super::ok;

const CONVERSATION: Pace = Pace { chunks: 100, bytes: 100, pause: Duration::from_millis(3) };
const PATIENCE: Duration = Duration::from_mins(1);
const PINGS: &str = "10";
const SERVER: [u8; 4] = [10, 72, 1, 2];

/// A client, a router with two uplinks, and a server that answers by the other uplink than the client asks by.
struct Uplinks {
    client: Namespace,
    router: Namespace,
    server: Namespace,
}

fn ip(host: &Namespace, arguments: &str) {
    ok(pping_lab::run(host.command("ip").args(arguments.split_whitespace())));
}

impl Uplinks {
    fn new() -> Self {
        let [client, router, server] = ["client", "router", "server"].map(|role| ok(Namespace::new(role)));
        ok(connect(End::new(&client, "eth"), End::new(&router, "lan"), Offloads::On));
        for uplink in ["wan1", "wan2"] {
            ok(connect(End::new(&router, uplink), End::new(&server, uplink), Offloads::On));
        }
        for (host, interface, address) in [
            (&client, "eth", "10.72.0.2"),
            (&router, "lan", "10.72.0.1"),
            (&router, "wan1", "10.72.1.1"),
            (&router, "wan2", "10.72.2.1"),
            (&server, "wan1", "10.72.1.2"),
            (&server, "wan2", "10.72.2.2"),
        ] {
            // Otherwise a host drops what comes by another way than it would answer.
            for at in ["all", interface] {
                ok(host.sysctl(&format!("net.ipv4.conf.{at}.rp_filter"), "0"));
            }
            ip(host, &format!("address add {address}/24 dev {interface}"));
        }
        ok(router.forward());
        ip(&client, "route add default via 10.72.0.1");
        ip(&server, "route add 10.72.0.0/24 via 10.72.2.1");
        Self { client, router, server }
    }

    /// Lets them talk while pping watches the router. Returns its records.
    fn watch(&self, arguments: &str) -> Vec<Value> {
        let mut command = self.router.command(env!("CARGO_BIN_EXE_pping"));
        command.args(["-v", "--format", "jsonl", "--rate-limit", "0"]);
        command.args(arguments.split_whitespace());
        let mut pping = ok(Process::spawn(command));
        ok(pping.wait_for_output("measuring round-trip times", PATIENCE));
        let server = ok(Server::start(&self.server, 0, Behaviour::Echo));
        ok(traffic::echo(&self.client, SocketAddr::from((SERVER, server.port())), CONVERSATION));
        let mut ping = self.client.command("ping");
        ok(pping_lab::run(ping.args(["-n", "-i", "0.02", "-c", PINGS, "10.72.1.2"])));
        ok(pping.stop(Signal::SIGINT, PATIENCE));
        ok(pping.stdout()).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The number of samples by interface and method.
fn samples(records: &[Value]) -> BTreeMap<(&str, &str), usize> {
    let mut samples = BTreeMap::new();
    for record in records.iter().filter(|record| record["type"] == "rtt") {
        let name = |field: &str| record[field].as_str().unwrap();
        *samples.entry((name("interface"), name("method"))).or_default() += 1;
    }
    samples
}

#[test]
fn joined_uplinks_measure_what_leaves_by_one_and_returns_by_the_other() {
    let uplinks = Uplinks::new();
    let apart = uplinks.watch("-i wan1 -i wan2");
    assert!(samples(&apart).is_empty(), "each uplink has one direction only: {:?}", samples(&apart));
    let joined = uplinks.watch("-i wan1+wan2");
    let samples = samples(&joined);
    assert!(samples.keys().all(|&(interface, _)| interface == "wan1+wan2"), "{samples:?}");
    assert_eq!(samples.get(&("wan1+wan2", "icmp-echo")), Some(&10), "{samples:?}");
    assert!(samples.get(&("wan1+wan2", "tcp-ts")).is_some_and(|&count| count >= 100), "{samples:?}");
    // One of the server, and one of the client.
    assert_eq!(samples.get(&("wan1+wan2", "tcp-handshake")), Some(&2), "{samples:?}");
    let mut pings = joined.iter().filter(|record| record["type"] == "rtt" && record["method"] == "icmp-echo");
    assert!(pings.all(|record| record["match_on_egress"] == false), "answers come in");
}

#[test]
fn interfaces_of_different_kinds_cannot_be_joined() {
    let uplinks = Uplinks::new();
    ip(&uplinks.router, "tuntap add dev tun7 mode tun");
    let mut command = uplinks.router.command(env!("CARGO_BIN_EXE_pping"));
    let said = command.args(["-i", "wan1+tun7"]).output().unwrap();
    let text = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(2), "{text}");
    assert!(text.contains("give them apart: -i wan1 -i tun7"), "{text}");
}

#[test]
fn joining_both_ends_of_a_router_measures_each_packet_once() {
    let uplinks = Uplinks::new();
    let on_lan = uplinks.watch("-i lan");
    let count = |records: &[Value], method| -> usize {
        samples(records).iter().filter(|((_, of), _)| *of == method).map(|(_, count)| count).sum()
    };
    let joined = uplinks.watch("-i lan+wan1+wan2");
    for method in ["icmp-echo", "tcp-handshake"] {
        assert_eq!(count(&joined, method), count(&on_lan, method), "{method}");
    }
}

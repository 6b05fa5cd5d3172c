//! A router with one arm: two subnets on one interface. Each packet that it forwards passes both hooks of the interface.

use std::{net::SocketAddr, thread, time::Duration};

use pping_lab::{
    Namespace, Process, Signal,
    traffic::{self, Behaviour, Pace, Server},
};
use serde_json::Value;

use super::ok;

const ARM: &str = "arm";
const HOSTS: [&str; 2] = ["10.71.1.2", "10.71.2.2"];
const ROUTERS: [&str; 2] = ["10.71.1.1", "10.71.2.1"];
const PINGS: u64 = 20;
const CONVERSATION: Pace = Pace { chunks: 200, bytes: 500, pause: Duration::from_millis(3) };
/// How many of some hundred segments of each host may be sent again, and the most bytes that one has.
const MAY_BE_SENT_AGAIN: u64 = 10;
const MOST_AGAIN: u64 = 1500;
const PATIENCE: Duration = Duration::from_mins(1);

/// Two hosts and a router behind a bridge.
struct Network {
    hosts: [Namespace; 2],
    router: Namespace,
    _switch: Namespace,
}

fn ip(host: &Namespace, arguments: &str) {
    let mut command = host.command("ip");
    ok(pping_lab::run(command.args(arguments.split_whitespace())));
}

/// Connects a host to the bridge.
fn plug(switch: &Namespace, host: &Namespace, interface: &str, port: &str) {
    ip(host, &format!("link add {interface} type veth peer name {port}"));
    ip(host, &format!("link set {port} netns {}", switch.name()));
    ip(switch, &format!("link set {port} master bridge up"));
    ip(host, &format!("link set {interface} up"));
    // Whole packets, so that both hooks see the same.
    let mut ethtool = host.command("ethtool");
    ok(pping_lab::run(ethtool.args(["-K", interface, "tso", "off", "gso", "off", "gro", "off"])));
}

impl Network {
    fn new() -> Self {
        let [switch, router, first, second] =
            ["switch", "router", "first", "second"].map(|role| ok(Namespace::new(role)));
        ip(&switch, "link add bridge type bridge");
        ip(&switch, "link set bridge up");
        plug(&switch, &router, ARM, "to-router");
        ok(router.forward());
        // The hosts must not learn a shorter way.
        for interface in ["all", ARM] {
            ok(router.sysctl(&format!("net.ipv4.conf.{interface}.send_redirects"), "0"));
        }
        for (number, host) in [&first, &second].into_iter().enumerate() {
            plug(&switch, host, "eth", &format!("to-host{number}"));
            ip(host, &format!("address add {}/24 dev eth", HOSTS[number]));
            ip(host, &format!("route add default via {}", ROUTERS[number]));
            ip(&router, &format!("address add {}/24 dev {ARM}", ROUTERS[number]));
        }
        Self { hosts: [first, second], router, _switch: switch }
    }

    fn ping(&self, count: u64) {
        let mut ping = self.hosts[0].command("ping");
        ok(pping_lab::run(ping.args(["-n", "-i", "0.05", "-c", &count.to_string(), HOSTS[1]])));
    }
}

fn number(record: &Value, field: &str) -> u64 {
    record[field].as_u64().unwrap_or_else(|| panic!("no {field} in {record}"))
}

#[test]
fn each_forwarded_packet_counts_once() {
    let network = Network::new();
    network.ping(2);
    let mut check = network.router.command(env!("CARGO_BIN_EXE_pping"));
    let found: Value =
        serde_json::from_str(&ok(pping_lab::run(check.args(["check", "-i", ARM, "--json"])))).unwrap();
    let is_arms = |check: &&Value| check["name"] == "arms" && check["subject"] == ARM;
    let arms = found["checks"].as_array().unwrap().iter().find(is_arms);
    assert_eq!(arms.map(|arms| &arms["status"]), Some(&Value::from("ok")), "{found:#}");
    for ingress in ["tc", "xdp"] {
        let mut command = network.router.command(env!("CARGO_BIN_EXE_pping"));
        command.args(["-v", "-i", ARM, "--ingress", ingress, "--rate-limit", "0"]);
        command.args(["--format", "jsonl", "--flow-summary", "--with-samples", "--listen", "127.0.0.1:9464"]);
        let mut pping = ok(Process::spawn(command));
        ok(pping.wait_for_output("measuring round-trip times", PATIENCE));
        let server = ok(Server::start(&network.hosts[1], 0, Behaviour::Echo));
        let address = SocketAddr::new(HOSTS[1].parse().unwrap(), server.port());
        let sent = ok(traffic::echo(&network.hosts[0], address, CONVERSATION));
        network.ping(PINGS);
        // Counters are read once a second.
        thread::sleep(Duration::from_secs(3));
        let mut curl = network.router.command("curl");
        let metrics = ok(pping_lab::run(curl.args(["-s", "http://127.0.0.1:9464/metrics"])));
        ok(pping.stop(Signal::SIGINT, PATIENCE));

        let records: Vec<Value> =
            ok(pping.stdout()).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let summary = |protocol: &str| {
            let is_it = |record: &&Value| record["flow_event"] == "summary" && record["protocol"] == protocol;
            records.iter().find(is_it).unwrap_or_else(|| panic!("no summary of {protocol}"))
        };
        let samples = |method: &str| records.iter().filter(|record| record["method"] == method).count();

        let tcp = summary("TCP");
        for way in ["sent", "rec"] {
            // A host that waits for its CPU may send some again.
            let again = number(tcp, &format!("{way}_retransmissions"));
            assert!(again <= MAY_BE_SENT_AGAIN, "{ingress}: {tcp}");
            let bytes = number(tcp, &format!("{way}_bytes"));
            assert!((sent.bytes..=sent.bytes + MOST_AGAIN * again).contains(&bytes), "{ingress}: {tcp}");
        }
        assert!(samples("tcp-ts") > 200, "{ingress}: {}", samples("tcp-ts"));
        assert_eq!(samples("tcp-handshake"), 2, "{ingress}");

        let icmp = summary("ICMP");
        for way in ["sent", "rec"] {
            assert_eq!(number(icmp, &format!("{way}_packets")), PINGS, "{ingress}: {icmp}");
        }
        assert_eq!(samples("icmp-echo") as u64, PINGS, "{ingress}");

        // The interface itself carried each packet twice.
        let value = |series: &str| -> u64 {
            let of_series = |line: &str| line.strip_prefix(series).map(|value| value.trim().parse().unwrap());
            metrics.lines().find_map(of_series).unwrap_or_else(|| panic!("no {series} in {metrics}"))
        };
        let icmp = |direction: &str| {
            value(&format!(
                "pping_packets_total{{interface=\"arm\",direction=\"{direction}\",protocol=\"icmp\"}}"
            ))
        };
        assert_eq!([icmp("ingress"), icmp("egress")], [2 * PINGS; 2], "{ingress}");
        let copies = value("pping_untracked_packets_total{interface=\"arm\",reason=\"other_hook\"}");
        assert!(copies >= 2 * PINGS + 400, "{ingress}: {copies}");
    }
}

//! A router whose interface is a trunk of VLANs, watched at the interface itself: each packet that it forwards passes both
//! of its hooks, with another tag.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use pping_lab::{
    Namespace,
    traffic::{self, Behaviour, Server},
    veth::{self, End, Offloads},
};
use serde_json::Value;

use super::{CONVERSATION, EXACT, PINGS, ok, pings};
use crate::{
    monitor::{interrupt, watch},
    net::ip,
};

const DELAY: Duration = Duration::from_millis(20);
const TRUNK: &str = "trunk";
const VLANS: [u16; 2] = [10, 20];
const HOSTS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 72, 10, 2), Ipv4Addr::new(10, 72, 20, 2)];
const ROUTERS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 72, 10, 1), Ipv4Addr::new(10, 72, 20, 1)];

/// A client, a server that answers later, and a router between their VLANs.
struct Network {
    hosts: [Namespace; 2],
    router: Namespace,
    /// Has the other end of the trunk.
    _switch: Namespace,
}

impl Network {
    fn new() -> Self {
        let [switch, router, client, server] =
            ["switch", "router", "client", "server"].map(|role| ok(Namespace::new(role)));
        ok(router.forward());
        ok(veth::connect(End::new(&router, TRUNK), End::new(&switch, "port"), Offloads::On));
        for (number, host) in [&client, &server].into_iter().enumerate() {
            let (vlan, inside) = (VLANS[number], format!("{TRUNK}.{}", VLANS[number]));
            ip(&router, &format!("link add link {TRUNK} name {inside} type vlan id {vlan}"));
            ip(&router, &format!("address add {}/24 dev {inside}", ROUTERS[number]));
            ip(&router, &format!("link set {inside} up"));
            // An access port of the switch, as the host sees it.
            ip(&switch, &format!("link add link port name access{number} type vlan id {vlan}"));
            ip(&switch, &format!("link set access{number} netns {}", host.name()));
            ip(host, &format!("address add {}/24 dev access{number}", HOSTS[number]));
            ip(host, &format!("link set access{number} up"));
            // The server acknowledges at once. The client would too, and its segments share their timestamps with those ACKs.
            let quickack = if number == 1 { "quickack 1" } else { "" };
            ip(host, &format!("route add default via {} {quickack}", ROUTERS[number]));
        }
        let network = Self { hosts: [client, server], router, _switch: switch };
        network.converse();
        let mut tc = network.hosts[1].command("tc");
        tc.args(["qdisc", "add", "dev", "access1", "root", "netem", "delay", "20ms"]);
        ok(pping_lab::run(&mut tc));
        network
    }

    fn converse(&self) {
        let server = ok(Server::start(&self.hosts[1], 0, Behaviour::Echo));
        let address = SocketAddr::from((HOSTS[1], server.port()));
        ok(traffic::echo(&self.hosts[0], address, CONVERSATION));
    }
}

fn counts_once(ingress: &str) {
    let network = Network::new();
    let arguments = format!("--rate-limit 0 --flow-summary --with-samples --ingress {ingress}");
    let pping = watch(&network.router, TRUNK, &arguments);
    network.converse();
    let said = pings(&network.hosts[0], HOSTS[1].into(), PINGS);
    let records: Vec<Value> =
        interrupt(pping).lines().map(|line| serde_json::from_str(line).unwrap()).collect();

    let is_of_server = |record: &&Value| record["type"] == "rtt" && record["src_ip"] == HOSTS[1].to_string();
    let samples: Vec<&Value> = records.iter().filter(is_of_server).collect();
    for sample in &samples {
        let rtt = Duration::from_nanos(sample["rtt"].as_u64().unwrap());
        assert!(rtt + EXACT >= DELAY && rtt < 2 * DELAY, "{ingress}: {sample}");
    }
    let echoes = samples.iter().filter(|sample| sample["method"] == "icmp-echo").count();
    assert_eq!((echoes, said.len()), (PINGS, PINGS), "{ingress}");
    assert!(samples.len() - echoes > 20, "{ingress}: {} samples of TCP", samples.len() - echoes);

    let summary = |protocol: &str| {
        let is_it = |record: &&Value| record["flow_event"] == "summary" && record["protocol"] == protocol;
        records.iter().find(is_it).unwrap_or_else(|| panic!("{ingress}: no summary of {protocol}"))
    };
    let (tcp, icmp) = (summary("TCP"), summary("ICMP"));
    for way in ["sent", "rec"] {
        assert_eq!(tcp[format!("{way}_retransmissions")], 0, "{ingress}: {tcp}");
        assert_eq!(icmp[format!("{way}_packets")], PINGS, "{ingress}: {icmp}");
    }
}

#[test]
fn a_trunk_counts_each_packet_once_at_tc() {
    counts_once("tc");
}

#[test]
fn a_trunk_counts_each_packet_once_at_xdp() {
    counts_once("xdp");
}

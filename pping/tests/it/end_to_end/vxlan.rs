//! A router between the ends of a VXLAN tunnel, with hosts that talk inside the tunnel.

use std::{
    net::{IpAddr, SocketAddr},
    thread,
    time::Duration,
};

use pping_lab::{
    Namespace, Topology, run,
    traffic::{self, Behaviour, Pace, Server},
};

use super::{
    ROUND_TRIP, ok,
    ping::{Reply, assert_ping_agrees, ping},
    topology,
    watch::{Seen, Watch},
};

const CONVERSATION: Pace = Pace { chunks: 200, bytes: 100, pause: Duration::from_millis(3) };

/// Opens one end of a tunnel.
fn open(host: &Namespace, local: IpAddr, remote: IpAddr, number: u8) {
    for line in [
        format!("link add vxlan0 type vxlan id 42 dstport 4789 local {local} remote {remote}"),
        format!("address add 10.13.0.{number}/24 dev vxlan0"),
        format!("address add fd00:13::{number}/64 dev vxlan0 nodad"),
        "link set vxlan0 up".to_owned(),
    ] {
        ok(run(host.command("ip").args(line.split(' '))));
    }
}

/// Sends traffic inside the tunnel. Returns what the router sees of it, and what ping reports.
fn talk_inside(arguments: &str) -> (Seen, Vec<Reply>) {
    let topology = topology();
    let ends = [Topology::CLIENT_IPV4, Topology::SERVER_IPV4].map(IpAddr::from);
    open(topology.client(), ends[0], ends[1], 1);
    open(topology.server(), ends[1], ends[0], 2);
    let server = ok(Server::start(topology.server(), 0, Behaviour::Echo));
    let address = SocketAddr::new("10.13.0.2".parse().unwrap(), server.port());
    let watch = Watch::start(topology.router(), Topology::WAN, arguments);
    let reported = thread::scope(|scope| {
        let ping = scope.spawn(|| ping(topology.client(), "fd00:13::2".parse().unwrap()));
        ok(traffic::echo(topology.client(), address, CONVERSATION));
        ping.join().unwrap()
    });
    (watch.finish(), reported)
}

fn flows_inside_are_timed(ingress: &str) {
    let (seen, reported) = talk_inside(&format!("--ingress {ingress} --rate-limit 0 --decap vxlan"));
    seen.assert_agreement();
    let samples = &seen.records.samples;
    assert_ping_agrees(&reported, &seen, |sample| sample.method == "icmp-echo");
    let from_server: Vec<_> = samples.iter().filter(|sample| !sample.match_on_egress).collect();
    assert!(from_server.len() > 100, "{} samples", from_server.len());
    for sample in from_server {
        assert!(sample.rtt() >= ROUND_TRIP, "{sample:?}");
        let inside: [IpAddr; 2] = ["10.13.0.2".parse().unwrap(), "fd00:13::2".parse().unwrap()];
        assert!(inside.contains(&sample.tuple.src_ip), "{sample:?}");
    }
}

#[test]
fn flows_inside_are_timed_at_tc() {
    flows_inside_are_timed("tc");
}

#[test]
fn flows_inside_are_timed_at_xdp() {
    flows_inside_are_timed("xdp");
}

#[test]
fn a_tunnel_without_decap_gives_no_samples() {
    let (seen, _) = talk_inside("--rate-limit 0 --decap gre,geneve");
    assert!(seen.expected.is_empty() && seen.records.samples.is_empty(), "{:?}", seen.records.samples);
}

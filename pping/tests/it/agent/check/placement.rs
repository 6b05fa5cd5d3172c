//! `pping check` says what is wrong with the place of measurement: bridges, mirror ports.

use pping_lab::{
    Namespace, Topology, run,
    veth::{End, Offloads, connect},
};

use super::{
    super::monitor::{endless_ping, ping, topology},
    ETH, Host, check, ok,
};

const TO_PROBE: &str = "mirror0";
const PROBE: Option<&str> = Some("probe0");

#[test]
fn a_bridge_names_its_ports() {
    let host = Host::new();
    let ip = |arguments: &str| ok(run(host.namespace.command("ip").args(arguments.split(' '))));
    ip("link add br0 type bridge");
    ip("link set br0 up");
    ip("link set eth0 master br0");
    let bridge = Some("br0");
    ok(host.namespace.sysctl("net.ipv4.ip_forward", "0"));
    check(&host.namespace, "-i br0").assert("bridge", bridge, "ok", &["a bridge with eth0"]);
    ip("link add port1 type veth peer name far1");
    ip("link set port1 master br0");
    let report = check(&host.namespace, "-i br0 -i eth0");
    report.assert("bridge", bridge, "degraded", &["a bridge with eth0, port1: ", "(-i eth0 -i port1)"]);
    assert!(!report.has("bridge", ETH));
    assert_eq!(report.0["ok"], true);
    // What a router forwards from or to a bridge passes that.
    ok(host.namespace.sysctl("net.ipv4.ip_forward", "1"));
    check(&host.namespace, "-i br0").assert("bridge", bridge, "ok", &["eth0, port1", "what is routed"]);
}

#[test]
fn what_is_inside_has_to_fit_the_packets() {
    let topology = topology();
    let on_wan = |arguments: &str| check(topology.router(), &format!("-i {} {arguments}", Topology::WAN));
    let wan = Some(Topology::WAN);
    assert!(!on_wan("").has("inside", wan));
    // The interfaces themselves may say a few words.
    on_wan("--inside 10.11.1.0/24").assert("inside", wan, "unknown", &[]);
    let _pings = endless_ping(topology.client(), Topology::SERVER_IPV4);
    on_wan("--inside 10.11.1.0/24").assert("inside", wan, "ok", &["between a host inside and one outside"]);
    let report = on_wan("--inside 192.0.2.0/24");
    report.assert("inside", wan, "degraded", &[" 0 are between a host inside", "compare --inside"]);
    assert_eq!(report.0["ok"], true);
    on_wan("--inside 10.0.0.0/8").assert("inside", wan, "degraded", &[" 0 between two outside"]);
}

#[test]
fn a_mirror_port_has_to_be_promiscuous_without_gro() {
    let topology = topology();
    let router = topology.router();
    let probe = ok(Namespace::new("probe"));
    // It sends nothing by itself.
    for key in ["all", "default"] {
        ok(probe.sysctl(&format!("net.ipv6.conf.{key}.disable_ipv6"), "1"));
    }
    ok(connect(End::new(router, TO_PROBE), End::new(&probe, "probe0"), Offloads::Off));
    let tc = |arguments: String| ok(run(router.command("tc").args(arguments.split_whitespace())));
    tc(format!("qdisc add dev {} clsact", Topology::WAN));
    for hook in ["ingress", "egress"] {
        tc(format!(
            "filter add dev {} {hook} protocol all u32 match u32 0 0 action mirred egress mirror dev {TO_PROBE}",
            Topology::WAN
        ));
    }
    let at_probe = |arguments: &str| check(&probe, &format!("-i probe0 {arguments}"));
    assert!(!at_probe("").has("mirror", PROBE), "nothing came in");
    ping(topology.client(), Topology::SERVER_IPV4, "-c100 -i0.01");
    let report = at_probe("");
    report.assert("mirror", PROBE, "degraded", &["probably a mirror port: ", "it is not promiscuous"]);
    report.assert(
        "mirror",
        PROBE,
        "degraded",
        &["add --mirror, with --inside PREFIX, or ip link set dev probe0 promisc on"],
    );
    report.assert("gro", PROBE, "ok", &["off"]);
    assert!(!report.has("arms", PROBE));
    assert_eq!(report.0["ok"], true);
    at_probe("--arms two").assert("arms", PROBE, "degraded", &["looks like a mirror port"]);

    ok(run(probe.command("ip").args(["link", "set", "dev", "probe0", "promisc", "on"])));
    ok(run(probe.command("ethtool").args(["-K", "probe0", "gro", "on"])));
    let _pings = endless_ping(topology.client(), Topology::SERVER_IPV4);
    let report = at_probe("");
    report.assert(
        "mirror",
        PROBE,
        "degraded",
        &["very likely a mirror port: ", "it is promiscuous", "add --mirror"],
    );
    report.assert("gro", PROBE, "degraded", &["on (rx-gro)", "ethtool -K probe0 gro off lro off"]);
    // The router's uplink is in the path, whatever GRO does.
    ok(run(router.command("ethtool").args(["-K", Topology::WAN, "gro", "on"])));
    let wan = Some(Topology::WAN);
    let report = check(router, &format!("-i {}", Topology::WAN));
    assert!(!report.has("mirror", wan) && !report.has("bridge", wan) && !report.has("flow-table", wan));
    report.assert("gro", wan, "ok", &["on"]);
}

//! Which interfaces are watched, and what happens when one goes away.

use std::collections::BTreeMap;

use pping_lab::{Signal, Topology, run};

use super::{
    formats::records,
    host::Host,
    monitor::{ENDING, interrupt, ok, ping, pping, topology, watch, watch_with},
};

/// How many samples each interface has, by name and by whether the echo went out there.
fn samples_by_interface(jsonl: &str) -> BTreeMap<(String, bool), usize> {
    let mut samples = BTreeMap::new();
    for record in records(jsonl) {
        if let Some(egress) = record["match_on_egress"].as_bool() {
            let interface = record["interface"].as_str().unwrap().to_owned();
            *samples.entry((interface, egress)).or_default() += 1;
        }
    }
    samples
}

#[test]
fn two_interfaces_are_told_apart() {
    let topology = topology();
    let arguments = format!("-v -i {} -i {} --rate-limit 0", Topology::LAN, Topology::WAN);
    let pping = watch_with(pping(topology.router(), &arguments), Topology::WAN);
    ping(topology.client(), Topology::SERVER_IPV4, "-c4 -i0.1");
    let expected = BTreeMap::from([((Topology::LAN.into(), true), 4), ((Topology::WAN.into(), false), 4)]);
    let output = interrupt(pping);
    assert_eq!(samples_by_interface(&output), expected, "{output}");
}

#[test]
fn an_interface_given_twice_is_watched_once() {
    let topology = topology();
    let arguments = format!("-i {} --rate-limit 0", Topology::WAN);
    let pping = watch(topology.router(), Topology::WAN, &arguments);
    ping(topology.client(), Topology::SERVER_IPV4, "-c4 -i0.1");
    let expected = BTreeMap::from([((Topology::WAN.into(), false), 4)]);
    let output = interrupt(pping);
    assert_eq!(samples_by_interface(&output), expected, "{output}");
}

/// Watches `eth0`, runs `ip` with `change`, and expects that pping ends with an error that names it.
#[track_caller]
fn assert_ends_when(change: &str) {
    let host = Host::new();
    let mut pping = watch(&host.namespace, Host::ETH, "");
    ok(run(host.namespace.command("ip").args(change.split_whitespace())));
    let status = ok(pping.wait_timeout(ENDING));
    let stderr = ok(pping.stderr());
    assert_eq!(status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("pping: interface eth0 is gone"), "{stderr}");
}

#[test]
fn a_deleted_interface_ends_it_with_an_error() {
    assert_ends_when("link delete eth0");
}

#[test]
fn a_renamed_interface_ends_it_with_an_error() {
    assert_ends_when("link set eth0 name wan7");
}

#[test]
fn other_interfaces_may_come_and_go() {
    let host = Host::new();
    let mut pping = watch(&host.namespace, Host::ETH, "");
    for change in
        ["link add v0 type veth peer name v1", "link set v0 up", "link delete v0", "link set eth0 down"]
    {
        ok(run(host.namespace.command("ip").args(change.split_whitespace())));
    }
    let early = pping.wait_timeout(std::time::Duration::from_millis(500));
    assert!(early.is_err(), "{}", ok(pping.stderr()));
    ok(pping.stop(Signal::SIGINT, ENDING));
}

//! Programs that a killed pping leaves at tc, on a kernel without TCX or with TCX turned off.

use std::{thread, time::Duration};

use pping_common::limits::LEASE_SECONDS;
use pping_lab::{Process, Signal, Topology, run};

use super::{
    monitor::{ENDING, interrupt, ok, ping, pping, tool, watch_with},
    net::Net,
    records::Records,
};

/// Watches with filters at tc.
fn watch(net: &Net) -> Process {
    let mut command = pping(&net.router, &format!("-v -i {} --rate-limit 0", Topology::WAN));
    command.env("PPING_WITHOUT", "tcx");
    watch_with(command, Topology::WAN)
}

/// Returns the counters in the only run's map.
fn counter_dump() -> String {
    let (is_there, dump) = tool("bpftool", &["map", "dump", "name", "COUNTERS"]);
    assert!(is_there, "{dump}");
    dump
}

#[test]
fn expired_lease_stops_measuring_and_is_cleaned_up() {
    let net = Net::new();
    let mut killed = watch(&net);
    // Waits longer than the first lease.
    thread::sleep(Duration::from_secs(LEASE_SECONDS + 2));
    let before = counter_dump();
    ping(&net.client, Topology::SERVER_IPV4, "-c3 -i0.1");
    assert_ne!(counter_dump(), before);

    ok(killed.signal(Signal::SIGKILL));
    ok(killed.wait_timeout(ENDING));
    thread::sleep(Duration::from_secs(LEASE_SECONDS + 1));
    let before = counter_dump();
    ping(&net.client, Topology::SERVER_IPV4, "-c3 -i0.1");
    assert_eq!(counter_dump(), before);

    let removed = ok(run(&mut pping(&net.router, "cleanup")));
    assert!(removed.contains(&format!("{}: removed 2 filters of 1 run", Topology::WAN)), "{removed}");
    assert_eq!(ok(run(&mut pping(&net.router, "cleanup"))), "nothing to remove\n");
}

#[test]
fn is_replaced_by_the_next_run_which_keeps_living_ones() {
    let net = Net::new();
    let living = watch(&net);
    let mut killed = watch(&net);
    ok(killed.signal(Signal::SIGKILL));
    ok(killed.wait_timeout(ENDING));
    let next = watch(&net);
    let said = ok(next.stderr());
    assert!(said.contains("removed leftovers of a killed pping on"), "{said}");
    ping(&net.client, Topology::SERVER_IPV4, "-c3 -i0.1");
    for pping in [living, next] {
        assert_eq!(Records::parse(&interrupt(pping)).samples.len(), 3);
    }
}

//! A receiver that is away for a while.

use pping_lab::Topology;

use super::{RECEIVING, Receiver, counted, url, wait_for_another, warnings};
use crate::agent::{
    http::LISTEN,
    monitor::{interrupt, ok, ping, topology, wait_until, watch},
};

#[test]
fn otlp_outage_delays_but_loses_nothing() {
    let topology = topology();
    let router = topology.router();
    let mut receiver = Receiver::start(router);
    let options = format!("{LISTEN} --rate-limit 0 --otlp-interval 1s {}", url(RECEIVING));
    let pping = watch(router, Topology::WAN, &options);
    ping(topology.client(), Topology::SERVER_IPV4, "-c5 -i0.1");
    wait_for_another(&receiver);
    receiver.kill();
    let failures = || counted(router, "pping_otlp_attempts_failed_total", "connection");
    for _ in 0..3 {
        let before = failures();
        ping(topology.client(), Topology::SERVER_IPV4, "-c5 -i0.1");
        wait_until("another failure", || failures() > before);
    }
    assert_eq!(warnings(&pping, "refused"), 1, "{}", ok(pping.stderr()));
    receiver.restart();
    wait_until("it says that the receiver is back", || warnings(&pping, "again, after") == 1);
    wait_until("all samples", || {
        wait_for_another(&receiver);
        let points = receiver.points();
        let latest = super::received::latest(&points);
        let counts = latest.values().filter_map(|point| point["histogram"]["count"].as_u64());
        counts.sum::<u64>() == 20
    });
    assert_eq!(warnings(&pping, ""), 2, "{}", ok(pping.stderr()));
    for reason in ["queue_full", "refused", "stopped"] {
        assert!(counted(router, "pping_otlp_requests_dropped_total", reason).abs() < 0.5, "{reason}");
    }
    // The exports from the time without a receiver arrive too, in order and once each.
    let points = receiver.points();
    let times: Vec<u64> = points
        .iter()
        .filter(|it| it["name"] == "pping.map_entries" && it["attributes"]["map"] == "SERIES")
        .map(|it| it["time"].as_u64().unwrap())
        .collect();
    for pair in times.windows(2) {
        // A busy machine may miss a second.
        assert!(pair[0] < pair[1] && pair[1] - pair[0] < 5_000_000_000, "{times:?}");
    }
    interrupt(pping);
}

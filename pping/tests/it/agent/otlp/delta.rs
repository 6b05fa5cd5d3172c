//! `--otlp-temporality delta`.

use std::collections::BTreeMap;

use pping_lab::Topology;

use super::{RECEIVING, Receiver, received::labels, served, url, wait_for_another};
use crate::agent::{
    http::LISTEN,
    monitor::{interrupt, ping, topology, wait_until, watch},
};

#[test]
fn otlp_deltas_add_up_to_what_is_served_and_leave_no_gap() {
    let topology = topology();
    let router = topology.router();
    let receiver = Receiver::start(router);
    let options =
        format!("{LISTEN} --rate-limit 0 --otlp-interval 1s --otlp-temporality delta {}", url(RECEIVING));
    let pping = watch(router, Topology::WAN, &options);
    for _ in 0..3 {
        ping(topology.client(), Topology::SERVER_IPV4, "-c10 -i0.02");
        wait_for_another(&receiver);
    }
    let sum = |name: &str, value: &str| -> f64 {
        let points = receiver.points();
        let of_name = points.iter().filter(|point| point["name"] == name);
        of_name.map(|point| point.pointer(value).unwrap().as_f64().unwrap()).sum()
    };
    wait_until("all samples", || {
        let page = served(router);
        page.sum("pping_rtt_seconds_count", &[]) == Some(30.0)
            && (sum("pping.rtt", "/histogram/count") - 30.0).abs() < 0.5
            && (sum("pping.samples", "/value") - 30.0).abs() < 0.5
    });
    let page = served(router);
    let seconds = page.sum("pping_rtt_seconds_sum", &[]).unwrap();
    assert!((sum("pping.rtt", "/histogram/sum") / seconds - 1.0).abs() < 1e-9);
    let icmp = [("protocol", "icmp")];
    let points = receiver.points();
    let packets: f64 = points
        .iter()
        .filter(|point| point["name"] == "pping.packets" && labels(point)["protocol"] == "icmp")
        .map(|point| point["value"].as_f64().unwrap())
        .sum();
    assert_eq!(page.sum("pping_packets_total", &icmp), Some(packets));
    // Each interval begins where the one before ended.
    let mut ends = BTreeMap::new();
    for point in points.iter().filter(|point| point["name"] == "pping.packets") {
        assert_eq!(point["temporality"], "AGGREGATION_TEMPORALITY_DELTA");
        let (start, time) = (point["start"].as_u64().unwrap(), point["time"].as_u64().unwrap());
        let end = ends.insert(labels(point), time).unwrap_or(start);
        assert_eq!((end, start < time), (start, true), "{point}");
    }
    interrupt(pping);
}

//! Metrics that arrive through a collector.

use pping_lab::{Signal, Topology, run};
use serde_json::json;

use super::{COLLECTING, Receiver, collector, received::assert_same, served, url, wait_for_another};
use crate::agent::{
    http::LISTEN,
    monitor::{ENDING, converse, interrupt, ok, ping, topology, wait_until, watch},
};

#[test]
fn otlp_a_collector_gets_what_is_served() {
    let topology = topology();
    let router = topology.router();
    let receiver = Receiver::start(router);
    let mut collector = collector(router);
    let options =
        format!("{LISTEN} --rate-limit 0 --group-by /24,/64 --otlp-interval 1s {}", url(COLLECTING));
    let pping = watch(router, Topology::WAN, &options);
    converse(&topology, 20);
    ping(topology.client(), Topology::SERVER_IPV4, "-c20 -i0.02");
    ping(topology.client(), Topology::SERVER_IPV6, "-c20 -i0.02");
    // The kernel's own packets, such as neighbour discovery, may still change counters.
    let mut compared = 0;
    wait_until("a moment without packets", || {
        let before = served(router).0;
        wait_for_another(&receiver);
        wait_for_another(&receiver);
        let page = served(router);
        let changes = |page: &str| -> Vec<String> {
            // The machine may switch the statistics of programs on and off, as benchmarks do.
            let moving = ["pping_otlp_", "pping_bpf_", "process_"];
            let lines = page.lines().filter(|line| !moving.iter().any(|it| line.contains(it)));
            lines.map(ToOwned::to_owned).collect()
        };
        if changes(&before) != changes(&page.0) {
            return false;
        }
        compared = assert_same(&page, &receiver.points());
        true
    });
    assert!(compared > 300, "{compared}");

    let points = receiver.points();
    let (first, last) = (&points[0], points.last().unwrap());
    assert_eq!(first["resource"], last["resource"]);
    let resource = &first["resource"];
    assert_eq!(resource["service.name"], "pping");
    assert_eq!(resource["service.version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(resource["host.name"], json!(ok(run(&mut router.command("hostname"))).trim()));
    assert_eq!(resource["service.instance.id"].as_str().map(str::len), Some(36));
    assert_eq!(first["scope"], "pping");
    for point in &points {
        let is_count = point["is_monotonic"] == true || point.get("histogram").is_some();
        let cumulative = "AGGREGATION_TEMPORALITY_CUMULATIVE";
        assert!(!is_count || point["temporality"] == cumulative, "{point}");
        assert!(point["start"].as_u64() <= point["time"].as_u64(), "{point}");
        assert!(point["description"].as_str().unwrap().ends_with('.'), "{point}");
    }
    for name in ["process.cpu.time", "process.memory.usage", "pping.otlp_requests"] {
        assert!(points.iter().any(|point| point["name"] == name), "no {name}");
    }
    // A collector may restart. It loses what it had not forwarded, and the next export has all counts.
    ok(collector.signal(Signal::SIGKILL));
    ok(collector.wait_timeout(ENDING));
    ping(topology.client(), Topology::SERVER_IPV4, "-c20 -i0.02");
    let _collector = super::collector(router);
    wait_until("the samples of meanwhile", || {
        wait_for_another(&receiver);
        let page = served(router);
        let count = page.sum("pping_rtt_seconds_count", &[]).unwrap();
        let points = receiver.points();
        let latest = super::received::latest(&points);
        let arrived: f64 = latest.values().filter_map(|it| it["histogram"]["count"].as_f64()).sum();
        arrived >= count
    });
    interrupt(pping);
}

//! How a pping that pushes ends.

use pping_lab::{Signal, Topology};

use super::{RECEIVING, Receiver, received::latest, url, warnings};
use crate::agent::monitor::{ENDING, ok, ping, topology, watch};

#[test]
fn otlp_the_last_push_has_the_last_samples() {
    let topology = topology();
    let router = topology.router();
    let receiver = Receiver::start(router);
    let options = format!("--format none --rate-limit 0 --otlp-interval 1h {}", url(RECEIVING));
    let mut pping = watch(router, Topology::WAN, &options);
    ping(topology.client(), Topology::SERVER_IPV4, "-c7 -i0.02");
    assert!(receiver.points().is_empty());
    ok(pping.stop(Signal::SIGTERM, ENDING));
    let points = receiver.points();
    let latest = latest(&points);
    let value = |name: &str, value: &str| -> u64 {
        let of_name = latest.iter().filter(|((it, _), _)| it == name);
        of_name.map(|(_, point)| point.pointer(value).unwrap().as_u64().unwrap()).sum()
    };
    assert_eq!((value("pping.rtt", "/histogram/count"), value("pping.samples", "/value")), (7, 7));
    assert_eq!(warnings(&pping, ""), 0);
}

#[test]
fn otlp_silent_receiver_does_not_delay_the_end() {
    let topology = topology();
    let router = topology.router();
    let receiver = Receiver::start(router);
    receiver.set("hang");
    let options = format!("--format none --otlp-interval 1s {}", url(RECEIVING));
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let before = receiver.requests().len();
        let mut pping = watch(router, Topology::WAN, &options);
        crate::agent::monitor::wait_until("a request", || receiver.requests().len() > before);
        ok(pping.stop(signal, ENDING));
        assert_eq!(warnings(&pping, "were not accepted in time"), 1, "{}", ok(pping.stderr()));
    }
}

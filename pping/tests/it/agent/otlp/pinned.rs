//! `--otlp` with `--pin`: the counts on the page continue from run to run, pushed counts start at zero with each run.

use std::collections::BTreeSet;

use pping_lab::{Signal, Topology};

use super::{RECEIVING, Receiver, received::latest, served, url};
use crate::agent::{
    bpffs::Bpffs,
    http::LISTEN,
    monitor::{ENDING, ok, ping, topology, wait_until, watch},
};

#[test]
fn otlp_pushes_count_what_their_own_run_measured_with_pins_too() {
    let (topology, pins) = (topology(), Bpffs::new());
    let router = topology.router();
    let receiver = Receiver::start(router);
    let options = format!(
        "{LISTEN} --format none --rate-limit 0 --otlp-interval 1h --pin {} {}",
        pins.pins().display(),
        url(RECEIVING)
    );
    let (mut total, mut starts) = (0_u32, Vec::new());
    for sent in [5_u32, 3] {
        let mut pping = watch(router, Topology::WAN, &options);
        ping(topology.client(), Topology::SERVER_IPV4, &format!("-c{sent} -i0.05"));
        total += sent;
        let served = || served(router).sum("pping_rtt_seconds_count", &[]);
        wait_until("the page has all of both runs", || served() == Some(f64::from(total)));
        let before = receiver.points().len();
        ok(pping.stop(Signal::SIGTERM, ENDING));
        let points = receiver.points().split_off(before);
        let latest = latest(&points);
        let value = |name: &str, value: &str| -> u64 {
            let of_name = latest.iter().filter(|((it, _), _)| it == name);
            of_name.map(|(_, point)| point.pointer(value).unwrap().as_u64().unwrap()).sum()
        };
        assert_eq!(value("pping.rtt", "/histogram/count"), u64::from(sent));
        assert_eq!(value("pping.samples", "/value"), u64::from(sent));
        let of_samples = points.iter().filter(|point| point["name"] == "pping.samples");
        starts.extend(of_samples.map(|point| point["start"].as_u64().unwrap()).collect::<BTreeSet<_>>());
        // pping is away, so only the kernel programs count these.
        ping(topology.client(), Topology::SERVER_IPV4, "-c7 -i0.05");
        total += 7;
    }
    assert!(starts.len() == 2 && starts[0] < starts[1], "{starts:?}");
}

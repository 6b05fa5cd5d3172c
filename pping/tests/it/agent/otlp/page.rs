//! The OTLP configuration in `docs/integrations.md` works.

use std::fs;

use pping_lab::Topology;

use super::{RECEIVING, Receiver};
use crate::agent::{
    documents::{block, replaced},
    monitor::{interrupt, ping, topology, wait_until, watch},
};

#[test]
fn otlp_is_pushed_as_the_page_of_integrations_configures_it() {
    let topology = topology();
    let router = topology.router();
    let receiver = Receiver::start(router);
    let configuration = block("docs/integrations.md", "toml", "otlp-interval =");
    let configuration = replaced(&configuration, "collector.example:4318", &format!("127.0.0.1:{RECEIVING}"));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pping.toml");
    fs::write(&file, replaced(&configuration, "15s", "1s")).unwrap();
    let pping = watch(router, Topology::WAN, &format!("--config {}", file.display()));
    ping(topology.client(), Topology::SERVER_IPV4, "-c3 -i0.2");
    wait_until("a histogram of echoes", || {
        let points = receiver.points();
        points
            .iter()
            .any(|point| point["name"] == "pping.rtt" && point["histogram"]["count"].as_u64() > Some(0))
    });
    interrupt(pping);
}

//! Packets to the host that pping runs on, with and without `--include-local`.

use std::{net::SocketAddr, time::Duration};

use pping_lab::{
    Topology,
    traffic::{self, Behaviour, Pace, Server},
};

use super::{
    Family, ok,
    ping::{Reply, assert_ping_agrees, ping},
    records::Sample,
    topology,
    watch::{Seen, Watch},
};

const CONVERSATION: Pace = Pace { chunks: 50, bytes: 100, pause: Duration::from_millis(5) };

fn is_ping(sample: &Sample) -> bool {
    sample.method == "icmp-echo"
}

/// The client talks to the router, and the router to the client. The second conversation gives samples with or without
/// `--include-local`. Returns what pping reported, and ping's replies for both.
fn talk_with_router(arguments: &str) -> (Seen, [Vec<Reply>; 2]) {
    let topology = topology();
    let server = ok(Server::start(topology.router(), 0, Behaviour::Echo));
    let watch = Watch::start(topology.router(), Topology::LAN, &format!("--rate-limit 0 {arguments}"));
    let reported =
        [ping(topology.client(), Topology::LAN_IPV6.into()), ping(topology.router(), Family::Ipv6.client())];
    let address = SocketAddr::new(Topology::LAN_IPV4.into(), server.port());
    ok(traffic::echo(topology.client(), address, CONVERSATION));
    (watch.finish(), reported)
}

#[test]
fn echoes_of_this_host_are_left_out() {
    let (seen, [_, reported]) = talk_with_router("");
    seen.assert_nothing_unjustified();
    for sample in &seen.records.samples {
        assert!(!sample.match_on_egress, "{sample:?}");
    }
    assert_ping_agrees(&reported, &seen, is_ping);
    assert!(seen.records.samples.iter().any(|sample| sample.tuple.src_ip == Family::Ipv4.client()));
}

#[test]
fn echoes_of_this_host_are_timed_with_include_local() {
    let (seen, [from_client, from_router]) = talk_with_router("--include-local");
    seen.assert_agreement();
    let samples = &seen.records.samples;
    assert_ping_agrees(&from_client, &seen, |sample| is_ping(sample) && sample.match_on_egress);
    assert_ping_agrees(&from_router, &seen, |sample| is_ping(sample) && !sample.match_on_egress);
    for sample in samples {
        let routers = [Topology::LAN_IPV4.into(), Topology::LAN_IPV6.into()];
        assert_eq!(sample.match_on_egress, routers.contains(&sample.tuple.src_ip), "{sample:?}");
    }
}

//! Interfaces without link-layer headers.

mod device;
mod responder;

use std::{net::IpAddr, time::Duration};

use pping_lab::{Namespace, run};

use self::responder::Responder;
use super::{
    ok,
    ping::{assert_ping_agrees, ping},
    records::Sample,
    watch::Watch,
};

const INTERFACE: &str = "tun0";
const HOLD: Duration = Duration::from_millis(15);

fn pings_through_a_tunnel_are_timed(ingress: &str) {
    let host = ok(Namespace::new("tunnel"));
    let responder = Responder::start(ok(host.enter(|| device::open(INTERFACE))).unwrap(), HOLD);
    for line in
        ["address add 10.12.0.1/24 dev tun0", "address add fd00:12::1/64 dev tun0 nodad", "link set tun0 up"]
    {
        ok(run(host.command("ip").args(line.split(' '))));
    }
    let watch = Watch::start(&host, INTERFACE, &format!("--ingress {ingress} --rate-limit 0"));
    let peers: [IpAddr; 2] = ["10.12.0.2".parse().unwrap(), "fd00:12::2".parse().unwrap()];
    let reported = peers.map(|peer| ping(&host, peer));
    let seen = watch.finish();
    drop(responder);

    seen.assert_agreement();
    for (peer, reported) in peers.into_iter().zip(reported) {
        let is_own = |sample: &Sample| sample.tuple.src_ip == peer;
        assert_ping_agrees(&reported, &seen, is_own);
        for sample in seen.records.samples.iter().filter(|sample| is_own(sample)) {
            assert!(sample.rtt() >= HOLD && !sample.match_on_egress, "{sample:?}");
            assert_eq!(sample.interface, INTERFACE);
        }
    }
}

#[test]
fn pings_through_a_tunnel_are_timed_at_tc() {
    pings_through_a_tunnel_are_timed("tc");
}

#[test]
fn pings_through_a_tunnel_are_timed_at_xdp() {
    pings_through_a_tunnel_are_timed("xdp");
}

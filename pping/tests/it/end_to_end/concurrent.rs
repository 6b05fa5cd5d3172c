//! Many flows at the same time.

use std::{collections::BTreeSet, thread, time::Duration};

use pping_lab::{
    Topology,
    traffic::{self, Behaviour, Pace, Server},
};

use super::{
    Family, ROUND_TRIP,
    iperf::iperf,
    ok,
    ping::{assert_ping_agrees, ping},
    topology,
    watch::{Seen, Watch},
};

/// The pause is out of step with the wire, so that the two directions of a flow do not keep passing the router at the
/// same moment.
const CONVERSATION: Pace = Pace { chunks: 200, bytes: 500, pause: Duration::from_millis(7) };

/// A transfer that fills the path: more timestamps are outstanding than can be pending.
const BULK: Pace = Pace { chunks: 400, bytes: 65_536, pause: Duration::ZERO };

/// Runs iperf3 flows both ways, conversations over both address families, and two pings.
fn many_flows(ingress: &str) {
    let topology = topology();
    let server = ok(Server::start(topology.server(), 0, Behaviour::Echo));
    let watch =
        Watch::start(topology.router(), Topology::WAN, &format!("--ingress {ingress} --rate-limit 0"));
    let (topology, server) = (&topology, &server);
    let reported = thread::scope(|scope| {
        for family in [Family::Ipv4, Family::Ipv6, Family::Ipv4, Family::Ipv6] {
            let address = family.address_of(server);
            scope.spawn(move || ok(traffic::echo(topology.client(), address, CONVERSATION)));
        }
        let arguments = "--parallel 4 --bidir --bitrate 2M --time 2";
        scope.spawn(move || iperf(topology, Family::Ipv4.server(), arguments));
        let pings = [Family::Ipv4, Family::Ipv6]
            .map(|family| (family, scope.spawn(move || ping(topology.client(), family.server()))));
        pings.map(|(family, ping)| (family, ping.join().unwrap()))
    });
    let seen = watch.finish();

    seen.assert_agreement();
    assert_every_flow_is_there(&seen);
    for (family, reported) in reported {
        assert_ping_agrees(&reported, &seen, |sample| {
            sample.method == "icmp-echo" && sample.tuple.src_ip == family.server()
        });
    }
}

fn assert_every_flow_is_there(seen: &Seen) {
    // A tuple names the timed direction, and each flow is timed in both directions.
    let flows: BTreeSet<_> = seen.records.samples.iter().map(|sample| &sample.tuple).collect();
    let (on_egress, on_ingress): (Vec<_>, Vec<_>) = flows
        .into_iter()
        .partition(|tuple| tuple.src_ip == Family::Ipv4.client() || tuple.src_ip == Family::Ipv6.client());
    // Four conversations, and one control and eight data connections of iperf3. Pings are timed in one direction only.
    assert_eq!((on_ingress.len(), on_egress.len()), (4 + 9 + 2, 4 + 9));
    for sample in &seen.records.samples {
        assert!(sample.match_on_egress || sample.rtt() >= ROUND_TRIP, "{sample:?}");
    }
}

#[test]
fn many_flows_at_tc() {
    many_flows("tc");
}

#[test]
fn many_flows_at_xdp() {
    many_flows("xdp");
}

#[test]
fn a_bulk_transfer_has_more_timestamps_than_can_be_pending() {
    let topology = topology();
    let server = ok(Server::start(topology.server(), 0, Behaviour::Sink));
    let watch = Watch::start(topology.router(), Topology::WAN, "--rate-limit 0");
    ok(traffic::send(topology.client(), Family::Ipv4.address_of(&server), BULK));
    watch.finish().assert_agreement();
}

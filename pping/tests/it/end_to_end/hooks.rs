//! One conversation and one ping, seen from each attach point and over each address family.

use std::{cmp::Reverse, iter, thread, time::Duration};

use pping_lab::{
    Topology,
    traffic::{self, Behaviour, Pace, Server},
};

use super::{
    Family, ROUND_TRIP, ok,
    ping::{self, assert_ping_agrees, ping},
    records::Sample,
    topology,
    watch::Watch,
};

/// ping rounds to 0.1 ms, and its clock may be adjusted.
const PRECISION: Duration = Duration::from_millis(1);
const CONVERSATION: Pace = Pace { chunks: 400, bytes: 100, pause: Duration::from_millis(3) };

fn samples_agree_with_tcpdump_and_ping(ingress: &str, family: Family) {
    let topology = topology();
    let server = ok(Server::start(topology.server(), 0, Behaviour::Echo));
    let address = family.address_of(&server);
    let watch =
        Watch::start(topology.router(), Topology::WAN, &format!("--ingress {ingress} --rate-limit 0"));
    let reported = thread::scope(|scope| {
        let ping = scope.spawn(|| ping(topology.client(), family.server()));
        ok(traffic::echo(topology.client(), address, CONVERSATION));
        ping.join().unwrap()
    });
    let seen = watch.finish();

    assert!(seen.expected.len() > 200, "{} samples are too few to judge by", seen.expected.len());
    seen.assert_agreement();
    assert_ping_agrees(&reported, &seen, |sample| sample.method == "icmp-echo");

    // The server echoes what leaves towards it, after the wire's hold. The client echoes what arrives from the server,
    // without delay.
    for sample in &seen.records.samples {
        let is_from_client = sample.tuple.src_ip == family.client();
        assert_eq!(sample.match_on_egress, is_from_client, "{sample:?}");
        assert!(is_from_client || sample.rtt() >= ROUND_TRIP, "{sample:?}");
        let echo = family.choose("ICMP", "ICMPv6");
        assert_eq!(sample.protocol, if sample.method == "icmp-echo" { echo } else { "TCP" }, "{sample:?}");
        assert_eq!(sample.interface, Topology::WAN);
    }
    let on_egress = seen.records.samples.iter().filter(|sample| sample.match_on_egress).count();
    assert!(on_egress > 100, "{on_egress} samples on egress");
}

#[test]
fn tc_agrees_with_tcpdump_and_ping_over_ipv4() {
    samples_agree_with_tcpdump_and_ping("tc", Family::Ipv4);
}

#[test]
fn tc_agrees_with_tcpdump_and_ping_over_ipv6() {
    samples_agree_with_tcpdump_and_ping("tc", Family::Ipv6);
}

#[test]
fn xdp_agrees_with_tcpdump_and_ping_over_ipv4() {
    samples_agree_with_tcpdump_and_ping("xdp", Family::Ipv4);
}

#[test]
fn xdp_agrees_with_tcpdump_and_ping_over_ipv6() {
    samples_agree_with_tcpdump_and_ping("xdp", Family::Ipv6);
}

/// The server sends the ping through the wire. The reply leaves the interface, and only the part behind the interface
/// is timed.
#[test]
fn a_ping_from_the_server_is_matched_on_egress_without_the_wire() {
    let topology = topology();
    let watch = Watch::start(topology.router(), Topology::WAN, "--rate-limit 0");
    let reported = ping(topology.server(), Family::Ipv4.client());
    let seen = watch.finish();
    seen.assert_agreement();
    assert!(!seen.records.samples.is_empty());
    for sample in &seen.records.samples {
        assert!(sample.match_on_egress, "{sample:?}");
        assert_eq!(sample.tuple.src_ip, Family::Ipv4.client());
    }
    // The next ping is answered while a reply is still on the wire, so nothing says which reply belongs to which
    // sample. But if the wire makes each reply's RTT longer than its sample's, the longest reply is longer than the
    // longest sample, and so on down. Replies that ping did not wait for count as longest.
    let descending = |mut rtts: Vec<Duration>| {
        rtts.sort_unstable_by_key(|&rtt| Reverse(rtt));
        rtts
    };
    let samples = descending(seen.records.samples.iter().map(Sample::rtt).collect());
    let not_reported = iter::repeat_n(Duration::MAX, ping::COUNT - reported.len());
    let reported = reported.iter().map(|reply| Duration::from_nanos(reply.rtt));
    let reported = descending(reported.chain(not_reported).collect());
    let mut pairs = samples.iter().zip(&reported);
    assert!(
        pairs.all(|(&sample, &reported)| sample + ROUND_TRIP <= reported.saturating_add(PRECISION)),
        "{samples:?}, and by ping {reported:?}"
    );
}

//! A wire that loses and reorders frames leads to no wrong samples.

use std::{thread, time::Duration};

use pping_lab::{
    Fate, Leg, Topology,
    traffic::{self, Behaviour, Pace, Server},
};

use super::{Family, ROUND_TRIP, ok, topology, watch::Watch};

const CONVERSATION: Pace = Pace { chunks: 700, bytes: 100, pause: Duration::from_millis(3) };
const BULK: Pace = Pace { chunks: 4, bytes: 65_536, pause: Duration::from_millis(20) };
/// Long enough for frames sent a few milliseconds later to arrive first.
const LATE: Duration = Duration::from_millis(16);
/// The offset of the `EtherType`. The lab's frames have no VLAN tags.
const ETHER_TYPE: usize = 12;

/// Drops every 29th IP packet, and delays every 7th behind later ones.
fn disturb(topology: &Topology, leg: Leg) {
    let mut packets = 0_u32;
    topology.wire().set_fate(leg, move |frame| {
        // ARP must get through, or the hosts forget each other's link-layer addresses.
        let is_ip = matches!(frame[ETHER_TYPE..], [0x08, 0x00, ..] | [0x86, 0xdd, ..]);
        packets += u32::from(is_ip);
        match packets {
            _ if !is_ip => Fate::Pass,
            packets if packets % 29 == 0 => Fate::Drop,
            packets if packets % 7 == 0 => Fate::Hold(LATE),
            _ => Fate::Pass,
        }
    });
}

fn samples_survive_loss_and_reordering(ingress: &str, family: Family) {
    let topology = topology();
    let echo = ok(Server::start(topology.server(), 0, Behaviour::Echo));
    let sink = ok(Server::start(topology.server(), 0, Behaviour::Sink));
    let watch =
        Watch::start(topology.router(), Topology::WAN, &format!("--ingress {ingress} --rate-limit 0"));
    for leg in [Leg::Forward, Leg::Backward] {
        disturb(&topology, leg);
    }
    thread::scope(|scope| {
        scope.spawn(|| ok(traffic::send(topology.client(), family.address_of(&sink), BULK)));
        ok(traffic::echo(topology.client(), family.address_of(&echo), CONVERSATION));
    });
    let seen = watch.finish();

    for leg in [Leg::Forward, Leg::Backward] {
        let stats = topology.wire().stats(leg);
        assert!(stats.dropped > 5, "{stats:?}");
    }
    assert!(seen.expected.len() > 50, "{} samples are too few to judge by", seen.expected.len());
    seen.assert_agreement();
    let mut samples = seen.records.samples.iter();
    assert!(samples.all(|sample| sample.match_on_egress || sample.rtt() >= ROUND_TRIP));
}

#[test]
fn tc_survives_loss_and_reordering_over_ipv4() {
    samples_survive_loss_and_reordering("tc", Family::Ipv4);
}

#[test]
fn xdp_survives_loss_and_reordering_over_ipv6() {
    samples_survive_loss_and_reordering("xdp", Family::Ipv6);
}

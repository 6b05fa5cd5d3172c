//! Headers that pping always parses: VLAN tags, `PPPoE` and MPLS.

use super::{
    Frame, Golden,
    dialogue::{Dialogue, TimedPacket},
    pcap::{self, ETHERNET},
};
use crate::frames::{
    IPV4, Ip, MPLS, OLD_SERVICE_VLAN, OLDER_SERVICE_VLAN, PPPOE_SESSION, SERVICE_VLAN, VLAN, ethernet, mpls,
    pppoe, pppoe_short, snap,
};

const MPLS_MULTICAST: u16 = 0x8848;

pub(super) fn captures() -> Vec<Golden> {
    let capture = |name, frames: Vec<Frame>| Golden::new(name, pcap::nanoseconds(ETHERNET, &frames));
    vec![
        capture("vlan.pcap", vlan()),
        capture("pppoe.pcap", pppoe_sessions()),
        capture("mpls.pcap", label_stacks()),
        capture("less-common.pcap", less_common()),
    ]
}

/// Builds a dialogue in frames made by `link`.
fn frames(ip: Ip, number: u16, link: impl Fn(&TimedPacket) -> Vec<u8>) -> Vec<Frame> {
    Dialogue::new(ip, number).basic().packets().iter().map(|packet| packet.frame(&link)).collect()
}

/// One to four VLAN tags are parsed. A fifth is too many.
fn vlan() -> Vec<Frame> {
    let tags = [(SERVICE_VLAN, 0x2007), (VLAN, 8), (VLAN, 0xe009), (VLAN, 10), (VLAN, 11)];
    let stacks =
        [&tags[1..2], &tags[..2], &tags[..3], &tags[..4], &tags, &[(OLD_SERVICE_VLAN, 5), (VLAN, 6)]];
    let mut all: Vec<Frame> = (0..)
        .zip(stacks)
        .flat_map(|(number, stack)| {
            let ip = if number % 2 == 0 { Ip::v4() } else { Ip::v6() };
            frames(ip, number, |packet| ethernet(stack, packet.ethertype, &packet.bytes))
        })
        .collect();
    // A flow with tags in only one direction is still one flow.
    all.extend(frames(Ip::v4(), 10, |packet| {
        let stack = if packet.is_outward { &tags[1..2] } else { &[] };
        ethernet(stack, packet.ethertype, &packet.bytes)
    }));
    all
}

fn session(packet: &TimedPacket) -> Vec<u8> {
    pppoe(if packet.ethertype == IPV4 { 0x21 } else { 0x57 }, &packet.bytes)
}

fn pppoe_sessions() -> Vec<Frame> {
    let tags = [(SERVICE_VLAN, 7), (VLAN, 8)];
    [
        frames(Ip::v4(), 0, |packet| ethernet(&[], PPPOE_SESSION, &session(packet))),
        frames(Ip::v6(), 1, |packet| ethernet(&[], PPPOE_SESSION, &session(packet))),
        frames(Ip::v4(), 2, |packet| ethernet(&tags[1..], PPPOE_SESSION, &session(packet))),
        frames(Ip::v6(), 3, |packet| ethernet(&tags, PPPOE_SESSION, &session(packet))),
    ]
    .concat()
}

/// One to four MPLS labels are parsed. A fifth is too many.
fn label_stacks() -> Vec<Frame> {
    let mut all: Vec<Frame> = (1..=5)
        .flat_map(|labels| {
            let ip = if labels % 2 == 0 { Ip::v4() } else { Ip::v6() };
            frames(ip, labels, |packet| ethernet(&[], MPLS, &mpls(labels.into(), &packet.bytes)))
        })
        .collect();
    all.extend(frames(Ip::v4(), 6, |packet| ethernet(&[], MPLS_MULTICAST, &mpls(1, &packet.bytes))));
    all.extend(frames(Ip::v4(), 7, |packet| ethernet(&[(VLAN, 5)], MPLS, &mpls(2, &packet.bytes))));
    all
}

/// What few networks have: another ethertype of tags, SNAP, and protocol numbers of one byte. Ethernet behind labels is not
/// parsed, even if its first byte looks like an IP version.
fn less_common() -> Vec<Frame> {
    let on_ethernet = |tags, ip, number| {
        frames(ip, number, move |packet: &TimedPacket| {
            let behind = snap(packet.ethertype, &packet.bytes);
            ethernet(tags, behind.len() as u16, &behind)
        })
    };
    let short = |packet: &TimedPacket| {
        let number = if packet.ethertype == IPV4 { 0x21 } else { 0x57 };
        ethernet(&[], PPPOE_SESSION, &pppoe_short(number, &packet.bytes))
    };
    let in_labels = |packet: &TimedPacket| {
        let mut inner = ethernet(&[], packet.ethertype, &packet.bytes);
        inner[0] = if packet.ethertype == IPV4 { 0x60 } else { 0x46 };
        ethernet(&[], MPLS, &mpls(1, &inner))
    };
    let tags = [(OLDER_SERVICE_VLAN, 5), (VLAN, 6)];
    let tagged = |packet: &TimedPacket| ethernet(&tags, packet.ethertype, &packet.bytes);
    [
        on_ethernet(&[(VLAN, 5)], Ip::v6(), 1),
        frames(Ip::v4(), 2, tagged),
        frames(Ip::v6(), 3, short),
        frames(Ip::v4(), 4, in_labels),
    ]
    .concat()
}

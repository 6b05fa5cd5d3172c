//! All link types. Most of the captures hold the same dialogues and therefore have the same samples.

use super::{
    Golden,
    dialogue::{Dialogue, TimedPacket},
    pcap,
};
use crate::frames::{IPV4, Ip};

/// Builds the link header and packet.
type Link = fn(&TimedPacket) -> Vec<u8>;

pub(super) fn captures() -> Vec<Golden> {
    let links: [(&str, u32, Link, Link); 13] = [
        ("raw-12", 12, raw, raw),
        ("raw-14", 14, raw, raw),
        ("raw-101", 101, raw, raw),
        ("cooked-v1", 113, cooked_v1, cooked_v1),
        ("cooked-v2", 276, cooked_v2, cooked_v2_elsewhere),
        ("null-little-endian", 0, null_little_endian, null_little_endian),
        ("null-big-endian", 0, null_big_endian, null_big_endian),
        ("loop", 108, null_big_endian, null_big_endian),
        ("ppp", 9, ppp, ppp),
        ("ppp-with-address", 9, ppp_with_address, ppp_with_address),
        ("ppp-hdlc", 50, ppp_with_address, ppp_with_address),
        ("raw-ipv4-228", 228, raw, raw),
        ("raw-ipv6-229", 229, raw, raw),
    ];
    links
        .map(|(name, link_type, link, other_link)| {
            let [v4, v6] = [(Ip::v4(), 0, link), (Ip::v6(), 1, other_link)].map(|(ip, number, link)| {
                let packets = Dialogue::new(ip, number).basic().ping().packets();
                packets.iter().map(|packet| packet.frame(link)).collect::<Vec<_>>()
            });
            let frames = match link_type {
                228 => v4,
                229 => v6,
                // In this capture, two interfaces see the packets of one dialogue.
                276 => [v4.clone(), cooked_twice(), v6].concat(),
                _ => [v4, v6].concat(),
            };
            let golden = Golden::new(&format!("{name}.pcap"), pcap::nanoseconds(link_type, &frames));
            if [228, 229, 276].contains(&link_type) { golden } else { golden.with_samples("links") }
        })
        .into()
}

pub(super) fn raw(packet: &TimedPacket) -> Vec<u8> {
    packet.bytes.clone()
}

/// Packets that pass two interfaces of a router: they form a flow on each.
fn cooked_twice() -> Vec<super::Frame> {
    let packets = Dialogue::new(Ip::v4(), 2).basic().packets();
    packets
        .iter()
        .flat_map(|packet| {
            let onward = TimedPacket { at: packet.at + 1_000_001, ..packet.clone() };
            [packet.frame(cooked_v2), onward.frame(cooked_v2_elsewhere)]
        })
        .collect()
}

fn cooked_v1(packet: &TimedPacket) -> Vec<u8> {
    let kind = if packet.is_outward { 4 } else { 0 };
    let mut frame = vec![0, kind, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
    frame.extend(packet.ethertype.to_be_bytes());
    frame.extend(&packet.bytes);
    frame
}

fn cooked_v2(packet: &TimedPacket) -> Vec<u8> {
    cooked_v2_on(packet, 2)
}

fn cooked_v2_elsewhere(packet: &TimedPacket) -> Vec<u8> {
    cooked_v2_on(packet, 70_000)
}

fn cooked_v2_on(packet: &TimedPacket, interface: u32) -> Vec<u8> {
    let kind = if packet.is_outward { 4 } else { 0 };
    let mut frame = [packet.ethertype.to_be_bytes(), [0, 0]].concat();
    frame.extend(interface.to_be_bytes());
    frame.extend([0, 1, kind, 6, 2, 0, 0, 0, 0, 1, 0, 0]);
    frame.extend(&packet.bytes);
    frame
}

/// Returns the number of the address family. For IPv6 each system has its own number; this is `FreeBSD`'s.
fn family(packet: &TimedPacket) -> u32 {
    if packet.ethertype == IPV4 { 2 } else { 28 }
}

pub(super) fn null_little_endian(packet: &TimedPacket) -> Vec<u8> {
    [&family(packet).to_le_bytes()[..], &packet.bytes].concat()
}

fn null_big_endian(packet: &TimedPacket) -> Vec<u8> {
    [&family(packet).to_be_bytes()[..], &packet.bytes].concat()
}

pub(super) fn ppp(packet: &TimedPacket) -> Vec<u8> {
    let protocol: [u8; 2] = if packet.ethertype == IPV4 { [0, 0x21] } else { [0, 0x57] };
    [&protocol[..], &packet.bytes].concat()
}

fn ppp_with_address(packet: &TimedPacket) -> Vec<u8> {
    [&[0xff, 0x03][..], &ppp(packet)].concat()
}

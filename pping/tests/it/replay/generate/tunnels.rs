//! Tunnels, whose content pping parses only on request.

use std::mem::swap;

use super::{
    Frame, Golden,
    dialogue::{Dialogue, TimedPacket},
    pcap::{self, ETHERNET},
};
use crate::frames::{IPV4, Ip, UDP, VLAN, ethernet, v4, v6};

const IPV4_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;
const VXLAN: u16 = 4789;
const OLD_VXLAN: u16 = 8472;
const GENEVE: u16 = 6081;
const GTP_U: u16 = 2152;
const TZSP: u16 = 37008;
const ERSPAN: u16 = 0x88be;
const ERSPAN_III: u16 = 0x22eb;
const BRIDGING: u16 = 0x6558;

/// The protocol number and the bytes behind the outer IP header.
type Inside = (u8, Vec<u8>);

pub(super) fn captures() -> Vec<Golden> {
    let all = "ipip,gre,vxlan,geneve,gtp-u,erspan,tzsp";
    [
        ("ipip", "ipip", ip_in_ip()),
        ("gre", "gre", gre_tunnels()),
        ("vxlan", "vxlan", vxlan_tunnels()),
        ("geneve", "geneve", geneve_tunnels()),
        ("gtp-u", "gtp-u", gtp_tunnels()),
        ("erspan", "erspan", erspan_tunnels()),
        ("tzsp", "tzsp", tzsp_tunnels()),
        ("nested", all, nested()),
    ]
    .map(|(name, decap, frames)| {
        let bytes = pcap::nanoseconds(ETHERNET, &frames.concat());
        Golden { decap: Some(decap), ..Golden::new(&format!("{name}.pcap"), bytes) }
    })
    .into()
}

fn outer_v4() -> Ip {
    Ip::between(v4(101), v4(102))
}

fn outer_v6() -> Ip {
    Ip::between(v6(101), v6(102))
}

/// Puts a packet into an outer header between the ends of the tunnel.
fn within(outer: &Ip, packet: &TimedPacket, (protocol, bytes): &Inside) -> TimedPacket {
    let mut outer = outer.clone();
    if !packet.is_outward {
        swap(&mut outer.source, &mut outer.destination);
    }
    let bytes = outer.packet(*protocol, bytes);
    TimedPacket { bytes, ethertype: outer.ethertype(), ..packet.clone() }
}

/// Builds a dialogue in a tunnel.
fn tunnel(outer: &Ip, inner: Ip, number: u16, inside: impl Fn(&TimedPacket) -> Inside) -> Vec<Frame> {
    let packets = Dialogue::new(inner, number).basic().packets();
    packets.iter().map(|packet| within(outer, packet, &inside(packet)).on_ethernet()).collect()
}

fn in_ip(packet: &TimedPacket) -> Inside {
    (if packet.ethertype == IPV4 { IPV4_IN_IP } else { IPV6_IN_IP }, packet.bytes.clone())
}

fn ip_in_ip() -> Vec<Vec<Frame>> {
    vec![
        tunnel(&outer_v4(), Ip::v4(), 0, in_ip),
        tunnel(&outer_v4(), Ip::v6(), 1, in_ip),
        tunnel(&outer_v6(), Ip::v4(), 2, in_ip),
        tunnel(&outer_v6(), Ip::v6(), 3, in_ip),
    ]
}

/// Builds flags and version, then one word for each of checksum, key and sequence number in the flags.
fn gre(flags: u16, ethertype: u16, bytes: &[u8]) -> Inside {
    let mut header = [flags.to_be_bytes(), ethertype.to_be_bytes()].concat();
    header.resize(4 + 4 * (flags & 0xb000).count_ones() as usize, 0x5a);
    header.extend(bytes);
    (GRE, header)
}

fn frame_of(packet: &TimedPacket) -> Vec<u8> {
    ethernet(&[(VLAN, 9)], packet.ethertype, &packet.bytes)
}

fn gre_tunnels() -> Vec<Vec<Frame>> {
    let with = |flags| move |packet: &TimedPacket| gre(flags, packet.ethertype, &packet.bytes);
    vec![
        tunnel(&outer_v4(), Ip::v4(), 0, with(0)),
        tunnel(&outer_v6(), Ip::v6(), 1, with(0x2000)),
        tunnel(&outer_v4(), Ip::v6(), 2, with(0x1000)),
        tunnel(&outer_v6(), Ip::v4(), 3, with(0x8000)),
        tunnel(&outer_v4(), Ip::v4(), 4, with(0xb000)),
        tunnel(&outer_v4(), Ip::v4(), 5, |packet| gre(0x2000, BRIDGING, &frame_of(packet))),
        // Source routes and PPTP's version are not parsed.
        tunnel(&outer_v4(), Ip::v4(), 6, with(0x4000)),
        tunnel(&outer_v4(), Ip::v4(), 7, |packet| gre(0x2001, 0x880b, &packet.bytes)),
    ]
}

fn udp(port: u16, header: &[u8], bytes: &[u8]) -> Inside {
    let mut datagram =
        [50_000_u16, port, (8 + header.len() + bytes.len()) as u16, 0].map(u16::to_be_bytes).concat();
    datagram.extend(header);
    datagram.extend(bytes);
    (UDP, datagram)
}

fn vxlan(port: u16, packet: &TimedPacket) -> Inside {
    udp(port, &[8, 0, 0, 0, 0, 0, 42, 0], &ethernet(&[], packet.ethertype, &packet.bytes))
}

fn vxlan_tunnels() -> Vec<Vec<Frame>> {
    vec![
        tunnel(&outer_v4(), Ip::v4(), 0, |packet| vxlan(VXLAN, packet)),
        tunnel(&outer_v6(), Ip::v6(), 1, |packet| vxlan(OLD_VXLAN, packet)),
        tunnel(&outer_v4(), Ip::v6(), 2, |packet| udp(VXLAN, &[8, 0, 0, 0, 0, 0, 42, 0], &frame_of(packet))),
        // VXLAN-GPE has the same header, but another field says what it carries.
        tunnel(&outer_v4(), Ip::v4(), 3, |packet| vxlan(4790, packet)),
    ]
}

/// Builds a header with `words` words of options.
fn geneve(words: u8, ethertype: u16, bytes: &[u8]) -> Inside {
    let mut header = [[words, 0], ethertype.to_be_bytes(), [0, 0], [42, 0]].concat();
    if words > 0 {
        header.extend([1, 2, 3, words - 1]);
        header.resize(8 + 4 * usize::from(words), 0x77);
    }
    udp(GENEVE, &header, bytes)
}

fn geneve_tunnels() -> Vec<Vec<Frame>> {
    vec![
        tunnel(&outer_v4(), Ip::v4(), 0, |packet| geneve(0, BRIDGING, &frame_of(packet))),
        tunnel(&outer_v6(), Ip::v6(), 1, |packet| geneve(1, BRIDGING, &frame_of(packet))),
        tunnel(&outer_v4(), Ip::v4(), 2, |packet| geneve(9, packet.ethertype, &packet.bytes)),
        tunnel(&outer_v4(), Ip::v6(), 3, |packet| geneve(2, packet.ethertype, &packet.bytes)),
    ]
}

/// Builds a GTP-U message: flags, type, and everything after the first 8 bytes.
fn gtp(flags: u8, message: u8, optional: &[u8], bytes: &[u8]) -> Inside {
    let [high, low] = ((optional.len() + bytes.len()) as u16).to_be_bytes();
    let header = [&[flags, message, high, low, 0, 0, 0, 9], optional].concat();
    udp(GTP_U, &header, bytes)
}

fn gtp_tunnels() -> Vec<Vec<Frame>> {
    let with =
        |flags, optional: &'static [u8]| move |packet: &TimedPacket| gtp(flags, 255, optional, &packet.bytes);
    vec![
        tunnel(&outer_v4(), Ip::v4(), 0, with(0x30, &[])),
        tunnel(&outer_v6(), Ip::v6(), 1, with(0x32, &[0, 7, 0, 0])),
        // A PDU session container, as between a 5G base station and its core.
        tunnel(&outer_v4(), Ip::v6(), 2, with(0x34, &[0, 0, 0, 0x85, 1, 0x10, 9, 0])),
        // The container is followed by the PDCP number.
        tunnel(&outer_v4(), Ip::v4(), 3, with(0x36, &[0, 8, 0, 0x85, 1, 0x10, 9, 0xc0, 1, 0, 3, 0])),
        // An end marker and an echo request carry no packet.
        tunnel(&outer_v4(), Ip::v4(), 4, |packet| gtp(0x30, 254, &[], &packet.bytes)),
        tunnel(&outer_v4(), Ip::v4(), 5, |packet| gtp(0x32, 1, &[0, 9, 0, 0], &packet.bytes)),
    ]
}

/// Builds GRE with `flags`, and an ERSPAN header.
fn erspan(flags: u16, protocol: u16, header: &[u8], packet: &TimedPacket) -> Inside {
    gre(flags, protocol, &[header, &frame_of(packet)].concat())
}

fn erspan_tunnels() -> Vec<Vec<Frame>> {
    const SEQUENCE: u16 = 0x1000;
    const TYPE_II: [u8; 8] = [0x10, 9, 0, 5, 0, 0, 0, 3];
    const TYPE_III: [u8; 12] = [0x20, 9, 0, 5, 1, 2, 3, 4, 0, 2, 0x80, 0];
    /// The last bit announces a subheader, here of platform 3.
    const WITH_SUBHEADER: [u8; 20] = [0x20, 9, 0, 5, 1, 2, 3, 4, 0, 2, 0x80, 1, 0x0c, 0, 0, 1, 5, 6, 7, 8];
    let type_ii = |packet: &TimedPacket| erspan(SEQUENCE, ERSPAN, &TYPE_II, packet);
    let type_iii = |packet: &TimedPacket| erspan(SEQUENCE, ERSPAN_III, &TYPE_III, packet);
    vec![
        tunnel(&outer_v4(), Ip::v4(), 0, |packet| erspan(0, ERSPAN, &[], packet)),
        tunnel(&outer_v6(), Ip::v6(), 1, type_ii),
        tunnel(&outer_v4(), Ip::v6(), 2, type_iii),
        tunnel(&outer_v4(), Ip::v4(), 3, |packet| erspan(SEQUENCE, ERSPAN_III, &WITH_SUBHEADER, packet)),
        // The version of type III in the protocol of type II, and source routes.
        tunnel(&outer_v4(), Ip::v4(), 4, |packet| erspan(SEQUENCE, ERSPAN, &TYPE_III, packet)),
        tunnel(&outer_v4(), Ip::v4(), 5, |packet| erspan(0x4000, ERSPAN, &[], packet)),
    ]
}

/// Builds a TZSP header with its fields and their end. `start` has version, type and what is carried.
fn tzsp(start: [u8; 4], fields: &[u8], packet: &TimedPacket) -> Inside {
    udp(TZSP, &[&start, fields, &[1]].concat(), &frame_of(packet))
}

fn tzsp_tunnels() -> Vec<Vec<Frame>> {
    const RECEIVED: [u8; 4] = [1, 0, 0, 1];
    vec![
        tunnel(&outer_v4(), Ip::v4(), 0, |packet| tzsp(RECEIVED, &[], packet)),
        tunnel(&outer_v6(), Ip::v6(), 1, |packet| tzsp(RECEIVED, &[0, 10, 1, 200, 0, 41, 2, 1, 64], packet)),
        // More fields than are parsed, a packet to be sent, and another version.
        tunnel(&outer_v4(), Ip::v4(), 2, |packet| tzsp(RECEIVED, &[0; 9], packet)),
        tunnel(&outer_v4(), Ip::v4(), 3, |packet| tzsp([1, 1, 0, 1], &[], packet)),
        tunnel(&outer_v4(), Ip::v4(), 4, |packet| tzsp([2, 0, 0, 1], &[], packet)),
    ]
}

/// Tunnels in tunnels are counted, but not measured.
fn nested() -> Vec<Vec<Frame>> {
    let in_middle =
        |packet: &TimedPacket, inside: Inside| within(&Ip::between(v4(201), v4(202)), packet, &inside);
    vec![
        tunnel(&outer_v4(), Ip::v4(), 0, |packet| in_ip(&in_middle(packet, in_ip(packet)))),
        tunnel(&outer_v6(), Ip::v6(), 1, |packet| {
            in_ip(&in_middle(packet, gre(0, packet.ethertype, &packet.bytes)))
        }),
        tunnel(&outer_v4(), Ip::v4(), 2, |packet| vxlan(VXLAN, &in_middle(packet, vxlan(VXLAN, packet)))),
        tunnel(&outer_v4(), Ip::v4(), 3, |packet| {
            gtp(0x30, 255, &[], &in_middle(packet, gtp(0x30, 255, &[], &packet.bytes)).bytes)
        }),
        tunnel(&outer_v4(), Ip::v4(), 4, |packet| {
            let middle = in_middle(packet, geneve(0, packet.ethertype, &packet.bytes));
            gre(0, middle.ethertype, &middle.bytes)
        }),
        tunnel(&outer_v4(), Ip::v4(), 5, |packet| {
            erspan(0, ERSPAN, &[], &in_middle(packet, tzsp([1, 0, 0, 1], &[], packet)))
        }),
    ]
}

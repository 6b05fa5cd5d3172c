//! Tunnels: those that are entered, and those that are not.

use std::{vec, vec::Vec};

use crate::{
    method::Methods,
    parse::{Decap, Frame, LinkType, Protocol, Scope, Untracked, Vlan},
    testing::{ETHERTYPE_IPV4, Network, TCP, Tcp, VLAN, ethernet, extension, identifiers},
};

const IPV4_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
pub(super) const GRE: u8 = 47;
pub(super) const UDP: u8 = 17;

/// A frame with a tunnel.
pub(super) struct Tunnelled {
    pub(super) bytes: Vec<u8>,
    pub(super) kind: Decap,
}

fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0xc0, 0x00];
    datagram.extend(port.to_be_bytes());
    datagram.extend([0, 0, 0, 0]);
    datagram.extend(payload);
    datagram
}

pub(super) fn gre(flags: u16, ethertype: u16, words: usize, inside: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from(flags.to_be_bytes());
    bytes.extend(ethertype.to_be_bytes());
    bytes.resize(4 + 4 * words, 0xee);
    bytes.extend(inside);
    bytes
}

fn vxlan(inside: &[u8]) -> Vec<u8> {
    udp(4789, &[&[8, 0, 0, 0, 0, 0, 1, 0], inside].concat())
}

fn geneve(words: u8, ethertype: u16, inside: &[u8]) -> Vec<u8> {
    let mut header = vec![words, 0];
    header.extend(ethertype.to_be_bytes());
    header.resize(8 + 4 * usize::from(words), 0xee);
    udp(6081, &[&header, inside].concat())
}

fn gtp_u(flags: u8, headers: &[u8], inside: &[u8]) -> Vec<u8> {
    udp(2152, &[&[flags, 255, 0, 0, 0, 0, 0, 1], headers, inside].concat())
}

/// The headers of GRE and of ERSPAN: none for type I, otherwise of this version.
pub(super) fn erspan(version: u8) -> Vec<u8> {
    match version {
        0 => gre(0, 0x88be, 0, &[]),
        1 => gre(0x1000, 0x88be, 1, &[0x10, 7, 0, 5, 0, 0, 0, 3]),
        _ => gre(0x1000, 0x22eb, 1, &[version << 4, 7, 0, 5, 1, 2, 3, 4, 0, 2, 0x80, 0]),
    }
}

pub(super) fn tzsp(start: [u8; 4], fields: &[u8], inside: &[u8]) -> Vec<u8> {
    udp(37008, &[&start, fields, inside].concat())
}

/// A received Ethernet frame.
pub(super) const RECEIVED: [u8; 4] = [1, 0, 0, 1];

/// Every kind of tunnel, between IPv4 and between IPv6 hosts, around an IP packet.
pub(super) fn tunnels(network: &Network, packet: &[u8]) -> Vec<Tunnelled> {
    let frame = ethernet(&[], network.ethertype(), packet);
    let ethertype = network.ethertype();
    let in_ip = if ethertype == ETHERTYPE_IPV4 { IPV4_IN_IP } else { IPV6_IN_IP };
    let kinds = [
        (Decap::IPIP, in_ip, packet.to_vec()),
        (Decap::GRE, GRE, gre(0, ethertype, 0, packet)),
        (Decap::GRE, GRE, gre(0xb000, ethertype, 3, packet)),
        (Decap::GRE, GRE, gre(0x2000, 0x6558, 1, &frame)),
        (Decap::VXLAN, UDP, vxlan(&frame)),
        (Decap::GENEVE, UDP, geneve(0, ethertype, packet)),
        (Decap::GENEVE, UDP, geneve(63, 0x6558, &frame)),
        (Decap::GTP_U, UDP, gtp_u(0x30, &[], packet)),
        (Decap::ERSPAN, GRE, [erspan(0), frame.clone()].concat()),
        (Decap::ERSPAN, GRE, [erspan(1), frame.clone()].concat()),
        (Decap::ERSPAN, GRE, [erspan(2), frame.clone()].concat()),
        (Decap::TZSP, UDP, tzsp(RECEIVED, &[1], &frame)),
        (Decap::TZSP, UDP, tzsp(RECEIVED, &[0, 10, 1, 200, 0, 41, 2, 1, 64, 1], &frame)),
        (Decap::GTP_U, UDP, gtp_u(0x36, &[0, 1, 0, 0x85, 1, 0, 9, 0xc0, 2, 1, 1, 1, 1, 1, 1, 0], packet)),
    ];
    let outer =
        [Network { traffic_class: 0xfc, ..Network::v4() }, Network::with_extensions(&[extension(0, 2)])];
    outer
        .iter()
        .flat_map(|outer| {
            kinds
                .iter()
                .map(|(kind, number, bytes)| Tunnelled { bytes: outer.frame(*number, bytes), kind: *kind })
        })
        .collect()
}

pub(super) fn parse(bytes: &[u8], decap: Decap) -> (Frame, Result<(), Untracked>) {
    let mut frame = Frame::EMPTY;
    let parsed = frame.parse(bytes, LinkType::Ethernet, Vlan::NONE, decap, &Scope::ALL);
    (frame, parsed)
}

#[test]
fn what_is_inside_is_as_without_the_tunnel() {
    for network in [Network { traffic_class: 1, ..Network::v4() }, Network::v6()] {
        let packet = network.packet(TCP, &Tcp::usual(10, 20).bytes());
        for tunnel in tunnels(&network, &packet) {
            for decap in [tunnel.kind, Decap::ALL] {
                let (frame, parsed) = parse(&tunnel.bytes, decap);
                assert_eq!(parsed, Ok(()), "{:?}", tunnel.kind);
                assert_eq!((frame.source, frame.destination), (network.source, network.destination));
                assert_eq!((frame.family, frame.protocol), (network.family, Protocol::Tcp));
                assert_eq!(frame.traffic_class, network.traffic_class);
                assert_eq!(frame.transport.segment.timestamps.tsval, 10);
                assert_eq!(frame.transport.payload(), 5);
            }
        }
    }
}

/// Checks that a packet is unsupported, also if its first byte may be that of a QUIC packet.
#[track_caller]
fn assert_unmeasured(frame: &Frame, parsed: Result<(), Untracked>) {
    let begins = parsed.and_then(|()| frame.transport.begins_flow(Methods::ALL));
    assert_eq!(begins, Err(Untracked::Unsupported));
}

#[test]
fn what_a_service_answers_is_no_tunnel() {
    let inside = Network::v4().frame(TCP, &Tcp::usual(1, 2).bytes());
    for (port, is_entered) in [(53_u16, false), (123, false), (1_023, false), (1_024, true), (2_152, true)] {
        let mut datagram = vxlan(&inside);
        datagram[..2].copy_from_slice(&port.to_be_bytes());
        let (frame, _) = parse(&Network::v6().frame(UDP, &datagram), Decap::ALL);
        assert_eq!(frame.protocol == Protocol::Tcp, is_entered, "{port}");
    }
}

#[test]
fn a_tunnel_that_is_off_is_a_packet_of_its_own() {
    let network = Network::v6();
    for tunnel in tunnels(&network, &network.packet(TCP, &Tcp::usual(1, 2).bytes())) {
        for decap in [Decap::NONE, Decap(Decap::ALL.0 & !tunnel.kind.0)] {
            let (frame, parsed) = parse(&tunnel.bytes, decap);
            assert_unmeasured(&frame, parsed);
            assert!(matches!(frame.protocol, Protocol::Udp | Protocol::Other));
        }
    }
}

#[test]
fn one_tunnel_is_entered_and_not_a_second() {
    let network = Network::v4();
    for inner in tunnels(&network, &network.packet(TCP, &Tcp::usual(1, 2).bytes())) {
        let packet = &inner.bytes[14..];
        let around = if packet[0] >> 4 == 4 { Network::v4() } else { Network::v6() };
        for outer in tunnels(&around, packet) {
            assert_eq!(parse(&outer.bytes, Decap::ALL).1, Err(Untracked::NestedTunnel));
            // A tunnel that is not entered does not count as one.
            if inner.kind != outer.kind {
                let (frame, parsed) = parse(&outer.bytes, outer.kind);
                assert_unmeasured(&frame, parsed);
            }
        }
    }
}

#[test]
fn tags_inside_a_tunnel_come_behind_those_outside() {
    let packet = Network::v4().packet(TCP, &Tcp::usual(1, 2).bytes());
    let inside = ethernet(&[(VLAN, 30), (VLAN, 40)], ETHERTYPE_IPV4, &packet);
    let bytes =
        ethernet(&[(VLAN, 10), (VLAN, 20)], ETHERTYPE_IPV4, &Network::v4().packet(UDP, &vxlan(&inside)));
    let (frame, parsed) = parse(&bytes, Decap::VXLAN);
    assert_eq!(parsed, Ok(()));
    assert_eq!(identifiers(&frame), [10, 20, 30, 40]);
}

#[test]
fn deepest_tunnel_is_found() {
    // A header that begins as far into a frame as any can.
    let network = Network::with_extensions(&[(); 6].map(|()| extension(60, 256)));
    let packet = network.packet(TCP, &Tcp::usual(7, 8).bytes());
    let header: Vec<u8> = [&[255; 1020 - 1][..], &[0x85]].concat();
    let headers = [&[0, 1, 0, 0x85], &header[..], &header, &header, &header[..1019], &[0]].concat();
    let outer = network.packet(UDP, &gtp_u(0x34, &headers, &packet));
    let (frame, parsed) = parse(&ethernet(&[(VLAN, 1); 4], network.ethertype(), &outer), Decap::GTP_U);
    assert_eq!(parsed, Ok(()));
    assert_eq!(frame.transport.segment.timestamps.tsval, 7);
}

#[test]
fn fragments_of_a_tunnel_are_entered_if_they_are_the_first() {
    let packet = Network::v6().packet(TCP, &Tcp::usual(1, 2).bytes());
    for (fragment, expected) in [(0x2000, Ok(())), (0x2001, Err(Untracked::Fragment))] {
        let outer = Network { fragment, ..Network::v4() };
        assert_eq!(parse(&outer.frame(IPV6_IN_IP, &packet), Decap::ALL).1, expected);
    }
}

//! What identifies a packet in a queue.

use std::{array, ops::Range, vec::Vec};

use crate::{
    parse::{IpAddress, PacketId},
    testing::{ICMP, Network, TCP, Tcp, echo},
};

const UDP: u8 = 17;

/// Returns the identity of a packet in memory that has `filler` behind it.
fn id_before(packet: &[u8], filler: u8) -> PacketId {
    let byte = |at: usize| packet.get(at).copied().unwrap_or(filler);
    PacketId::of(array::from_fn(|word| u64::from_ne_bytes(array::from_fn(|at| byte(8 * word + at)))))
}

fn id(packet: &[u8]) -> PacketId {
    id_before(packet, 0)
}

/// Returns the offsets of the bytes that decide the identity of a packet.
fn deciding(packet: &[u8]) -> Vec<usize> {
    let is_deciding = |at: &usize| {
        let mut changed = packet.to_vec();
        changed[*at] ^= 1;
        id(&changed).hash != id(packet).hash
    };
    (0..packet.len()).filter(is_deciding).collect()
}

fn offsets<const N: usize>(ranges: [Range<usize>; N]) -> Vec<usize> {
    ranges.into_iter().flatten().collect()
}

/// A segment with timestamps.
fn segment(payload: usize) -> Vec<u8> {
    Tcp { payload, ..Tcp::usual(0x0102_0304, 0x0506_0708) }.bytes()
}

/// A datagram with 20 bytes of payload.
fn datagram() -> Vec<u8> {
    [&[0x9c, 0x40, 0x01, 0xbb, 0, 28, 0x5a, 0x5a][..], &[0xda; 20]].concat()
}

/// Left out are what changes on the way or in a queue (traffic class, hop limit, checksums), and what differs between a
/// super-packet and its first part (lengths, flags).
#[test]
fn tcp_decides_by_addresses_ports_numbers_and_timestamps() {
    let v4 = Network::v4().packet(TCP, &segment(100));
    let (identification, protocol, addresses) = (4..8, 9..10, 12..20);
    assert_eq!(deciding(&v4), offsets([identification, protocol, addresses, 20..32, 44..52]));
    let v6 = Network::v6().packet(TCP, &segment(100));
    let (next_header, addresses) = (6..7, 8..40);
    assert_eq!(deciding(&v6), offsets([next_header, addresses, 40..52, 64..72]));
}

#[test]
fn udp_decides_by_addresses_ports_and_first_bytes() {
    let v4 = Network::v4().packet(UDP, &datagram());
    assert_eq!(deciding(&v4), offsets([4..8, 9..10, 12..20, 20..24, 28..36]));
    let v6 = Network::v6().packet(UDP, &datagram());
    assert_eq!(deciding(&v6), offsets([6..7, 8..40, 40..44, 48..56]));
}

#[test]
fn others_decide_by_their_first_bytes() {
    let v4 = Network::v4().packet(ICMP, &echo(8, 0, 1, 1, &[0xda; 20]));
    assert_eq!(deciding(&v4), offsets([4..8, 12..20, 20..36]));
}

#[test]
fn fragments_of_a_packet_differ() {
    for fragment in [0x2000, 0x00b9] {
        let other = Network { fragment, ..Network::v4() };
        for protocol in [TCP, UDP] {
            let whole = Network::v4().packet(protocol, &segment(100));
            assert_ne!(id(&other.packet(protocol, &segment(100))).hash, id(&whole).hash);
        }
    }
    let fragment = |offset: u8| {
        let header = (44, Vec::from([0, 0, offset << 3, 0, 0, 0, 7]));
        Network::with_extensions(&[header]).packet(UDP, &datagram())
    };
    assert_ne!(id(&fragment(0)).hash, id(&fragment(2)).hash);
}

/// The kernel reads as many bytes of each packet, and a short one ends before.
#[test]
fn memory_behind_a_short_packet_does_not_count() {
    let bare = Tcp { payload: 0, ..Tcp::with_options(&[]) }.bytes();
    let transports = [(TCP, bare), (UDP, datagram()), (ICMP, echo(8, 0, 1, 1, &[0xda; 8]))];
    for network in [Network::v4(), Network::v6()] {
        for (protocol, transport) in &transports {
            let packet = network.packet(*protocol, transport);
            assert_eq!(id_before(&packet, 0).hash, id_before(&packet, 0xff).hash, "protocol {protocol}");
        }
    }
}

#[test]
fn first_part_of_a_super_packet_is_recognised() {
    for network in [Network::v4(), Network::v6()] {
        let whole = id(&network.packet(TCP, &segment(10_000)));
        let first = id(&network.packet(TCP, &segment(1_448)));
        assert_eq!(whole.hash, first.hash);
        assert!(whole.may_be_split(1_500) && !first.may_be_split(1_500));
        // A length that the field has no room for.
        let longest = Network { len: Some(0), ..network.clone() };
        assert!(id(&longest.packet(TCP, &segment(0))).may_be_split(1_500));
        assert!(!id(&longest.packet(UDP, &datagram())).may_be_split(1_500));
    }
}

#[test]
fn addresses_and_dscp_are_read() {
    for network in [Network::v4(), Network::v6()] {
        let network = Network { traffic_class: 0xb9, ..network };
        let id = id(&network.packet(UDP, &datagram()));
        assert_eq!((id.from, id.to, id.dscp), (network.source, network.destination, 46));
    }
    let arp = id(&[0, 1, 8, 0, 6, 4, 0, 1, 2, 2, 2, 2, 2, 2, 192, 0, 2, 1]);
    assert_eq!((arp.from, arp.to, arp.dscp), (IpAddress([0; 2]), IpAddress([0; 2]), 0));
    assert!(!arp.may_be_split(0));
}

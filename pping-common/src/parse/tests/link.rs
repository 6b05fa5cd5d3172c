//! Ethernet, VLAN tags, and links without a header.

use std::vec::Vec;

use crate::{
    parse::{Family, Frame, LinkType, Protocol, Untracked, Vlan},
    testing::{
        ETHERTYPE_IPV4, Network, SERVICE_VLAN, TCP, Tcp, VLAN, ethernet, identifiers, parse, parse_anyway,
        parse_on,
    },
};

fn tagged(tags: &[(u16, u16)]) -> Vec<u8> {
    ethernet(tags, ETHERTYPE_IPV4, &Network::v4().packet(TCP, &Tcp::usual(1, 2).octets()))
}

#[test]
fn untagged_frame_has_no_vlan() {
    let frame = parse(&tagged(&[])).unwrap();
    assert_eq!(identifiers(&frame), []);
    assert_eq!(frame.transport.segment.timestamps.tsval, 1);
}

#[test]
fn vlan_identifier_leaves_out_priority_and_drop_eligibility() {
    assert_eq!(identifiers(&parse(&tagged(&[(VLAN, 0xf123)])).unwrap()), [0x123]);
}

#[test]
fn every_tag_protocol_is_known_and_the_outermost_comes_first() {
    let frame = parse(&tagged(&[(SERVICE_VLAN, 10), (0x9100, 20), (VLAN, 30)])).unwrap();
    assert_eq!(identifiers(&frame), [10, 20, 30]);
    assert_eq!(frame.transport.segment.timestamps.tsval, 1);
}

#[test]
fn priority_tag_is_told_from_none() {
    assert_eq!(identifiers(&parse(&tagged(&[(VLAN, 0)])).unwrap()), [0]);
    assert_eq!(identifiers(&parse(&tagged(&[(SERVICE_VLAN, 7), (VLAN, 0)])).unwrap()), [7, 0]);
}

#[test]
fn four_tags_are_followed_and_five_are_not() {
    let tags = [(SERVICE_VLAN, 1), (SERVICE_VLAN, 2), (VLAN, 3), (VLAN, 4), (VLAN, 5)];
    let frame = parse(&tagged(&tags[..4])).unwrap();
    assert_eq!(identifiers(&frame), [1, 2, 3, 4]);
    assert_eq!(frame.transport.segment.timestamps.tsval, 1);
    let (frame, parsed) = parse_anyway(&tagged(&tags));
    assert_eq!(parsed, Err(Untracked::Unsupported));
    assert_eq!(frame.protocol, Protocol::NonIp);
}

#[test]
fn offloaded_tags_are_outermost() {
    let mut offloaded = Vlan::NONE;
    offloaded.push(100);
    let mut frame = Frame::EMPTY;
    frame.parse(&tagged(&[(VLAN, 200), (VLAN, 300)])[..], LinkType::Ethernet, offloaded).unwrap();
    assert_eq!(identifiers(&frame), [100, 200, 300]);
}

#[test]
fn of_five_tags_the_offloaded_one_is_forgotten() {
    let mut offloaded = Vlan::NONE;
    offloaded.push(100);
    let mut frame = Frame::EMPTY;
    let octets = tagged(&[(VLAN, 1), (VLAN, 2), (VLAN, 3), (VLAN, 4)]);
    frame.parse(&octets[..], LinkType::Ethernet, offloaded).unwrap();
    assert_eq!(identifiers(&frame), [1, 2, 3, 4]);
}

#[test]
fn other_ethertypes_are_no_ip() {
    for ethertype in [0x0806, 0x88cc, 0x8847, 46] {
        let (frame, parsed) = parse_anyway(&ethernet(&[(VLAN, 9)], ethertype, &[0x45; 60]));
        assert_eq!(parsed, Err(Untracked::NonIp), "{ethertype:#x}");
        assert_eq!(frame.protocol, Protocol::NonIp);
    }
}

#[test]
fn link_without_a_header_begins_with_ip() {
    let segment = Tcp::usual(3, 4).octets();
    for network in [Network::v4(), Network::v6()] {
        let frame = parse_on(&network.packet(TCP, &segment), LinkType::Ip).unwrap();
        assert_eq!(frame.family, network.family);
        assert_eq!(frame.source, network.source);
        assert_eq!(frame.transport.segment.timestamps.tsval, 3);
    }
    let error = |octets: &[u8]| parse_on(octets, LinkType::Ip).unwrap_err();
    assert_eq!(error(&[0x54; 80]), Untracked::NonIp);
    assert_eq!(error(&[]), Untracked::Truncated);
    assert_eq!(error(&[0x45]), Untracked::Truncated);
}

#[test]
fn version_must_agree_with_the_ethertype() {
    let segment = Tcp::usual(1, 2).octets();
    let v4 = ethernet(&[], Network::v6().ethertype(), &Network::v4().packet(TCP, &segment));
    let v6 = ethernet(&[], Network::v4().ethertype(), &Network::v6().packet(TCP, &segment));
    for octets in [v4, v6] {
        let (frame, parsed) = parse_anyway(&octets);
        assert_eq!(parsed, Err(Untracked::Malformed));
        assert_eq!(frame.protocol, Protocol::Other);
    }
}

#[test]
fn nothing_of_an_earlier_frame_is_left() {
    let rich = Network { traffic_class: 0xff, ..Network::v6() }.packet(TCP, &Tcp::usual(1, 2).octets());
    let rich = ethernet(&[(VLAN, 5)], Network::v6().ethertype(), &rich);
    let plain = Network::v4().frame(TCP, &Tcp::with_options(&[]).octets());
    let mut frame = Frame::EMPTY;
    frame.parse(&rich[..], LinkType::Ethernet, Vlan::NONE).unwrap();
    frame.parse(&plain[..], LinkType::Ethernet, Vlan::NONE).unwrap();
    assert_eq!(frame.family, Family::V4);
    assert_eq!((frame.traffic_class, frame.vlan), (0, Vlan::NONE));
    assert_eq!(frame.transport.segment.timestamps(), None);
    frame.parse(&rich[..], LinkType::Ethernet, Vlan::NONE).unwrap();
    let arp = [0x08; 60];
    assert_eq!(frame.parse(&arp[..], LinkType::Ethernet, Vlan::NONE), Err(Untracked::NonIp));
    assert_eq!((frame.protocol, frame.traffic_class), (Protocol::NonIp, 0));
    assert_eq!(frame.vlan, Vlan::NONE);
}

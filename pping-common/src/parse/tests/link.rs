//! Ethernet, VLAN tags, and links without a header.

use std::{vec, vec::Vec};

use crate::{
    bytes::Captured,
    parse::{Decap, Direction, Family, Frame, LinkType, Protocol, Scope, Untracked, Vlan},
    testing::{
        ETHERTYPE_IPV4, Network, SERVICE_VLAN, TCP, Tcp, VLAN, ethernet, identifiers, parse, parse_anyway,
        parse_on,
    },
};

fn tagged(tags: &[(u16, u16)]) -> Vec<u8> {
    ethernet(tags, ETHERTYPE_IPV4, &Network::v4().packet(TCP, &Tcp::usual(1, 2).bytes()))
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
    let frame = parse(&tagged(&[(SERVICE_VLAN, 10), (0x9100, 20), (0x9200, 25), (VLAN, 30)])).unwrap();
    assert_eq!(identifiers(&frame), [10, 20, 25, 30]);
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
    frame
        .parse(
            &tagged(&[(VLAN, 200), (VLAN, 300)])[..],
            LinkType::Ethernet,
            offloaded,
            Decap::NONE,
            &Scope::ALL,
        )
        .unwrap();
    assert_eq!(identifiers(&frame), [100, 200, 300]);
}

#[test]
fn of_five_tags_the_offloaded_one_is_forgotten() {
    let mut offloaded = Vlan::NONE;
    offloaded.push(100);
    let mut frame = Frame::EMPTY;
    let bytes = tagged(&[(VLAN, 1), (VLAN, 2), (VLAN, 3), (VLAN, 4)]);
    frame.parse(&bytes[..], LinkType::Ethernet, offloaded, Decap::NONE, &Scope::ALL).unwrap();
    assert_eq!(identifiers(&frame), [1, 2, 3, 4]);
}

#[test]
fn other_ethertypes_are_no_ip() {
    for ethertype in [0x0806, 0x88cc, 0x8863, 46] {
        let (frame, parsed) = parse_anyway(&ethernet(&[(VLAN, 9)], ethertype, &[0x45; 60]));
        assert_eq!(parsed, Err(Untracked::NonIp), "{ethertype:#x}");
        assert_eq!(frame.protocol, Protocol::NonIp);
    }
}

#[test]
fn link_without_a_header_begins_with_ip() {
    let segment = Tcp::usual(3, 4).bytes();
    for network in [Network::v4(), Network::v6()] {
        let frame = parse_on(&network.packet(TCP, &segment), LinkType::Ip).unwrap();
        assert_eq!(frame.family, network.family);
        assert_eq!(frame.source, network.source);
        assert_eq!(frame.transport.segment.timestamps.tsval, 3);
    }
    let error = |bytes: &[u8]| parse_on(bytes, LinkType::Ip).unwrap_err();
    assert_eq!(error(&[0x54; 80]), Untracked::NonIp);
    assert_eq!(error(&[]), Untracked::Truncated);
    assert_eq!(error(&[0x45]), Untracked::Truncated);
}

#[test]
fn version_must_agree_with_the_ethertype() {
    let segment = Tcp::usual(1, 2).bytes();
    let v4 = ethernet(&[], Network::v6().ethertype(), &Network::v4().packet(TCP, &segment));
    let v6 = ethernet(&[], Network::v4().ethertype(), &Network::v6().packet(TCP, &segment));
    for bytes in [v4, v6] {
        let (frame, parsed) = parse_anyway(&bytes);
        assert_eq!(parsed, Err(Untracked::Malformed));
        assert_eq!(frame.protocol, Protocol::Other);
    }
}

#[test]
fn nothing_of_an_earlier_frame_is_left() {
    let rich = Network { traffic_class: 0xff, ..Network::v6() }.packet(TCP, &Tcp::usual(1, 2).bytes());
    let rich = ethernet(&[(VLAN, 5)], Network::v6().ethertype(), &rich);
    let plain = Network::v4().frame(TCP, &Tcp::with_options(&[]).bytes());
    let mut frame = Frame::EMPTY;
    frame.parse(&rich[..], LinkType::Ethernet, Vlan::NONE, Decap::NONE, &Scope::ALL).unwrap();
    frame.parse(&plain[..], LinkType::Ethernet, Vlan::NONE, Decap::NONE, &Scope::ALL).unwrap();
    assert_eq!(frame.family, Family::V4);
    assert_eq!((frame.traffic_class, frame.vlan), (0, Vlan::NONE));
    assert_eq!(frame.transport.segment.timestamps(), None);
    frame.parse(&rich[..], LinkType::Ethernet, Vlan::NONE, Decap::NONE, &Scope::ALL).unwrap();
    let arp = [0x08; 60];
    assert_eq!(
        frame.parse(&arp[..], LinkType::Ethernet, Vlan::NONE, Decap::NONE, &Scope::ALL),
        Err(Untracked::NonIp)
    );
    assert_eq!((frame.protocol, frame.traffic_class), (Protocol::NonIp, 0));
    assert_eq!(frame.vlan, Vlan::NONE);
}

/// IPv4 and IPv6, each with its ethertype and its PPP protocol number.
fn packets() -> [(u16, u16, Vec<u8>); 2] {
    let segment = Tcp::usual(3, 4).bytes();
    [(Network::v4(), 0x0021), (Network::v6(), 0x0057)]
        .map(|(network, ppp)| (network.ethertype(), ppp, network.packet(TCP, &segment)))
}

#[track_caller]
fn assert_found(bytes: &[u8], link: LinkType) {
    let frame = parse_on(bytes, link).unwrap();
    assert_eq!(frame.transport.segment.timestamps.tsval, 3);
    for len in 0..bytes.len() - 5 {
        let captured = Captured { bytes: &bytes[..len], frame_len: bytes.len() };
        let mut frame = Frame::EMPTY;
        let parsed = frame.parse(&captured, link, Vlan::NONE, Decap::NONE, &Scope::ALL);
        assert_eq!(parsed, Err(Untracked::Truncated), "{len} bytes");
    }
}

fn mpls(labels: usize, packet: &[u8]) -> Vec<u8> {
    let mut bytes = [0, 1, 0x20, 64].repeat(labels);
    bytes[4 * (labels - 1) + 2] |= 1;
    bytes.extend(packet);
    bytes
}

fn pppoe(protocol: u16, packet: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from([0x11, 0, 0, 9, 0, 0]);
    bytes.extend(protocol.to_be_bytes());
    bytes.extend(packet);
    bytes
}

#[test]
fn sessions_and_labels_are_looked_through_with_and_without_tags() {
    for (_, ppp, packet) in packets() {
        for tags in [&[][..], &[(SERVICE_VLAN, 1), (VLAN, 2)], &[(VLAN, 1); 4]] {
            assert_found(&ethernet(tags, 0x8864, &pppoe(ppp, &packet)), LinkType::Ethernet);
            for labels in 1..=4 {
                assert_found(&ethernet(tags, 0x8847, &mpls(labels, &packet)), LinkType::Ethernet);
                assert_found(&ethernet(tags, 0x8848, &mpls(labels, &packet)), LinkType::Ethernet);
                let both = pppoe(0x0281, &mpls(labels, &packet));
                assert_found(&ethernet(tags, 0x8864, &both), LinkType::Ethernet);
            }
            let error = parse_on(&ethernet(tags, 0x8847, &mpls(5, &packet)), LinkType::Ethernet);
            assert_eq!(error.unwrap_err(), Untracked::Unsupported);
        }
    }
}

#[test]
fn a_session_may_leave_out_the_first_byte_of_the_protocol() {
    for (_, ppp, packet) in packets() {
        for tags in [&[][..], &[(VLAN, 2)]] {
            let session = [&[0x11, 0, 0, 9, 0, 0, ppp as u8], &packet[..]].concat();
            assert_found(&ethernet(tags, 0x8864, &session), LinkType::Ethernet);
        }
    }
}

/// LLC and SNAP before an ethertype.
fn snap(ethertype: u16, packet: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from([0xaa, 0xaa, 3, 0, 0, 0]);
    bytes.extend(ethertype.to_be_bytes());
    bytes.extend(packet);
    bytes
}

#[test]
fn snap_is_looked_through_with_and_without_tags() {
    for (ethertype, ppp, packet) in packets() {
        for tags in [&[][..], &[(SERVICE_VLAN, 1), (VLAN, 2)], &[(VLAN, 1); 4]] {
            for (ethertype, content) in
                [(ethertype, packet.clone()), (0x8864, pppoe(ppp, &packet)), (0x8847, mpls(4, &packet))]
            {
                let behind = snap(ethertype, &content);
                let frame = ethernet(tags, behind.len() as u16, &behind);
                assert_found(&frame, LinkType::Ethernet);
            }
        }
        let behind = snap(ethertype, &packet);
        for len in [1, 1500] {
            assert!(parse(&ethernet(&[], len, &behind)).is_ok());
        }
        for other in [0, 1501, 1535] {
            assert_eq!(parse(&ethernet(&[], other, &behind)).unwrap_err(), Untracked::NonIp);
        }
        for at in 0..6 {
            let mut other = behind.clone();
            other[at] ^= 1;
            assert_eq!(parse(&ethernet(&[], 100, &other)).unwrap_err(), Untracked::NonIp, "{at}");
        }
        assert_found(&[&[0; 14][..], &[0, 4], &behind].concat(), LinkType::Cooked);
        let unknown = [&[0x80, 0x21], &behind[..]].concat();
        assert_eq!(parse_on(&unknown, LinkType::Ppp).unwrap_err(), Untracked::NonIp);
    }
}

#[test]
fn an_ethernet_header_behind_labels_is_not_taken_for_ip() {
    for (ethertype, _, packet) in packets() {
        for first in (0x40..0x50).chain(0x60..0x70) {
            for padding in [0, 46] {
                let mut inner = ethernet(&[], ethertype, &packet);
                inner[..6].copy_from_slice(&[first, 0, 0, 0, 0x5e, 1]);
                inner.extend(vec![0; padding]);
                for labels in 1..=4 {
                    let bytes = ethernet(&[], 0x8847, &mpls(labels, &inner));
                    let (frame, parsed) = parse_anyway(&bytes);
                    assert_eq!(parsed, Err(Untracked::NonIp), "{first:x}");
                    assert_eq!((frame.protocol, frame.traffic_class), (Protocol::NonIp, 0));
                }
            }
        }
    }
}

#[test]
fn behind_labels_ip_may_be_followed_by_padding() {
    for (_, _, packet) in packets() {
        for (padding, expected) in [(1, Ok(())), (46, Ok(())), (47, Err(Untracked::NonIp))] {
            let mut bytes = ethernet(&[], 0x8847, &mpls(2, &packet));
            bytes.extend(vec![0; padding]);
            assert_eq!(parse_anyway(&bytes).1, expected, "{padding}");
        }
    }
}

#[test]
fn what_sessions_and_labels_carry_beside_ip_is_no_ip() {
    let [(_, _, packet), _] = packets();
    let pseudowire = [&[0; 4], &packet[..]].concat();
    assert_eq!(parse(&ethernet(&[], 0x8847, &mpls(2, &pseudowire))).unwrap_err(), Untracked::NonIp);
    assert_eq!(parse(&ethernet(&[], 0x8864, &pppoe(0xc021, &packet))).unwrap_err(), Untracked::NonIp);
    let mut discovery = pppoe(0x0021, &packet);
    discovery[1] = 9;
    assert_eq!(parse(&ethernet(&[], 0x8864, &discovery)).unwrap_err(), Untracked::Unsupported);
}

#[test]
fn cooked_captures_say_protocol_direction_and_interface() {
    for (ethertype, _, packet) in packets() {
        for (packet_type, direction) in
            [(0, Direction::Ingress), (3, Direction::Ingress), (4, Direction::Egress)]
        {
            let mut cooked = Vec::from([0, packet_type, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0]);
            cooked.extend(ethertype.to_be_bytes());
            cooked.extend(&packet);
            assert_found(&cooked, LinkType::Cooked);
            assert_eq!(LinkType::Cooked.direction(&cooked[..]), Some(direction));
            assert_eq!(LinkType::Cooked.interface(&cooked[..]), None);
            let mut cooked = Vec::from(ethertype.to_be_bytes());
            cooked.extend([0, 0, 0, 0, 1, 2, 0, 1, packet_type, 6, 1, 2, 3, 4, 5, 6, 0, 0]);
            cooked.extend(&packet);
            assert_found(&cooked, LinkType::CookedV2);
            assert_eq!(LinkType::CookedV2.direction(&cooked[..]), Some(direction));
            assert_eq!(LinkType::CookedV2.interface(&cooked[..]), Some(258));
        }
    }
    assert_eq!(LinkType::Ethernet.direction(&[0; 60][..]), None);
    assert_eq!(LinkType::CookedV2.direction(&[0; 11][..]), None);
}

#[test]
fn tags_behind_a_cooked_header_are_found() {
    let [(_, _, packet), _] = packets();
    let mut cooked = Vec::from([0; 14]);
    cooked.extend([0x81, 0, 0, 42, 0x08, 0]);
    cooked.extend(packet);
    assert_found(&cooked, LinkType::Cooked);
    assert_eq!(identifiers(&parse_on(&cooked, LinkType::Cooked).unwrap()), [42]);
}

#[test]
fn loopback_headers_are_read_in_either_byte_order() {
    let [(_, _, v4), (_, _, v6)] = packets();
    for (family, packet) in [(2_u32, &v4), (10, &v6), (23, &v6), (24, &v6), (28, &v6), (30, &v6)] {
        assert_found(&[&family.to_be_bytes(), &packet[..]].concat(), LinkType::Loopback);
        assert_found(&[&family.to_le_bytes(), &packet[..]].concat(), LinkType::Loopback);
    }
    let other = [&[0, 0, 0, 7], &v4[..]].concat();
    assert_eq!(parse_on(&other, LinkType::Loopback).unwrap_err(), Untracked::NonIp);
}

#[test]
fn ppp_is_read_with_and_without_what_may_be_left_out() {
    for (_, ppp, packet) in packets() {
        let [high, low] = ppp.to_be_bytes();
        for header in [&[high, low][..], &[0xff, 0x03, high, low], &[low], &[0xff, 0x03, low]] {
            assert_found(&[header, &packet].concat(), LinkType::Ppp);
        }
        assert_found(&[&[0x02, 0x81][..], &mpls(2, &packet)].concat(), LinkType::Ppp);
        let lcp = [&[0xc0, 0x21][..], &packet].concat();
        assert_eq!(parse_on(&lcp, LinkType::Ppp).unwrap_err(), Untracked::NonIp);
    }
}

//! IPv4 and IPv6 headers.

use std::{vec, vec::Vec};

use crate::{
    parse::{Family, IpAddress, Protocol, Untracked},
    testing::{ICMP, ICMPV6, Network, TCP, Tcp, extension, parse, parse_anyway},
};

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;

/// A fragment header. `field` is the offset in bytes, plus 1 if more fragments follow.
fn fragment(field: u16) -> (u8, Vec<u8>) {
    let [high, low] = field.to_be_bytes();
    (FRAGMENT, vec![0, high, low, 0, 0, 0, 1])
}

#[test]
fn addresses_and_traffic_class() {
    for network in [Network::v4(), Network::v6()] {
        let network = Network { traffic_class: 0xb9, ..network };
        let frame = parse(&network.frame(TCP, &Tcp::usual(1, 2).bytes())).unwrap();
        assert_eq!((frame.source, frame.destination), (network.source, network.destination));
        assert_eq!((frame.family, frame.protocol), (network.family, Protocol::Tcp));
        assert_eq!(frame.traffic_class, 0xb9);
    }
}

#[test]
fn v4_options_are_skipped() {
    for words in 0..=10 {
        let network = Network { options: vec![7; 4 * words], ..Network::v4() };
        let frame = parse(&network.frame(TCP, &Tcp::usual(1, 2).bytes())).unwrap();
        assert_eq!(frame.transport.segment.destination_port, 443);
        assert_eq!(frame.transport.payload(), 5);
    }
}

#[test]
fn v4_header_length_below_its_minimum_is_malformed() {
    for words in 0..5 {
        let mut bytes = Network::v4().frame(TCP, &Tcp::usual(1, 2).bytes());
        bytes[14] = 0x40 | words;
        assert_eq!(parse_anyway(&bytes).1, Err(Untracked::Malformed));
    }
}

#[test]
fn v4_total_length_below_its_header_is_malformed() {
    for len in 1..20 {
        let network = Network { len: Some(len), ..Network::v4() };
        let bytes = network.frame(TCP, &Tcp::usual(1, 2).bytes());
        assert_eq!(parse_anyway(&bytes).1, Err(Untracked::Malformed));
    }
}

#[test]
fn padding_of_short_frames_is_no_payload() {
    for network in [Network::v4(), Network::v6()] {
        let mut bytes = network.frame(TCP, &Tcp { payload: 0, ..Tcp::usual(1, 2) }.bytes());
        bytes.extend([0; 24]);
        let frame = parse(&bytes).unwrap();
        assert_eq!(frame.transport.payload(), 0);
        assert!(!frame.transport.segment.consumes_sequence_space());
    }
}

#[test]
fn length_zero_means_the_rest_of_the_frame() {
    for network in [Network::v4(), Network::v6()] {
        let network = Network { len: Some(0), ..network };
        let bytes = network.frame(TCP, &Tcp { payload: 70_000, ..Tcp::usual(1, 2) }.bytes());
        assert_eq!(parse(&bytes).unwrap().transport.payload(), 70_000);
    }
}

#[test]
fn payload_length_comes_from_the_header() {
    for network in [Network::v4(), Network::v6()] {
        let bytes = network.frame(TCP, &Tcp { payload: 1000, ..Tcp::usual(1, 2) }.bytes());
        let frame = parse(&bytes[..bytes.len() - 990]).unwrap();
        assert_eq!(frame.transport.payload(), 1000);
    }
}

#[test]
fn first_fragment_is_parsed() {
    let fragments = [Network { fragment: 0x2000, ..Network::v4() }, Network::with_extensions(&[fragment(1)])];
    for network in fragments {
        let frame = parse(&network.frame(TCP, &Tcp::usual(1, 2).bytes())).unwrap();
        assert_eq!(frame.transport.segment.timestamps.tsval, 1);
    }
}

#[test]
fn whole_packet_that_must_not_be_fragmented_is_no_fragment() {
    let network = Network { fragment: 0x4000, ..Network::v4() };
    assert!(parse(&network.frame(TCP, &Tcp::usual(1, 2).bytes())).is_ok());
}

#[test]
fn later_fragment_is_counted_by_its_protocol_and_left_alone() {
    let fragments = [
        (Network { fragment: 0x2001, ..Network::v4() }, Protocol::Tcp),
        (Network { fragment: 0x1fff, ..Network::v4() }, Protocol::Tcp),
        (Network::with_extensions(&[fragment(8 | 1)]), Protocol::Tcp),
        (Network::with_extensions(&[fragment(0xfff8)]), Protocol::Tcp),
        (Network::with_extensions(&[extension(HOP_BY_HOP, 1), fragment(8)]), Protocol::Tcp),
    ];
    for (network, protocol) in fragments {
        let (frame, parsed) = parse_anyway(&network.frame(TCP, &Tcp::usual(1, 2).bytes()));
        assert_eq!(parsed, Err(Untracked::Fragment), "{network:?}");
        assert_eq!(frame.protocol, protocol);
    }
}

#[test]
fn each_extension_header_is_skipped() {
    for number in [HOP_BY_HOP, ROUTING, DESTINATION_OPTIONS] {
        for units in [1, 2, 32, 256] {
            let network = Network::with_extensions(&[extension(number, units)]);
            let frame = parse(&network.frame(TCP, &Tcp::usual(1, 2).bytes())).unwrap();
            assert_eq!(frame.protocol, Protocol::Tcp);
            assert_eq!(frame.transport.segment.timestamps.tsval, 1);
            assert_eq!(frame.transport.payload(), 5);
        }
    }
}

#[test]
fn fragment_header_has_no_length() {
    // The byte that has the length in other headers is reserved here.
    let (number, mut rest) = fragment(0);
    rest[0] = 0xff;
    let network = Network::with_extensions(&[(number, rest)]);
    assert!(parse(&network.frame(TCP, &Tcp::usual(1, 2).bytes())).is_ok());
}

#[test]
fn six_extension_headers_are_followed_and_seven_are_not() {
    let chain: Vec<_> = [HOP_BY_HOP, DESTINATION_OPTIONS, ROUTING, FRAGMENT, ROUTING, DESTINATION_OPTIONS]
        .into_iter()
        .map(|number| if number == FRAGMENT { fragment(0) } else { extension(number, 2) })
        .collect();
    for len in 0..=6 {
        let network = Network::with_extensions(&chain[..len]);
        let frame = parse(&network.frame(TCP, &Tcp::usual(1, 2).bytes())).unwrap();
        assert_eq!(frame.transport.segment.timestamps.tsval, 1);
    }
    let network = Network::with_extensions(&[&chain[..], &[extension(DESTINATION_OPTIONS, 1)]].concat());
    let (frame, parsed) = parse_anyway(&network.frame(TCP, &Tcp::usual(1, 2).bytes()));
    assert_eq!(parsed, Err(Untracked::Unsupported));
    assert_eq!(frame.protocol, Protocol::Other);
}

#[test]
fn longest_chain_in_the_deepest_tags_is_found() {
    let network = Network::with_extensions(&[(); 6].map(|()| extension(DESTINATION_OPTIONS, 256)));
    let packet = network.packet(TCP, &Tcp::usual(1, 2).bytes());
    let bytes = crate::testing::ethernet(&[(crate::testing::VLAN, 1); 4], 0x86dd, &packet);
    assert_eq!(parse(&bytes).unwrap().transport.segment.timestamps.tsval, 1);
}

#[test]
fn payload_ending_in_extension_headers_is_malformed() {
    let network = Network { len: Some(8), ..Network::with_extensions(&[extension(ROUTING, 2)]) };
    assert_eq!(parse_anyway(&network.frame(TCP, &Tcp::usual(1, 2).bytes())).1, Err(Untracked::Malformed));
}

#[test]
fn authentication_header_is_skipped() {
    for words in [1, 4, 255_u8] {
        let mut authenticated = Vec::from([TCP, words]);
        authenticated.resize((usize::from(words) + 2) * 4, 0);
        authenticated.extend(Tcp::usual(6, 7).bytes());
        for network in [Network::v4(), Network::v6(), Network::with_extensions(&[extension(ROUTING, 1)])] {
            let frame = parse(&network.frame(51, &authenticated)).unwrap();
            assert_eq!(frame.transport.segment.timestamps.tsval, 6);
            assert_eq!(frame.transport.payload(), 5);
        }
    }
}

#[test]
fn other_protocols_are_counted_and_unsupported() {
    let cases = [
        (Network::v4(), 17, Protocol::Udp),
        (Network::v6(), 17, Protocol::Udp),
        (Network::v4(), 132, Protocol::Other),
        (Network::v6(), 59, Protocol::Other),
        // Each version has its own ICMP.
        (Network::v4(), ICMPV6, Protocol::Other),
        (Network::v6(), ICMP, Protocol::Other),
        // IPv4 does not know the numbers of IPv6 extension headers.
        (Network::v4(), HOP_BY_HOP, Protocol::Other),
    ];
    for (network, number, protocol) in cases {
        let (frame, parsed) = parse_anyway(&network.frame(number, &[8, 0, 0, 0, 0, 1, 0, 1]));
        assert_eq!(parsed, Err(Untracked::Unsupported), "{number}");
        assert_eq!(frame.protocol, protocol, "{number}");
    }
}

#[test]
fn address_goes_to_bytes_and_back() {
    let bytes = core::array::from_fn(|position| position as u8 + 1);
    assert_eq!(IpAddress::from_bytes(bytes).to_bytes(), bytes);
    let frame = parse(&Network::v4().frame(TCP, &Tcp::usual(1, 2).bytes())).unwrap();
    assert_eq!(frame.source.to_bytes(), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 1]);
    assert_eq!(frame.family, Family::V4);
}

#[test]
fn loopback_is_127_slash_8_and_the_one_of_v6() {
    let mapped =
        |first, last| IpAddress::from_bytes([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, first, 0, 0, last]);
    assert!(mapped(127, 1).is_loopback() && mapped(127, 255).is_loopback());
    assert!(!mapped(126, 1).is_loopback() && !mapped(128, 1).is_loopback());
    assert!(IpAddress([0, 1]).is_loopback());
    assert!(!IpAddress([0, 0]).is_loopback() && !IpAddress([1, 1]).is_loopback());
    // 127.0.0.1 without the prefix of mapped addresses is an ordinary IPv6 address.
    assert!(!IpAddress([0, 0x7f00_0001]).is_loopback());
}

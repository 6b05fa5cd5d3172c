//! Echo requests and replies, and other messages.

use std::vec::Vec;

use crate::{
    method::Methods,
    parse::{Decap, Echo, Kind, LinkType, Protocol, Scope, Untracked, Vlan},
    testing::{ICMP, ICMPV6, Network, TCP, Tcp, echo, parse, parse_anyway, parse_prefix},
};

/// The network, the protocol number, and the types of request and reply of both families.
fn families() -> [(Network, u8, u8, u8, Protocol); 2] {
    [(Network::v4(), ICMP, 8, 0, Protocol::Icmp), (Network::v6(), ICMPV6, 128, 129, Protocol::Icmpv6)]
}

#[test]
fn request_and_reply() {
    for (network, number, request, reply, protocol) in families() {
        for (kind, is_reply) in [(request, false), (reply, true)] {
            let bytes = network.frame(number, &echo(kind, 0, 0x1234, 0xabcd, &[0; 56]));
            let frame = parse(&bytes).unwrap();
            assert_eq!((frame.transport.kind, frame.protocol), (Kind::Echo, protocol));
            let expected = Echo { id: 0x1234, sequence: 0xabcd, is_reply, data: 0, payload: 56 };
            assert_eq!(frame.transport.echo, expected);
            assert_eq!(frame.transport.ports(), (0x1234, 0x1234));
            assert_eq!(frame.transport.payload(), 56);
            let begins = if is_reply { Err(Untracked::NoFlow) } else { Ok(()) };
            assert_eq!(frame.transport.begins_flow(Methods::ALL), begins);
        }
    }
}

#[test]
fn data_tells_echoes_apart_by_its_first_16_bytes() {
    for (network, number, request, reply, _) in families() {
        let data = |kind, data: &[u8]| {
            let bytes = network.frame(number, &echo(kind, 0, 1, 1, data));
            parse(&bytes).unwrap().transport.echo.data
        };
        let sent: Vec<u8> = (1..=56).collect();
        let expected = data(request, &sent);
        assert_eq!((data(reply, &sent), expected >> 15), (expected, 0));
        assert_eq!((data(reply, &sent[..16]), data(reply, &sent[..15]), data(reply, &[])), (expected, 0, 0));
        for changed in 0..16 {
            for bit in 0..8 {
                let mut other = sent.clone();
                other[changed] ^= 1 << bit;
                assert_ne!(data(reply, &other), expected, "byte {changed}, bit {bit}");
            }
        }
    }
}

#[test]
fn a_header_that_claims_more_than_the_frame_has_counts_no_more() {
    for (network, number, request, ..) in families() {
        let network = Network { len: Some(60_000), ..network };
        let bytes = network.frame(number, &echo(request, 0, 1, 7, &[1; 56]));
        assert_eq!(parse(&bytes).unwrap().transport.payload(), 56);
    }
}

#[test]
fn a_capture_without_the_data_has_echoes_all_the_same() {
    for (network, number, request, ..) in families() {
        let bytes = network.frame(number, &echo(request, 0, 1, 7, &[1; 56]));
        let parsed = parse_prefix(&bytes, bytes.len() - 56, LinkType::Ethernet).unwrap().transport.echo;
        assert_eq!((parsed.sequence, parsed.data, parsed.payload), (7, 0, 56));
    }
}

#[test]
fn other_types_and_codes_are_unsupported() {
    for (network, number, request, reply, protocol) in families() {
        for kind in 0..=255 {
            let is_echo = kind == request || kind == reply;
            let (frame, parsed) = parse_anyway(&network.frame(number, &echo(kind, 0, 1, 1, &[])));
            assert_eq!(parsed.is_ok(), is_echo, "{kind}");
            assert_eq!(frame.protocol, protocol);
            let bytes = network.frame(number, &echo(kind, 1, 1, 1, &[]));
            assert_eq!(parse_anyway(&bytes).1, Err(Untracked::Unsupported), "{kind}");
        }
    }
}

#[test]
fn error_that_quotes_an_echo_is_no_reply() {
    for (network, number, request, _, _) in families() {
        let quoted = network.packet(number, &echo(request, 0, 7, 1, &[0; 8]));
        let unreachable = if number == ICMP { 3 } else { 1 };
        for code in 0..4 {
            let bytes = network.frame(number, &echo(unreachable, code, 7, 1, &quoted));
            assert_eq!(parse_anyway(&bytes).1, Err(Untracked::Unsupported));
        }
    }
}

#[test]
fn message_shorter_than_its_header_is_malformed() {
    for (network, number, request, _, _) in families() {
        let short = network.header_len() as u16 % 40 + 7;
        let bytes = Network { len: Some(short), ..network }.frame(number, &echo(request, 0, 7, 1, &[0; 8]));
        assert_eq!(parse_anyway(&bytes).1, Err(Untracked::Malformed));
    }
}

#[test]
fn echo_after_a_segment_has_no_ports_of_it() {
    let mut frame = parse(&Network::v4().frame(TCP, &Tcp::usual(1, 2).bytes())).unwrap();
    let bytes: Vec<u8> = Network::v4().frame(ICMP, &echo(8, 0, 7, 1, &[]));
    let parsed = frame.parse(&bytes[..], LinkType::Ethernet, Vlan::NONE, Decap::NONE, &Scope::ALL);
    assert_eq!(parsed, Ok(()));
    assert_eq!(frame.transport.ports(), (7, 7));
    assert_eq!((frame.transport.number(), frame.transport.payload()), (ICMP, 0));
}

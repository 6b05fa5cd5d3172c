//! Echo requests and replies, and other messages.

use std::vec::Vec;

use crate::{
    parse::{Decap, Echo, Kind, Protocol, Scope, Untracked},
    rtt::Methods,
    testing::{ICMP, ICMPV6, Network, TCP, Tcp, echo, parse, parse_anyway},
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
            let expected = Echo { id: 0x1234, sequence: 0xabcd, is_reply, payload: 56 };
            assert_eq!(frame.transport.echo, expected);
            assert_eq!(frame.transport.ports(), (0x1234, 0x1234));
            assert_eq!(frame.transport.payload(), 56);
            let begins = if is_reply { Err(Untracked::NoFlow) } else { Ok(()) };
            assert_eq!(frame.transport.begins_flow(Methods::ALL), begins);
        }
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
    let parsed = frame.parse(
        &bytes[..],
        crate::parse::LinkType::Ethernet,
        crate::parse::Vlan::NONE,
        Decap::NONE,
        &Scope::ALL,
    );
    assert_eq!(parsed, Ok(()));
    assert_eq!(frame.transport.ports(), (7, 7));
    assert_eq!((frame.transport.number(), frame.transport.payload()), (ICMP, 0));
}

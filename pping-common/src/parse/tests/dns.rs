//! UDP datagrams, and the DNS messages in them.

use std::{vec, vec::Vec};

use crate::{
    bytes::Captured,
    method::{Method, Methods},
    parse::{Decap, Dns, Frame, Kind, LinkType, Protocol, Scope, Untracked, Vlan},
    testing::{Network, TCP, Tcp, parse, parse_anyway},
};

const UDP: u8 = 17;
const DNS: Methods = Methods::NONE.with(Method::Dns);

/// A datagram from one port to another.
fn datagram((source, destination): (u16, u16), payload: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::from(source.to_be_bytes());
    datagram.extend(destination.to_be_bytes());
    datagram.extend((8 + payload.len() as u16).to_be_bytes());
    datagram.extend([0; 2]);
    datagram.extend(payload);
    datagram
}

/// A message with these two bytes of flags, and some bytes of questions.
fn message(id: u16, flags: [u8; 2]) -> Vec<u8> {
    let mut message = Vec::from(id.to_be_bytes());
    message.extend(flags);
    message.extend([0, 1, 0, 0, 0, 0, 0, 0]);
    message.extend([7; 17]);
    message
}

fn parse_in(bytes: &[u8], scope: &Scope) -> (Frame, Result<(), Untracked>) {
    let mut frame = Frame::EMPTY;
    let parsed = frame.parse(bytes, LinkType::Ethernet, Vlan::NONE, Decap::NONE, scope);
    (frame, parsed)
}

/// Parses a message from one port to another, with DNS as the only method.
fn found(ports: (u16, u16), flags: [u8; 2]) -> Result<Dns, Untracked> {
    let bytes = Network::v4().frame(UDP, &datagram(ports, &message(0x1234, flags)));
    let (frame, parsed) = parse_in(&bytes, &Scope::of(DNS));
    parsed.map(|()| frame.transport.datagram.dns)
}

#[test]
fn d1_direction_follows_the_server_port() {
    let query = Dns { id: 0x1234, is_response: false, rcode: 0 };
    let response = Dns { id: 0x1234, is_response: true, rcode: 0 };
    assert_eq!(found((40_000, 53), [0x01, 0]), Ok(query));
    assert_eq!(found((53, 40_000), [0x81, 0x80]), Ok(response));
    assert_eq!(found((53, 40_000), [0x01, 0]), Err(Untracked::Unsupported));
    assert_eq!(found((40_000, 53), [0x81, 0x80]), Err(Untracked::Unsupported));
    // Between two server ports, both are valid.
    assert_eq!(found((53, 53), [0x01, 0]), Ok(query));
    assert_eq!(found((53, 53), [0x81, 0x80]), Ok(response));
}

#[test]
fn d1_other_ports_are_no_dns() {
    for ports in [(40_000, 5_353), (5_353, 5_353), (40_000, 0), (0, 0), (40_000, 13_568)] {
        assert_eq!(found(ports, [0x01, 0]), Err(Untracked::Unsupported), "{ports:?}");
    }
}

#[test]
fn d1_ports_can_be_others() {
    let mut scope = Scope::of(DNS);
    scope.dns_ports = [5_353, 0, 0, 0, 0, 0, 65_535];
    for (ports, is_dns) in [
        ((40_000, 5_353), true),
        ((40_000, 65_535), true),
        ((40_000, 53), false),
        ((40_000, 0), false),
        ((0, 0), false),
    ] {
        let bytes = Network::v6().frame(UDP, &datagram(ports, &message(1, [0x01, 0])));
        let parsed = parse_in(&bytes, &scope).1;
        assert_eq!(parsed, if is_dns { Ok(()) } else { Err(Untracked::Unsupported) }, "{ports:?}");
    }
}

#[test]
fn d1_a_message_has_a_whole_header() {
    for len in 0..20 {
        let payload = vec![0; len];
        let bytes = Network::v4().frame(UDP, &datagram((40_000, 53), &payload));
        let expected = if len < 12 { Err(Untracked::Malformed) } else { Ok(()) };
        assert_eq!(parse_in(&bytes, &Scope::of(DNS)).1, expected, "{len}");
    }
}

#[test]
fn d3_truncated_responses_are_responses() {
    let truncated = Dns { id: 0x1234, is_response: true, rcode: 0 };
    assert_eq!(found((53, 40_000), [0x83, 0x80]), Ok(truncated));
}

#[test]
fn d4_responses_have_an_rcode() {
    for rcode in 0..16 {
        // The neighbouring bits are set.
        let dns = found((53, 40_000), [0xff, 0xf0 | rcode]).unwrap();
        assert_eq!((dns.is_response, dns.rcode), (true, rcode));
    }
}

#[test]
fn datagram_is_parsed_to_what_was_sent() {
    for network in [Network::v4(), Network::v6()] {
        let message = message(7, [0, 0]);
        let frame = parse(&network.frame(UDP, &datagram((40_000, 53), &message))).unwrap();
        assert_eq!((frame.protocol, frame.transport.kind), (Protocol::Udp, Kind::Dns));
        assert_eq!((frame.transport.number(), frame.transport.ports()), (UDP, (40_000, 53)));
        assert_eq!(frame.transport.payload() as usize, message.len());
        assert_eq!(frame.transport.begins_flow(Methods::ALL), Err(Untracked::NoFlow));
    }
}

#[test]
fn padding_of_short_frames_is_no_message() {
    let network = Network::v4();
    let mut bytes = network.frame(UDP, &datagram((40_000, 53), &[0; 11]));
    bytes.extend([0; 20]);
    assert_eq!(parse_anyway(&bytes).1, Err(Untracked::Malformed));
}

#[test]
fn datagram_shorter_than_its_header_is_malformed() {
    for len in 20..28 {
        let network = Network { len: Some(len), ..Network::v4() };
        let bytes = network.frame(UDP, &datagram((40_000, 53), &message(1, [0, 0])));
        assert_eq!(parse_in(&bytes, &Scope::of(DNS)).1, Err(Untracked::Malformed), "{len}");
    }
}

#[test]
fn nothing_of_a_message_is_read_behind_its_first_four_bytes() {
    for network in [Network::v4(), Network::v6()] {
        let bytes = network.frame(UDP, &datagram((40_000, 53), &message(1, [0, 0])));
        let needed = 14 + network.header_len() + 8 + 4;
        for len in 0..bytes.len() {
            let captured = Captured { bytes: &bytes[..len], frame_len: bytes.len() };
            let mut frame = Frame::EMPTY;
            let parsed = frame.parse(&captured, LinkType::Ethernet, Vlan::NONE, Decap::NONE, &Scope::of(DNS));
            assert_eq!(parsed, if len < needed { Err(Untracked::Truncated) } else { Ok(()) }, "{len}");
        }
    }
}

#[test]
fn datagrams_are_left_alone_without_a_method_for_them() {
    let message = message(1, [0, 0]);
    let dns = Network::v4().frame(UDP, &datagram((40_000, 53), &message));
    let tcp = Methods::NONE.with(Method::TcpTs).with(Method::IcmpEcho);
    let (frame, parsed) = parse_in(&dns, &Scope::of(tcp));
    assert_eq!((frame.protocol, parsed), (Protocol::Udp, Err(Untracked::Unsupported)));
    // Not even the UDP header is read.
    assert_eq!(parse_in(&dns[..34], &Scope::of(tcp)).1, Err(Untracked::Unsupported));
    // If DNS is not measured, they are no DNS messages.
    let (frame, _) = parse_in(&dns, &Scope::of(Methods::ALL.without(Method::Dns)));
    assert_ne!(frame.transport.kind, Kind::Dns);
    let segment = Network::v4().frame(TCP, &Tcp::usual(1, 2).bytes());
    assert_eq!(parse_in(&segment, &Scope::of(DNS)).1, Err(Untracked::Unsupported));
}

#[test]
fn message_of_an_earlier_frame_is_not_seen() {
    let response = Network::v4().frame(UDP, &datagram((53, 40_000), &message(0xffff, [0xff, 0xff])));
    let query = Network::v4().frame(UDP, &datagram((40_000, 53), &message(1, [0, 0])));
    let mut frame = parse(&response).unwrap();
    let parsed = frame.parse(&query[..], LinkType::Ethernet, Vlan::NONE, Decap::NONE, &Scope::ALL);
    assert_eq!(parsed, Ok(()));
    assert_eq!(frame.transport.datagram.dns, Dns { id: 1, is_response: false, rcode: 0 });
}

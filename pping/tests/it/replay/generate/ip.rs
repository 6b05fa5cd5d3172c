//! IP headers of many kinds.

use super::{
    Frame, Golden,
    dialogue::{Dialogue, on_ethernet},
    pcap::{self, ETHERNET},
};
use crate::frames::{
    ACK, DESTINATION_OPTIONS, Extension, HOP_BY_HOP, ICMP, ICMPV6, Ip, PSH, ROUTING, SYN, TCP, Tcp,
};

const MORE_FRAGMENTS: u16 = 0x2000;
const DONT_FRAGMENT: u16 = 0x4000;

pub(super) fn captures() -> Vec<Golden> {
    let capture = |name, frames: Vec<Frame>| Golden::new(name, pcap::nanoseconds(ETHERNET, &frames));
    vec![
        capture("ipv4-options.pcap", ipv4_options()),
        capture("ipv6-extensions.pcap", ipv6_extensions()),
        capture("authentication.pcap", authentication()),
        capture("fragments.pcap", fragments()),
        capture("ip-lengths.pcap", lengths()),
        capture("icmp-errors.pcap", errors()),
    ]
}

/// Builds a basic dialogue for each header.
fn basic(headers: impl IntoIterator<Item = Ip>) -> Vec<Frame> {
    (0..).zip(headers).flat_map(|(number, ip)| Dialogue::new(ip, number).basic().on_ethernet()).collect()
}

fn ipv4_options() -> Vec<Frame> {
    let router_alert = vec![148, 4, 0, 0];
    let mut record_route = vec![1, 7, 39, 4];
    record_route.resize(40, 0);
    let headers = [router_alert, vec![1, 1, 1, 0], record_route];
    basic(headers.map(|options| Ip { options, fragment: DONT_FRAGMENT, ..Ip::v4() }))
}

fn ipv6_extensions() -> Vec<Frame> {
    let options = |number, units| {
        let Extension(number, mut rest) = Extension::of(number, units);
        // One padding option fills all bytes behind the length.
        (rest[1], rest[2]) = (1, 8 * units - 4);
        Extension(number, rest)
    };
    // The routing header has an experimental type and no segments left.
    let routing = || Extension(ROUTING, vec![0, 253, 0, 0, 0, 0, 0]);
    let chains = [
        vec![options(HOP_BY_HOP, 1)],
        vec![options(DESTINATION_OPTIONS, 3)],
        vec![routing()],
        vec![Extension::fragment(0, false)],
        vec![
            options(HOP_BY_HOP, 2),
            routing(),
            Extension::fragment(0, false),
            options(DESTINATION_OPTIONS, 1),
        ],
    ];
    let mut frames = basic(chains.map(Ip::with_extensions));
    let ip = Ip::with_extensions([options(DESTINATION_OPTIONS, 1)]);
    frames.extend(Dialogue::new(ip, 10).ping().on_ethernet());
    frames
}

fn authentication() -> Vec<Frame> {
    let of = |ip, number| Dialogue::new(ip, number).with_authentication().basic().on_ethernet();
    [of(Ip::v4(), 0), of(Ip::v6(), 1), of(Ip::with_extensions([Extension::of(HOP_BY_HOP, 1)]), 2)].concat()
}

/// Only first fragments have ports. The bytes of later fragments are no header, even if they look like one that would
/// match.
fn fragments() -> Vec<Frame> {
    let fragment_v4 = |offset, flags| Ip { fragment: flags | offset, ..Ip::v4() };
    let fragment_v6 = |offset, more| Ip::with_extensions([Extension::fragment(offset, more)]);
    [
        dialogue_in_fragments(0, &Ip::v4(), &fragment_v4(0, MORE_FRAGMENTS), &fragment_v4(5, 0)),
        dialogue_in_fragments(1, &Ip::v6(), &fragment_v6(0, true), &fragment_v6(5, false)),
    ]
    .concat()
}

fn dialogue_in_fragments(number: u16, whole: &Ip, first: &Ip, later: &Ip) -> Vec<Frame> {
    let in_header = |ip: &Ip| Dialogue::new(ip.clone(), number);
    let (later_ping, reply) = (in_header(later).request(50, 1), in_header(whole).request(60, 2).reply(70, 1));
    on_ethernet(
        [
            in_header(whole).client_sends(0, SYN, 0, 1000, 0).server_sends(20, SYN | ACK, 0, 5000, 1000),
            in_header(first).client_sends(21, ACK | PSH, 8, 1021, 5000),
            // The bytes of this later fragment look like an acknowledgement of the segment before.
            in_header(later).server_sends(22, ACK, 0, 5001, 1021),
            in_header(later).client_sends(23, ACK | PSH, 8, 1023, 5000),
            in_header(whole).server_sends(42, ACK, 0, 5022, 1021).server_sends(43, ACK, 0, 5023, 1023),
            in_header(first).client_sends(44, ACK | PSH, 8, 1044, 5000),
            in_header(whole).server_sends(64, ACK, 0, 5044, 1044),
            later_ping,
            reply.reply(80, 2),
        ]
        .into_iter()
        .flat_map(Dialogue::packets),
    )
}

/// The IP header says where a packet ends: further bytes in a short frame are padding, not payload.
fn lengths() -> Vec<Frame> {
    let ip = Ip { len: Some(0), ..Ip::v4() };
    // The length is 0, as a host sees it in packets that its network card will split.
    let mut frames = Dialogue::new(ip, 0).basic().on_ethernet();
    let padded = Dialogue::new(Ip::v4(), 1)
        .basic()
        // These pure ACKs are padded. If the padding counted as payload, the second would be an echo of the first.
        .client_sends(60, ACK, 0, 1060, 5022)
        .server_sends(80, ACK, 0, 5080, 1060);
    frames.extend(padded.on_ethernet().into_iter().map(|mut frame| {
        frame.bytes.extend([0; 24]);
        frame.len += 24;
        frame
    }));
    // The length ends within the IP header, then within the TCP header.
    for (number, len) in [(2, 16), (3, 40)] {
        frames.extend(Dialogue::new(Ip { len: Some(len), ..Ip::v4() }, number).basic().on_ethernet());
    }
    frames
}

/// ICMP errors quote the packet that they are about. They neither record nor match.
fn errors() -> Vec<Frame> {
    let mut frames = Vec::new();
    for (number, ip, protocol, kind) in [(0, Ip::v4(), ICMP, 3), (1, Ip::v6(), ICMPV6, 1)] {
        let request = Dialogue::new(ip.clone(), number).request(0, 1).packets();
        let segment = Tcp { flags: SYN, payload: 0, ports: (40_000 + number, 443), ..Tcp::stamped(1000, 0) };
        let quote = |bytes: &[u8]| [&[kind, 1, 0, 0, 0, 0, 0, 0], bytes].concat();
        frames.extend(
            Dialogue::new(ip.clone(), number)
                .request(10, 2)
                .pass(11, false, protocol, &quote(&request[0].bytes))
                .reply(12, 1)
                .reply(13, 2)
                .pass(20, false, protocol, &quote(&ip.packet(TCP, &segment.bytes())))
                .server_sends(21, SYN | ACK, 0, 5000, 1000)
                .on_ethernet(),
        );
    }
    frames
}

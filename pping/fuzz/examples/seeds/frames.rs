//! Frames of every shape that the parser knows, and some that it refuses.

use pping_common::parse::{Decap, LinkType};
use pping_fuzz::parse::HEADER;

use crate::{
    Seed,
    headers::{
        IPV4, IPV6, TCP, UDP, authentication, echo, ethernet, extension, fragment, mpls, pppoe, quic_long,
        snap, stamped_segment, tcp, udp, v4, v6,
    },
};

pub(crate) fn seeds() -> Vec<Seed> {
    let mut seeds = transports();
    seeds.extend(quic());
    seeds.extend(networks());
    seeds.extend(links());
    seeds.extend(tunnels());
    seeds
}

fn seed(name: &str, link: LinkType, decap: Decap, frame: &[u8]) -> Seed {
    let mut input = vec![link as u8, decap.0 as u8, 0, 0, 0, 0, 0];
    assert_eq!(input.len(), HEADER);
    input.extend(frame);
    (name.to_owned(), input)
}

fn on_ethernet(name: &str, frame: &[u8]) -> Seed {
    seed(name, LinkType::Ethernet, Decap::NONE, frame)
}

fn packet(name: &str, packet: &[u8]) -> Seed {
    seed(name, LinkType::Ip, Decap::NONE, packet)
}

fn stamped_v4() -> Vec<u8> {
    v4(&[], TCP, &stamped_segment())
}

fn stamped_v6() -> Vec<u8> {
    v6(TCP, &stamped_segment())
}

fn transports() -> Vec<Seed> {
    let syn = b"\x02\x04\x05\xb4\x04\x02\x08\x0a\0\0\x10\0\0\0\0\0\x01\x03\x03\x07";
    let sack = b"\x01\x01\x08\x0a\0\0\x10\0\0\0\x20\0\x01\x01\x05\x0a\0\0\0\x01\0\0\0\x09";
    let last =
        b"\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\
                 \x01\x01\x01\x01\x01\x01\x08\x0a\0\0\x10\0\0\0\x20\0";
    [
        ("tcp-syn", TCP, tcp(0x02, syn)),
        ("tcp-sack", TCP, tcp(0x10, sack)),
        ("tcp-timestamps-last", TCP, tcp(0x10, last)),
        ("tcp-no-options", TCP, tcp(0x11, &[])),
        ("tcp-bad-option", TCP, tcp(0x10, b"\x02\x01\x08\x0a\0\0\x10\0\0\0\x20\0")),
        ("tcp-end-of-options", TCP, tcp(0x14, b"\x01\0\x08\x0a\0\0\x10\0\0\0\x20\0")),
        ("icmp-request", 1, echo(8)),
        ("icmp-reply", 1, echo(0)),
        ("icmp-error", 1, [&[3, 1, 0, 0, 0, 0, 0, 0][..], &stamped_v4()].concat()),
        ("udp", UDP, udp(53, b"query")),
        ("dns-query", UDP, udp(53, b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\0\0\x02\0\x01")),
        ("dns-stray", UDP, udp(53, b"\x12\x34\x81\x83\0\x01\0\0\0\0\0\0\0\0\x02\0\x01")),
    ]
    .map(|(name, protocol, transport)| packet(name, &v4(&[], protocol, &transport)))
    .to_vec()
}

fn quic() -> Vec<Seed> {
    let ids: [&[u8]; 2] = [b"client's", b"id"];
    [
        ("quic-short", vec![0x60; 40]),
        ("quic-short-greased", vec![0x20; 40]),
        ("quic-initial", quic_long(0xc0, 1, ids, 1200)),
        ("quic-initial-greased", quic_long(0x80, 1, ids, 1200)),
        ("quic-initial-small", quic_long(0xc0, 1, ids, 1199)),
        ("quic-initial-short-id", quic_long(0xc0, 1, [b"seven by", b""], 1252)),
        ("quic-2", quic_long(0xd0, 0x6b33_43cf, ids, 1200)),
        ("quic-unknown", quic_long(0xc0, 0xfaca_b001, ids, 1200)),
        ("quic-negotiation", quic_long(0x80, 0, [b"", b"server"], 60)),
        ("quic-handshake", quic_long(0xe0, 1, [b"", b"server"], 200)),
        ("quic-retry", quic_long(0xf0, 1, [b"", b"server"], 100)),
        ("quic-draft-18", [&b"\xc0\xff\0\0\x12\x50client'ss"[..], &[0x55; 1200]].concat()),
        ("rpc", [&b"\xd6\x1a\x2a\x3a\0\0\0\x01"[..], &[0; 1200]].concat()),
    ]
    .map(|(name, payload)| packet(name, &v4(&[], UDP, &udp(443, &payload))))
    .to_vec()
}

fn networks() -> Vec<Seed> {
    let mut later = stamped_v4();
    later[7] = 1;
    let mut big = stamped_v4();
    big[2..4].fill(0);
    let mut jumbo = stamped_v6();
    jumbo[4..6].fill(0);
    let chain = extension(43, 1, &extension(60, 2, &extension(TCP, 1, &stamped_segment())));
    let mut seeds = vec![
        packet("v4-options", &v4(&[1; 40], TCP, &stamped_segment())),
        packet("v4-later-fragment", &later),
        packet("v4-authentication", &v4(&[], 51, &authentication(TCP, &stamped_segment()))),
        packet("v4-big", &big),
        packet("v6", &stamped_v6()),
        packet("v6-echo", &v6(58, &echo(128))),
        packet("v6-reply", &v6(58, &echo(129))),
        packet("v6-jumbo", &jumbo),
        packet("v6-extensions", &v6(0, &chain)),
        packet("v6-authentication", &v6(51, &authentication(TCP, &stamped_segment()))),
        packet("v6-first-fragment", &v6(44, &fragment(TCP, 0, &stamped_segment()))),
        packet("v6-later-fragment", &v6(44, &fragment(TCP, 185, &stamped_segment()))),
    ];
    for (name, missing) in [("v4-big-cut", 0x0002_0000_u32), ("v4-big-cut-most", u32::MAX)] {
        let (_, mut input) = packet(name, &big);
        input[3..HEADER].copy_from_slice(&missing.to_be_bytes());
        seeds.push((name.to_owned(), input));
    }
    // The capture ends behind the timestamps, before the SACK option.
    let sack = tcp(0x10, b"\x01\x01\x08\x0a\0\0\x10\0\0\0\x20\0\x01\x01\x05\x0a\0\0\0\x01\0\0\0\x09");
    let (name, mut input) = packet("v4-cut-behind-timestamps", &v4(&[], TCP, &sack));
    input.truncate(HEADER + 20 + 20 + 12);
    input[HEADER - 1] = 12;
    seeds.push((name, input));
    seeds
}

fn links() -> Vec<Seed> {
    let (v4, v6) = (stamped_v4(), stamped_v6());
    let tags = [(0x88a8, 100), (0x8100, 0xe0c8), (0x9100, 3), (0x8100, 4), (0x8100, 5)];
    let cooked = |kind| [&[0, kind, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0][..], &v4].concat();
    let cooked_v2 =
        |kind| [&[0x86, 0xdd, 0, 0, 0, 0, 0, 3, 0, 1, kind, 6, 2, 0, 0, 0, 0, 1, 0, 0][..], &v6].concat();
    let mut pseudowire = ethernet(&[], IPV4, &v4);
    pseudowire[..6].copy_from_slice(&[0x60, 0, 0, 0, 0, 40]);
    let mut seeds = vec![
        on_ethernet("ethernet-pppoe", &ethernet(&tags[..2], 0x8864, &pppoe(0x21, &v4))),
        on_ethernet("ethernet-pppoe-v6", &ethernet(&[], 0x8864, &pppoe(0x57, &v6))),
        on_ethernet("ethernet-pppoe-mpls", &ethernet(&[], 0x8864, &pppoe(0x0281, &mpls(1, &v4)))),
        on_ethernet(
            "ethernet-pppoe-short",
            &ethernet(&[], 0x8864, &[&[0x11, 0, 0, 1, 0, 9, 0x57], &v6[..]].concat()),
        ),
        on_ethernet("ethernet-snap", &ethernet(&tags[..1], 60, &snap(IPV4, &v4))),
        on_ethernet("ethernet-tag-9200", &ethernet(&[(0x9200, 6), (0x8100, 7)], IPV6, &v6)),
        on_ethernet("ethernet-in-labels", &ethernet(&[], 0x8847, &mpls(2, &pseudowire))),
        on_ethernet("ethernet-arp", &ethernet(&[], 0x0806, &[0; 28])),
    ];
    seeds.extend(
        (0..=5).map(|depth| {
            on_ethernet(&format!("ethernet-{depth}-tags"), &ethernet(&tags[..depth], IPV4, &v4))
        }),
    );
    seeds.extend([1, 4, 5].map(|labels| {
        on_ethernet(&format!("ethernet-{labels}-labels"), &ethernet(&[], 0x8847, &mpls(labels, &v6)))
    }));
    let (name, mut offloaded) = on_ethernet("ethernet-offloaded-tags", &ethernet(&tags[..2], IPV6, &v6));
    offloaded[2] = 3;
    seeds.push((name, offloaded));
    let others: [(&str, LinkType, &[u8], &[u8]); 10] = [
        ("cooked-in", LinkType::Cooked, &[], &cooked(0)),
        ("cooked-out", LinkType::Cooked, &[], &cooked(4)),
        ("cooked-v2-in", LinkType::CookedV2, &[], &cooked_v2(0)),
        ("cooked-v2-out", LinkType::CookedV2, &[], &cooked_v2(4)),
        ("loopback", LinkType::Loopback, &[2, 0, 0, 0], &v4),
        ("loopback-openbsd", LinkType::Loopback, &[0, 0, 0, 24], &v6),
        ("ppp", LinkType::Ppp, &[0xff, 0x03, 0, 0x21], &v4),
        ("ppp-no-address", LinkType::Ppp, &[0, 0x57], &v6),
        ("ppp-short", LinkType::Ppp, &[0x21], &v4),
        ("ppp-mpls", LinkType::Ppp, &[0xff, 0x03, 0x02, 0x81], &mpls(2, &v4)),
    ];
    seeds.extend(
        others.map(|(name, link, start, rest)| seed(name, link, Decap::NONE, &[start, rest].concat())),
    );
    seeds
}

fn tunnels() -> Vec<Seed> {
    let (inner_v4, inner_v6) = (stamped_v4(), stamped_v6());
    let gre = |header: &[u8], inside: &[u8]| v4(&[], 47, &[header, inside].concat());
    let gtp = |header: &[u8], inside: &[u8]| v4(&[], UDP, &udp(2152, &[header, inside].concat()));
    let frame = ethernet(&[(0x8100, 7)], IPV4, &inner_v4);
    let vxlan = [&[8, 0, 0, 0, 0, 0, 42, 0][..], &frame].concat();
    let geneve = [&[0x02, 0, 0x65, 0x58, 0, 0, 42, 0][..], &[0; 8], &frame].concat();
    let erspan_2 = [0x10, 0x07, 0x04, 0x05, 0, 0, 0, 3];
    let erspan_3 = |kind: u8, last: u8| [0x20, 0x07, 0, 5, 0, 0, 0, 1, 0, 2, 0x80 | kind << 2, last];
    let tzsp = |fields: &[u8]| v4(&[], UDP, &udp(37008, &[&[1, 0, 0, 1][..], fields, &frame].concat()));
    let extended = b"\x34\xff\0\0\0\0\0\x01\0\0\0\x85\x01\0\x09\xc0\x01\0\x09\0";
    let all: [(&str, Vec<u8>); 26] = [
        ("ipip", v4(&[], 4, &inner_v4)),
        ("6in4", v4(&[], 41, &inner_v6)),
        ("4in6", v6(4, &inner_v4)),
        ("gre", gre(&[0, 0, 8, 0], &inner_v4)),
        ("gre-all", gre(&[&[0xb0, 0, 0x86, 0xdd][..], &[0; 12]].concat(), &inner_v6)),
        ("gre-ethernet", gre(&[0x20, 0, 0x65, 0x58, 0, 0, 0, 1], &frame)),
        ("gre-mpls", gre(&[0, 0, 0x88, 0x47], &mpls(1, &inner_v4))),
        ("gre-pptp", gre(&[0x30, 1, 0x88, 0x0b], &[0; 12])),
        ("vxlan", v4(&[], UDP, &udp(4789, &vxlan))),
        ("vxlan-linux", v6(UDP, &udp(8472, &vxlan))),
        ("geneve", v4(&[], UDP, &udp(6081, &geneve))),
        ("gtp-u", gtp(&[0x30, 0xff, 0, 0, 0, 0, 0, 1], &inner_v4)),
        ("gtp-u-sequence", gtp(&[0x32, 0xff, 0, 0, 0, 0, 0, 1, 0, 5, 0, 0x85], &inner_v6)),
        ("gtp-u-extensions", gtp(extended, &inner_v4)),
        ("erspan-1", gre(&[0, 0, 0x88, 0xbe], &frame)),
        ("erspan-2", gre(&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1], &[&erspan_2[..], &frame].concat())),
        ("erspan-3", gre(&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1], &[&erspan_3(0, 0)[..], &frame].concat())),
        ("erspan-3-ip", gre(&[0, 0, 0x22, 0xeb], &[&erspan_3(2, 0)[..], &inner_v6].concat())),
        ("erspan-3-subheader", gre(&[0, 0, 0x22, 0xeb], &[&erspan_3(0, 1)[..], &[0x0c; 8], &frame].concat())),
        ("tzsp", tzsp(&[1])),
        ("tzsp-fields", tzsp(b"\0\x0a\x01\xc8\0\x29\x02\x01\x40\x01")),
        ("tzsp-many-fields", tzsp(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 1])),
        ("nested-erspan", v4(&[], 4, &gre(&[0, 0, 0x88, 0xbe], &frame))),
        ("nested-ipip", v4(&[], 4, &v4(&[], 4, &inner_v4))),
        ("nested-vxlan", v4(&[], 41, &v6(UDP, &udp(4789, &vxlan)))),
        ("deepest", deepest()),
    ];
    all.iter()
        .map(|(name, packet)| seed(&format!("tunnel-{name}"), LinkType::Ip, Decap::ALL, packet))
        .collect()
}

/// Builds a transport header as deep in a frame as possible: both IP headers and the GTP-U header have their greatest
/// length.
fn deepest() -> Vec<u8> {
    let with_extensions = |next, payload: &[u8]| {
        let chain =
            (0..6).fold((next, payload.to_vec()), |(next, rest), _| (60, extension(next, 256, &rest)));
        v6(chain.0, &chain.1)
    };
    let mut gtp = b"\x34\xff\0\0\0\0\0\x01\0\0\0\x85".to_vec();
    for next in [0x85, 0x85, 0x85, 0] {
        gtp.push(255);
        gtp.resize(gtp.len() + 4 * 255 - 2, 0);
        gtp.push(next);
    }
    gtp.extend(with_extensions(TCP, &stamped_segment()));
    with_extensions(UDP, &udp(2152, &gtp))
}

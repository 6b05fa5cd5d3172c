//! Frames cut short at every length.

use std::{string::String, vec, vec::Vec};

use crate::{
    parse::{Decap, Frame, LinkType, Scope, Untracked, Vlan},
    testing::{
        ICMP, ICMPV6, Network, SERVICE_VLAN, TCP, Tcp, VLAN, echo, ethernet, extension, parse_on,
        parse_prefix,
    },
};

/// A whole frame, and the number of bytes that are needed to find its flow.
struct Case {
    name: String,
    link: LinkType,
    bytes: Vec<u8>,
    needed: usize,
}

/// Transport headers: protocol number, bytes, and the number of bytes that are needed.
fn transports(is_v4: bool) -> Vec<(&'static str, u8, Vec<u8>, usize)> {
    let syn = [&[2, 4, 5, 0xb4, 4, 2][..], &Tcp::timestamps(1, 0), &[1, 3, 3, 7]].concat();
    let (number, request) = if is_v4 { (ICMP, 8) } else { (ICMPV6, 128) };
    vec![
        ("no options", TCP, Tcp::with_options(&[]).bytes(), 20),
        ("usual", TCP, Tcp::usual(1, 2).bytes(), 32),
        ("syn", TCP, Tcp::with_options(&syn).bytes(), 36),
        ("last", TCP, Tcp::with_options(&[&[1; 30][..], &Tcp::timestamps(1, 2)].concat()).bytes(), 60),
        // Options are read word by word.
        ("first", TCP, Tcp::with_options(&[&Tcp::timestamps(1, 2)[..], &[0; 2]].concat()).bytes(), 32),
        // The end of options is read together with the next byte.
        ("end", TCP, Tcp::with_options(&[1, 1, 0, 0]).bytes(), 24),
        ("echo", number, echo(request, 0, 1, 2, &[9; 16]), 8),
    ]
}

fn cases() -> Vec<Case> {
    let networks = [
        ("v4", Network::v4()),
        ("v4 options", Network { options: vec![1; 40], ..Network::v4() }),
        ("v6", Network::v6()),
        ("v6 extensions", Network::with_extensions(&[extension(0, 1), extension(43, 3), extension(44, 1)])),
    ];
    let tags = [(SERVICE_VLAN, 1), (VLAN, 2), (VLAN, 3), (VLAN, 4)];
    let mut cases = Vec::new();
    for (network_name, network) in networks {
        for (name, number, transport, needed) in transports(network_name.starts_with("v4")) {
            let packet = network.packet(number, &transport);
            let needed = network.header_len() + needed;
            cases.push(Case {
                name: std::format!("{network_name}, {name}, without link header"),
                link: LinkType::Ip,
                bytes: packet.clone(),
                needed,
            });
            cases.extend((0..=4).map(|depth| Case {
                name: std::format!("{network_name}, {name}, {depth} tags"),
                link: LinkType::Ethernet,
                bytes: ethernet(&tags[..depth], network.ethertype(), &packet),
                needed: 14 + 4 * depth + needed,
            }));
        }
    }
    cases
}

#[test]
fn only_prefixes_within_the_header_are_truncated() {
    for Case { name, link, bytes, needed } in cases() {
        let whole = parse_on(&bytes, link).unwrap();
        for len in 0..bytes.len() {
            match parse_prefix(&bytes, len, link) {
                Ok(mut frame) => {
                    // Options after the timestamps may be cut off, and the data of echoes.
                    let (segment, original) = (&mut frame.transport.segment, &whole.transport.segment);
                    (segment.options, segment.window_scale) = (original.options, original.window_scale);
                    frame.transport.echo.data = whole.transport.echo.data;
                    assert!(len >= needed, "{name}: {len} bytes are not enough");
                    assert_eq!(frame.transport, whole.transport, "{name}: {len} bytes");
                    assert_eq!(frame.vlan, whole.vlan, "{name}: {len} bytes");
                }
                Err(reason) => {
                    assert!(len < needed, "{name}: {len} bytes are enough, but {reason:?}");
                    assert_eq!(reason, Untracked::Truncated, "{name}: {len} bytes");
                }
            }
        }
    }
}

#[test]
fn offloaded_tag_stays_outermost_however_short_the_frame_is() {
    let mut offloaded = Vlan::NONE;
    offloaded.push(99);
    let packet = Network::v4().packet(TCP, &Tcp::usual(1, 2).bytes());
    let bytes = ethernet(&[(VLAN, 2), (VLAN, 3)], Network::v4().ethertype(), &packet);
    for len in 0..=bytes.len() {
        let mut frame = Frame::EMPTY;
        let parsed = frame.parse(&bytes[..len], LinkType::Ethernet, offloaded, Decap::NONE, &Scope::ALL);
        let tags: Vec<u16> = frame.vlan.identifiers().collect();
        assert!([99, 2, 3].starts_with(&tags) && !tags.is_empty(), "{tags:?}");
        assert!(parsed.is_err() || tags.len() == 3);
    }
}

//! QUIC packets, and datagrams that look like some.

use pping_common::{
    method::Method,
    parse::{Decap, LinkType, Untracked},
};

use super::{
    super::{
        frames::{Ip, UDP, quic_long, udp_to, v4, v6},
        rig::{Program, Rig, samples},
    },
    DECAP_ALL, Treatment, treatment,
};

const CLIENT: &[u8] = b"client's";
const SERVER: &[u8] = b"server's";
const VERSION_2: u32 = 0x6b33_43cf;
const UNKNOWN: u32 = 0xfaca_b001;
const UNSUPPORTED: Treatment = Treatment::Untracked(Untracked::Unsupported);
const NO_FLOW: Treatment = Treatment::Untracked(Untracked::NoFlow);

/// The packets of both families that go to the server, and those that come from it.
fn datagrams(payload: &[u8]) -> [[Vec<u8>; 2]; 2] {
    let there = udp_to(443, payload);
    let mut back = there.clone();
    let (source, destination) = back[..4].split_at_mut(2);
    source.swap_with_slice(destination);
    [[v4(1), v4(2)], [v6(1), v6(2)]].map(|[client, server]| {
        [Ip::between(client, server).frame(UDP, &there), Ip::between(server, client).frame(UDP, &back)]
    })
}

/// Payloads, and what becomes of them as the first packet.
fn payloads() -> Vec<(&'static str, Vec<u8>, Treatment)> {
    let remote_call = [&[0xd6, 0x1a, 0x2a, 0x3a, 0, 0, 0, 1][..], &[0; 1300]].concat();
    let version_1 = [&[0xc0, 0, 0, 0, 1][..], &[0; 1300]].concat();
    vec![
        ("a short header", vec![0x60; 40], NO_FLOW),
        ("a short header without its fixed bit", vec![0x20; 40], UNSUPPORTED),
        ("the reply of a remote call", remote_call, UNSUPPORTED),
        ("version 1 with empty IDs", version_1, NO_FLOW),
        ("a first Initial that is too short", quic_long(0xc0, 1, [b"8 bytes.", CLIENT], 1199), NO_FLOW),
        ("a first ID that is too short", quic_long(0xc0, 1, [b"7 bytes", CLIENT], 1200), NO_FLOW),
        ("an Initial without its fixed bit", quic_long(0x80, 1, [b"8 bytes.", CLIENT], 1200), UNSUPPORTED),
        ("a Handshake packet", quic_long(0xe0, 1, [b"8 bytes.", CLIENT], 1200), NO_FLOW),
        ("a Retry of version 2", quic_long(0xc0, VERSION_2, [b"8 bytes.", CLIENT], 1200), NO_FLOW),
        ("version negotiation", quic_long(0x80, 0, [b"8 bytes.", CLIENT], 1203), NO_FLOW),
        ("version negotiation with one version", quic_long(0x80, 0, [CLIENT, b"8 bytes."], 27), NO_FLOW),
        ("the same for an empty ID", quic_long(0x80, 0, [b"", b"8 bytes."], 19), NO_FLOW),
        (
            "version negotiation with a part of a version",
            quic_long(0x80, 0, [CLIENT, CLIENT], 29),
            UNSUPPORTED,
        ),
        ("an unknown version in short", quic_long(0xc0, UNKNOWN, [b"8 bytes.", CLIENT], 1199), UNSUPPORTED),
        ("an unknown version", quic_long(0xc0, UNKNOWN, [b"8 bytes.", CLIENT], 1200), Treatment::Quic),
        ("version 2", quic_long(0xd0, VERSION_2, [b"8 bytes.", CLIENT], 1200), Treatment::Quic),
        ("version 1", quic_long(0xc0, 1, [b"8 bytes.", CLIENT], 1200), Treatment::Quic),
    ]
}

#[test]
fn only_first_initials_begin_a_flow() {
    let mut rig = Rig::new();
    for (name, payload, expected) in payloads() {
        for [there, _] in datagrams(&payload) {
            assert_eq!(treatment(&there, Decap::NONE), expected, "{name}");
            for program in Program::ALL {
                rig.start_over();
                rig.send(program, &there);
                rig.agree(&format!("{name} at {program:?}"));
            }
        }
    }
}

#[test]
fn quic_packets_cut_off_in_their_headers_count_as_in_user_space() {
    const LONGEST_HEADERS: usize = 14 + 40 + 8 + 60;
    let mut rig = Rig::with(DECAP_ALL, LinkType::Ethernet);
    for (name, payload, _) in payloads() {
        for [there, _] in datagrams(&payload) {
            for len in 14..there.len().min(LONGEST_HEADERS) {
                for program in Program::ALL {
                    rig.send(program, &there[..len]);
                    rig.agree(&format!("{name} at {program:?}, {len} bytes of it"));
                }
            }
        }
    }
}

#[test]
fn version_negotiation_answers_the_first_initial() {
    let mut rig = Rig::new();
    for (client, len) in [(CLIENT, 27), (b"", 19)] {
        let packets = [
            (0, quic_long(0xc0, 0x1a2a_3a4a, [b"8 bytes.", client], 1200)),
            (1, quic_long(0x80, 0, [client, b"8 bytes."], len)),
        ];
        rig.start_over();
        for family in 0..2 {
            for (from, payload) in &packets {
                rig.send([Program::Egress, Program::Xdp][*from], &datagrams(payload)[family][*from]);
            }
        }
        let events = rig.agree(&format!("{len} bytes"));
        let methods: Vec<u8> = samples(&events).iter().map(|sample| sample.method).collect();
        assert_eq!(methods, [Method::QuicHandshake as u8; 2], "{len} bytes");
    }
}

#[test]
fn connection_with_cleared_fixed_bits_is_matched() {
    let mut rig = Rig::new();
    for (version, initial) in [(1, 0xc0), (VERSION_2, 0xd0)] {
        for greased in [0, 0x40] {
            let packets = [
                (0, quic_long(initial, version, [b"8 bytes.", CLIENT], 1200)),
                (1, quic_long(initial ^ greased, version, [CLIENT, SERVER], 1200)),
                (0, quic_long(0xe0 ^ greased, version, [SERVER, CLIENT], 80)),
                (0, vec![0x40 ^ greased; 40]),
                (1, vec![0x40 ^ greased; 40]),
                (0, vec![0x60 ^ greased; 40]),
                (1, vec![0x60 ^ greased; 40]),
            ];
            rig.start_over();
            for family in 0..2 {
                for (from, payload) in &packets {
                    let frame = &datagrams(payload)[family][*from];
                    rig.send([Program::Egress, Program::Xdp][*from], frame);
                }
            }
            let events = rig.agree(&format!("version {version:x}, greased by {greased:#x}"));
            let methods: Vec<u8> = samples(&events).iter().map(|sample| sample.method).collect();
            assert_eq!(methods, [Method::QuicHandshake as u8; 2], "{version:x}, {greased:#x}");
            assert_eq!(rig.twin.counters.untracked, [0; Untracked::COUNT]);
            assert_eq!(rig.twin.counters.entries_made, [1; 2]);
        }
    }
}

//! Copies of packets that switches and routers send: ERSPAN and TZSP.

use std::vec::Vec;

use super::tunnel::{GRE, RECEIVED, UDP, erspan, gre, parse, tunnels, tzsp};
use crate::{
    bytes::Captured,
    parse::{Decap, Frame, LinkType, Scope, Untracked, Vlan},
    testing::{ETHERTYPE_IPV4, Network, TCP, Tcp, ethernet},
};

/// The offset of what follows the outer IP header.
const OUTER: usize = 14 + 20;

fn packet() -> Vec<u8> {
    Network::v4().packet(TCP, &Tcp::usual(10, 20).bytes())
}

fn inner_frame() -> Vec<u8> {
    ethernet(&[], ETHERTYPE_IPV4, &packet())
}

/// Parses the packet with this protocol number and content.
fn parsed(number: u8, content: &[u8]) -> Result<u32, Untracked> {
    let (frame, parsed) = parse(&Network::v4().frame(number, content), Decap::ALL);
    parsed.map(|()| frame.transport.segment.timestamps.tsval)
}

#[test]
fn copies_cut_anywhere_are_truncated() {
    // The IP header and the TCP header with its timestamps.
    const NEEDED: usize = 14 + 20 + 32;
    for tunnel in tunnels(&Network::v4(), &packet()) {
        if !Decap::ERSPAN.with(Decap::TZSP).has(tunnel.kind) || tunnel.bytes[14] >> 4 != 4 {
            continue;
        }
        let header = tunnel.bytes.len() - inner_frame().len();
        for len in OUTER..=tunnel.bytes.len() {
            let expected = if len < header + NEEDED { Err(Untracked::Truncated) } else { Ok(()) };
            assert_eq!(parse(&tunnel.bytes[..len], tunnel.kind).1, expected, "{:?}, {len}", tunnel.kind);
        }
    }
}

#[test]
fn erspan_must_have_the_version_of_its_type() {
    for version in 0..16 {
        let mut header = erspan(1);
        header[8] = version << 4;
        let expected = if version == 1 { Ok(10) } else { Err(Untracked::Unsupported) };
        assert_eq!(parsed(GRE, &[header, inner_frame()].concat()), expected, "II, {version}");
        let mut header = erspan(2);
        header[8] = version << 4;
        let expected = if version == 2 { Ok(10) } else { Err(Untracked::Unsupported) };
        assert_eq!(parsed(GRE, &[header, inner_frame()].concat()), expected, "III, {version}");
    }
}

#[test]
fn the_sequence_number_tells_type_ii_from_type_i() {
    for (flags, words) in [(0, 0), (0x8000, 1), (0x2000, 1), (0xa000, 2)] {
        assert_eq!(parsed(GRE, &gre(flags, 0x88be, words, &inner_frame())), Ok(10), "{flags:#x}");
        let with_header = [&erspan(1)[8..], &inner_frame()].concat();
        let bytes = gre(flags | 0x1000, 0x88be, words + 1, &with_header);
        assert_eq!(parsed(GRE, &bytes), Ok(10), "{flags:#x}");
    }
    for flags in [0x4000, 1, 7] {
        assert_eq!(parsed(GRE, &gre(flags, 0x88be, 0, &inner_frame())), Err(Untracked::Unsupported));
    }
}

#[test]
fn erspan_iii_carries_ethernet_or_ip() {
    for frame_type in 0..32 {
        for (last, subheader) in [(0, 0), (1, 8), (0xfe, 0), (0xff, 8)] {
            let mut header = erspan(2);
            // The first bit says whether the frame is Ethernet; the type says so too. Two others are of the hardware's number.
            header[18] = frame_type << 2 | 0x03;
            header[19] = last;
            header.resize(header.len() + subheader, 0x0c);
            let inside = if frame_type == 2 { packet() } else { inner_frame() };
            let expected = if matches!(frame_type, 0 | 2) { Ok(10) } else { Err(Untracked::Unsupported) };
            let found = parsed(GRE, &[header, inside].concat());
            assert_eq!(found, expected, "{frame_type}, {last:#x}");
        }
    }
}

#[test]
fn lengths_of_a_copy_that_its_router_cut_are_those_of_its_ip_header() {
    let tcp = Tcp { payload: 1000, ..Tcp::usual(10, 20) };
    let whole = ethernet(&[], ETHERTYPE_IPV4, &Network::v4().packet(TCP, &tcp.bytes()));
    let mut header = erspan(1);
    // The truncated bit.
    header[10] |= 0x04;
    let (frame, parsed) = parse(&Network::v4().frame(GRE, &[&header, &whole[..96]].concat()), Decap::ERSPAN);
    assert_eq!(parsed, Ok(()));
    assert_eq!(frame.transport.payload(), 1000);
    // The same of a copy that was captured in part.
    let bytes = Network::v4().frame(GRE, &[&header, &whole[..]].concat());
    let captured = Captured { bytes: &bytes[..150], frame_len: bytes.len() };
    let mut frame = Frame::EMPTY;
    let parsed = frame.parse(&captured, LinkType::Ethernet, Vlan::NONE, Decap::ERSPAN, &Scope::ALL);
    assert_eq!((parsed, frame.transport.payload()), (Ok(()), 1000));
}

#[test]
fn tzsp_must_carry_a_received_ethernet_frame() {
    for (start, is_entered) in [
        (RECEIVED, true),
        ([0, 0, 0, 1], false),
        ([2, 0, 0, 1], false),
        ([1, 1, 0, 1], false),
        ([1, 4, 0, 1], false),
        ([1, 0, 0, 0], false),
        ([1, 0, 0, 18], false),
        ([1, 0, 1, 1], false),
    ] {
        let expected = if is_entered { Ok(10) } else { Err(Untracked::Unsupported) };
        assert_eq!(parsed(UDP, &tzsp(start, &[1], &inner_frame())), expected, "{start:?}");
    }
}

#[test]
fn eight_fields_of_tzsp_are_skipped_and_not_a_ninth() {
    let longest = [&[60, 255][..], &[1; 255]].concat();
    for field in [&[0][..], &[10, 0], &[2, 1, 1], &longest] {
        for count in 0..=8 {
            let fields = [&field.repeat(count)[..], &[1]].concat();
            assert_eq!(parsed(UDP, &tzsp(RECEIVED, &fields, &inner_frame())), Ok(10), "{count}");
        }
        let fields = [&field.repeat(9)[..], &[1]].concat();
        let found = parsed(UDP, &tzsp(RECEIVED, &fields, &inner_frame()));
        assert_eq!(found, Err(Untracked::Unsupported));
    }
    // Fields that nothing ends.
    assert_eq!(parsed(UDP, &tzsp(RECEIVED, &[0; 3], &[])), Err(Untracked::Truncated));
    assert_eq!(parsed(UDP, &tzsp(RECEIVED, &[10, 255, 1], &[])), Err(Untracked::Truncated));
}

#[test]
fn erspan_is_no_gre_and_gre_no_erspan() {
    let erspan = Network::v4().frame(GRE, &[erspan(1), inner_frame()].concat());
    let gre = Network::v4().frame(GRE, &gre(0, ETHERTYPE_IPV4, 0, &packet()));
    assert_eq!(parse(&erspan, Decap::GRE).1, Err(Untracked::Unsupported));
    assert_eq!(parse(&gre, Decap::ERSPAN).1, Err(Untracked::Unsupported));
    for (bytes, kind) in [(&erspan, Decap::ERSPAN), (&gre, Decap::GRE)] {
        let (frame, _) = parse(bytes, Decap::NONE);
        assert_eq!(frame.unopened_tunnel(bytes, Decap::NONE), Some(kind));
        assert_eq!(frame.unopened_tunnel(bytes, kind), None);
    }
}

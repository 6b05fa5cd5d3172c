//! QUIC packets: their headers, and what is no QUIC.

use std::{vec, vec::Vec};

use proptest::{collection::vec, prelude::*};

use crate::{
    bytes::Captured,
    method::{Method, Methods},
    parse::{Decap, Frame, Kind, LinkType, Quic, QuicForm, Scope, Untracked, Vlan},
    testing::{Network, parse},
};

const UDP: u8 = 17;
const INITIAL: u8 = 0xc0;
const V2: u32 = 0x6b33_43cf;
const DRAFT_18: u32 = 0xff00_0012;
const UNKNOWN: u32 = 0xf0f0_f1f2;

fn frame(payload: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0xc0, 1, 0x01, 0xbb];
    datagram.extend((8 + payload.len() as u16).to_be_bytes());
    datagram.extend([0; 2]);
    datagram.extend(payload);
    Network::v6().frame(UDP, &datagram)
}

fn found(payload: &[u8]) -> Result<Quic, Untracked> {
    let transport = parse(&frame(payload))?.transport;
    assert_eq!(transport.kind, Kind::Quic);
    Ok(transport.datagram.quic)
}

/// A long header with separate ID lengths, and 30 bytes after it.
fn long(first: u8, version: u32, destination: &[u8], source: &[u8]) -> Vec<u8> {
    let mut packet = vec![first];
    packet.extend(version.to_be_bytes());
    packet.push(destination.len() as u8);
    packet.extend(destination);
    packet.push(source.len() as u8);
    packet.extend(source);
    packet.extend([0x55; 30]);
    packet
}

/// A long header of the drafts that have both lengths in one byte.
fn packed(version: u32, destination: &[u8], source: &[u8]) -> Vec<u8> {
    let bits = |id: &[u8]| if id.is_empty() { 0 } else { id.len() as u8 - 3 };
    let mut packet = vec![INITIAL];
    packet.extend(version.to_be_bytes());
    packet.push(bits(destination) << 4 | bits(source));
    packet.extend(destination);
    packet.extend(source);
    packet.extend([0x55; 30]);
    packet
}

/// Version negotiation with so many versions.
fn negotiation(destination: &[u8], source: &[u8], versions: usize) -> Vec<u8> {
    let mut packet = long(0x80, 0, destination, source);
    packet.truncate(packet.len() - 30);
    packet.extend([0, 0, 0, 1].repeat(versions));
    packet
}

/// The digest of an ID.
fn digest(id: &[u8]) -> u32 {
    found(&long(INITIAL, 1, id, &[])).unwrap().destination_id
}

#[test]
fn short_headers_have_a_spin_bit_whatever_their_fixed_bit() {
    for (first, spin) in [(0x40, false), (0x60, true), (0x5f, false), (0x7f, true)] {
        for is_greased in [false, true] {
            let quic = found(&[if is_greased { first ^ 0x40 } else { first }; 21]).unwrap();
            assert_eq!((quic.form, quic.spin), (QuicForm::Short, spin), "{first:x}");
            assert_eq!(quic.is_greased, is_greased, "{first:x}");
        }
    }
}

#[test]
fn long_headers_are_the_same_without_their_fixed_bit() {
    for version in [1, V2, 0xff00_001d, 0x1a2a_3a4a] {
        for first in [0xc0, 0xd0, 0xe0, 0xf0] {
            let quic = |first| found(&long(first, version, &[1; 8], &[2; 8])).unwrap();
            let (fixed, greased) = (quic(first), quic(first ^ 0x40));
            let begins = Err(Untracked::Unsupported);
            assert_eq!(greased, Quic { is_greased: true, begins, ..fixed }, "{first:x} {version:x}");
        }
    }
    // Version negotiation has no fixed bit.
    assert!(!found(&negotiation(&[1; 8], &[2; 8], 1)).unwrap().is_greased);
}

#[test]
fn what_cannot_be_quic_is_unsupported() {
    let unsupported =
        |payload: &[u8]| assert_eq!(found(payload), Err(Untracked::Unsupported), "{payload:x?}");
    // Without the fixed bit, in a version that has no extension to clear it.
    unsupported(&long(0x80, UNKNOWN, &[1; 8], &[2; 8]));
    unsupported(&[0x40; 20]);
    unsupported(&[]);
    unsupported(&long(INITIAL, 1, &[1; 21], &[2; 8]));
    unsupported(&long(INITIAL, 1, &[1; 8], &[2; 21]));
    unsupported(&long(INITIAL, 1, &[1; 8], &[2; 255]));
}

#[test]
fn long_headers_have_a_type_by_their_version() {
    let form = |first, version| found(&long(first, version, &[1; 8], &[2; 8])).unwrap().form;
    for version in [1, 0xff00_001d, 0xff00_0022, 0x1a2a_3a4a] {
        assert_eq!(form(0xcf, version), QuicForm::Initial, "{version:x}");
        for first in [0xd0, 0xe0] {
            assert_eq!(form(first, version), QuicForm::Long, "{version:x}");
        }
        assert_eq!(form(0xf0, version), QuicForm::Initial, "a Retry of {version:x}");
    }
    assert_eq!(form(0xd0, V2), QuicForm::Initial);
    assert_eq!(form(0xc0, V2), QuicForm::Initial, "a Retry");
    assert_eq!((form(0xe0, V2), form(0xf0, V2)), (QuicForm::Long, QuicForm::Long));
    assert_eq!(form(0xf0, UNKNOWN), QuicForm::Initial);
}

#[test]
fn version_negotiation_has_one_version_or_more() {
    for versions in 1..=8 {
        for (destination, source) in [(0, 8), (3, 8), (8, 8), (6, 18), (20, 20)] {
            let destination: Vec<u8> = (1..=destination).collect();
            let mut packet = negotiation(&destination, &vec![2; source], versions);
            for first in [0x80, 0xc0, 0xff] {
                packet[0] = first;
                let quic = found(&packet).unwrap();
                assert_eq!(quic.form, QuicForm::Negotiation, "{packet:x?}");
                assert_eq!((quic.destination_id, quic.source_id), (digest(&destination), 0), "{packet:x?}");
                assert_eq!(quic.begins, Err(Untracked::NoFlow));
            }
            for wrong in 1..=3 {
                let part = &packet[..packet.len() - wrong];
                assert_eq!(found(part), Err(Untracked::Unsupported), "a part of a version: {part:x?}");
            }
        }
    }
    assert_eq!(found(&negotiation(&[1; 8], &[2; 8], 0)), Err(Untracked::Unsupported));
    // A client's first destination ID, which the server sends back as its source ID, has eight bytes or more.
    assert_eq!(found(&negotiation(&[1; 8], &[2; 7], 2)), Err(Untracked::Unsupported));
    assert_eq!(found(&negotiation(&[1; 21], &[2; 8], 2)), Err(Untracked::Unsupported));
}

#[test]
fn versions_are_known_or_greased() {
    let is_known = |version| found(&long(INITIAL, version, &[1; 8], &[2; 8])).unwrap().is_known;
    for version in [1, V2, 0xff00_0016, 0xff00_0022, 0x0a0a_0a0a, 0xfafa_fafa, 0x1a2a_3a4a] {
        assert!(is_known(version), "{version:x}");
    }
    for version in [2, 0xff00_0010, 0xff00_0023, UNKNOWN, 0x4547_4716, 0x0a0a_0a0b] {
        assert!(!is_known(version), "{version:x}");
    }
}

#[test]
fn ids_are_told_apart_by_bytes_and_length() {
    let bytes: Vec<u8> = (1..=20).collect();
    let mut digests: Vec<u32> = (0..=20).map(|len| digest(&bytes[..len])).collect();
    assert_eq!(digests[0], 0);
    for at in 0..20 {
        let mut other = bytes.clone();
        other[at] ^= 1;
        digests.push(digest(&other));
    }
    digests.extend((1..=20).map(|len| digest(&vec![0; len])));
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 61);
}

#[test]
fn drafts_pack_both_lengths_in_one_byte() {
    for version in [0xff00_0011, DRAFT_18, 0xff00_0015] {
        for (destination, source) in [(8, 4), (18, 18), (4, 0), (0, 4)] {
            let (destination, source) = (vec![3; destination], vec![4; source]);
            let quic = found(&packed(version, &destination, &source)).unwrap();
            assert_eq!((quic.destination_id, quic.source_id), (digest(&destination), digest(&source)));
        }
    }
    let quic = found(&long(INITIAL, 0xff00_0016, &[3; 8], &[4; 4])).unwrap();
    assert_eq!((quic.destination_id, quic.source_id), (digest(&[3; 8]), digest(&[4; 4])));
}

#[test]
fn short_datagram_is_unsupported_short_capture_truncated() {
    let packet = long(INITIAL, 1, &[1; 8], &[2; 5]);
    // The offset of the source ID, plus 20 bytes.
    for len in 0..15 + 20 {
        assert_eq!(found(&packet[..len]), Err(Untracked::Unsupported), "{len}");
    }
    assert!(found(&packet[..35]).is_ok());
    let bytes = frame(&packet);
    let needed = bytes.len() - packet.len() + 35;
    for len in needed - 35..bytes.len() {
        let mut frame = Frame::EMPTY;
        let captured = Captured { bytes: &bytes[..len], frame_len: bytes.len() };
        let parsed = frame.parse(&captured, LinkType::Ethernet, Vlan::NONE, Decap::NONE, &Scope::ALL);
        assert_eq!(parsed, if len < needed { Err(Untracked::Truncated) } else { Ok(()) }, "{len}");
    }
}

/// Whether a datagram of `len` bytes begins a flow.
fn begins(mut payload: Vec<u8>, len: usize) -> Result<(), Untracked> {
    payload.resize(len, 0);
    parse(&frame(&payload)).unwrap().transport.begins_flow(Methods::NONE.with(Method::QuicSpin))
}

#[test]
fn only_the_first_initial_of_a_client_begins_a_flow() {
    let (no_flow, unsupported) = (Err(Untracked::NoFlow), Err(Untracked::Unsupported));
    for (first, version, other) in
        [(0xc0, 1, no_flow), (0xd0, V2, no_flow), (0xc0, 0x1a2a_3a4a, no_flow), (0xe0, UNKNOWN, unsupported)]
    {
        let initial = |id: usize| long(first, version, &vec![1; id], &[2; 8]);
        assert_eq!(begins(initial(8), 1200), Ok(()), "{version:x}");
        assert_eq!(begins(initial(20), 1252), Ok(()), "{version:x}");
        assert_eq!(begins(initial(8), 1199), other, "{version:x}");
        assert_eq!(begins(initial(7), 1200), other, "{version:x}");
        assert_eq!(begins(initial(0), 1200), other, "{version:x}");
    }
    for (first, version) in [(0xd0, 1), (0xe0, 1), (0xf0, 1), (0xc0, V2), (0xe0, V2), (0xf0, V2)] {
        assert_eq!(begins(long(first, version, &[1; 8], &[2; 8]), 1200), no_flow, "{first:x} {version:x}");
    }
    assert_eq!(begins(long(0x80, 1, &[1; 8], &[2; 8]), 1200), unsupported);
    // Version negotiation.
    for first in [0x80, INITIAL] {
        assert_eq!(begins(long(first, 0, &[1; 8], &[2; 8]), 1203), no_flow, "{first:x}");
    }
    assert_eq!((begins(vec![0x40], 30), begins(vec![0x00], 30)), (no_flow, unsupported));
}

#[test]
fn answers_of_remote_procedure_calls_begin_no_flow() {
    // RFC 5531, 9: a transaction of any number, a reply, accepted, no verifier, success.
    for transaction in [[0xc0, 0, 0, 1], [0xd6, 0x1a, 0x2a, 0x3a], [0xff, 0, 0x0f, 0]] {
        let mut reply = Vec::from(transaction);
        reply.extend([0, 0, 0, 1, 0, 0, 0, 0]);
        for len in [40, 1200, 8192] {
            assert_eq!(begins(reply.clone(), len), Err(Untracked::Unsupported), "{transaction:x?}");
        }
    }
    // Even if it has version 1, the IDs are empty.
    assert_eq!(begins(vec![0xc0, 0, 0, 0, 1, 0, 0, 0, 0], 1200), Err(Untracked::NoFlow));
}

proptest! {
    /// An ID has the same digest wherever it is, and whatever surrounds it.
    #[test]
    fn digests_depend_on_the_id_alone(
        id in vec(any::<u8>(), 0..=20),
        other in vec(any::<u8>(), 0..=20),
        behind in vec(any::<u8>(), 20..40),
    ) {
        let mut there = long(INITIAL, 1, &id, &other);
        let mut back = long(INITIAL, 1, &other, &id);
        there.truncate(7 + id.len() + other.len());
        there.extend(&behind);
        back.extend(&behind);
        let (there, back) = (found(&there).unwrap(), found(&back).unwrap());
        prop_assert_eq!(there.destination_id, back.source_id);
        prop_assert_eq!(there.source_id, back.destination_id);
        prop_assert_eq!(there.destination_id == there.source_id, id == other);
        prop_assert_eq!(there.destination_id == 0, id.is_empty());
    }

    #[test]
    fn any_payload_is_parsed_or_refused(payload in vec(any::<u8>(), 0..80)) {
        let quic = found(&payload);
        prop_assert!(matches!(quic, Ok(_) | Err(Untracked::Unsupported)));
        if payload.len() < 19 {
            prop_assert!(quic.is_err());
        }
    }
}

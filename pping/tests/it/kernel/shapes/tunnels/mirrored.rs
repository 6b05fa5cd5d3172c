//! Copies of packets that switches and routers send to a probe.

use super::{
    super::super::frames::{ARP, IPV4, Ip, MPLS, UDP, VLAN, ethernet, mpls, udp_to},
    Entry, GRE, NON_IP, Stamped, UNSUPPORTED, entry, gre_header, inner, inner_frame, insides,
};

/// The GRE protocols of ERSPAN.
const I_OR_II: u16 = 0x88be;
const III: u16 = 0x22eb;
const HAS_SEQUENCE: u16 = 0x1000;
const TRUNCATED: u8 = 0x04;

/// Headers of GRE and ERSPAN type II. The truncated bit is set: routers may cut frames.
pub(super) fn erspan_header(version: u8) -> Vec<u8> {
    let mut header = gre_header(HAS_SEQUENCE, I_OR_II, 1);
    header.extend([version << 4, 7, TRUNCATED, 5, 0, 0, 0, 3]);
    header
}

/// Headers of GRE and ERSPAN type III with this frame type. The last byte says whether a subheader follows.
fn erspan_3(version: u8, frame_type: u8, last: u8) -> Vec<u8> {
    let mut header = gre_header(HAS_SEQUENCE, III, 1);
    header.extend([version << 4, 7, 0, 5, 0, 0, 0, 1, 0, 2, 0x80 | frame_type << 2, last]);
    header
}

pub(super) fn erspan() -> Vec<Entry> {
    let mut entries = Vec::new();
    let headers = [
        ("ERSPAN I", gre_header(0, I_OR_II, 0)),
        ("ERSPAN I with a key", gre_header(0x2000, I_OR_II, 1)),
        ("ERSPAN II", erspan_header(1)),
        ("ERSPAN III", erspan_3(2, 0, 0)),
        ("ERSPAN III with a subheader", [erspan_3(2, 0, 1), vec![0x0c; 8]].concat()),
    ];
    for (kind, header) in headers {
        for (name, ip, packet, treatment) in insides() {
            let bytes = [header.clone(), ethernet(&[(VLAN, 9)], ip.ethertype(), &packet)].concat();
            entries.push(entry(&format!("{name} in {kind}"), GRE, bytes, treatment));
        }
    }
    for (name, _, packet, treatment) in insides() {
        let bytes = [erspan_3(2, 2, 0), packet].concat();
        entries.push(entry(&format!("{name} in ERSPAN III without Ethernet"), GRE, bytes, treatment));
    }
    let frame = inner_frame(&Ip::v4());
    for (name, header, inside, treatment) in [
        ("MPLS in ERSPAN", erspan_header(1), ethernet(&[], MPLS, &mpls(2, &inner(&Ip::v4()))), Stamped),
        ("ARP in ERSPAN", erspan_header(1), ethernet(&[], ARP, &[0; 28]), NON_IP),
        ("ERSPAN II of version 2", erspan_header(2), frame.clone(), UNSUPPORTED),
        ("ERSPAN III of version 1", erspan_3(1, 0, 0), frame.clone(), UNSUPPORTED),
        ("ERSPAN III with frame type 1", erspan_3(2, 1, 0), frame.clone(), UNSUPPORTED),
        ("ERSPAN with routing", gre_header(0x4000, I_OR_II, 0), frame, UNSUPPORTED),
    ] {
        entries.push(entry(name, GRE, [header, inside].concat(), treatment));
    }
    entries
}

/// A TZSP datagram: version, type, encapsulated protocol, and everything behind them.
fn datagram([version, kind, protocol]: [u8; 3], rest: &[u8]) -> Vec<u8> {
    udp_to(37008, &[&[version, kind, 0, protocol], rest].concat())
}

pub(super) fn tzsp() -> Vec<Entry> {
    let mut entries = Vec::new();
    for fields in [&[1][..], &[0, 0, 10, 1, 200, 0, 41, 2, 1, 64, 1]] {
        for (name, ip, packet, treatment) in insides() {
            let rest = [fields, &ethernet(&[], ip.ethertype(), &packet)].concat();
            let name = format!("{name} in TZSP with {} bytes of fields", fields.len());
            entries.push(entry(&name, UDP, datagram([1, 0, 1], &rest), treatment));
        }
    }
    let frame = inner_frame(&Ip::v6());
    let tagged = ethernet(&[(VLAN, 3)], IPV4, &inner(&Ip::v4()));
    for (name, start, fields, inside, treatment) in [
        ("a tag", [1, 0, 1], vec![1], &tagged, Stamped),
        ("8 fields", [1, 0, 1], [vec![0; 7], vec![60, 4, 1, 2, 3, 4, 1]].concat(), &frame, Stamped),
        (
            "the longest fields",
            [1, 0, 1],
            [[&[60, 255][..], &[1; 255]].concat().repeat(8), vec![1]].concat(),
            &frame,
            Stamped,
        ),
        ("9 fields", [1, 0, 1], [vec![0; 9], vec![1]].concat(), &frame, UNSUPPORTED),
        ("version 2", [2, 0, 1], vec![1], &frame, UNSUPPORTED),
        ("a packet to be sent", [1, 1, 1], vec![1], &frame, UNSUPPORTED),
        ("a keepalive", [1, 4, 1], vec![1], &frame, UNSUPPORTED),
        ("IEEE 802.11", [1, 0, 18], vec![1], &frame, UNSUPPORTED),
    ] {
        let bytes = datagram(start, &[fields, inside.clone()].concat());
        entries.push(entry(&format!("TZSP with {name}"), UDP, bytes, treatment));
    }
    entries
}

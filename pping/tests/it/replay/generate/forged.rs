//! Honest hosts on two sides of an interface, and what somebody beside their path sends in their names. He knows addresses
//! and ports, but none of the numbers.

use super::{
    dialogue::{Dialogue, TimedPacket},
    pcap::Endian,
    pcapng::{Interface, Resolution, Section},
};
use crate::frames::{
    ACK, FIN, ICMP, Ip, PSH, RST, SYN, Tcp, UDP, dns, icmp, quic_long, timestamps, udp_between,
};

/// How often each host says something, and how many ms apart.
const ROUNDS: u64 = 20;
const APART: u64 = 50;
const RTT: u64 = 20;
/// How many RSTs and SYNs are forged in the name of each end of a connection, from its side.
pub(in crate::replay) const RSTS_AND_SYNS: u64 = 4 * ROUNDS;
/// The mark of congestion (RFC 3168, 5).
const CE: u8 = 3;
const FAR: u32 = 1 << 31;
const DNS_PORT: u16 = 53;
const QUIC_PORT: u16 = 443;
const CLIENT_ID: &[u8] = b"client";
const SERVER_ID: &[u8] = b"server's";

/// A packet, and whether it went out.
type Passing = (TimedPacket, bool);

/// Returns a capture without lies, and the same with lies between its packets.
pub(in crate::replay) fn captures() -> [Vec<u8>; 2] {
    let honest: Vec<Passing> = honest()
        .into_iter()
        .flat_map(Dialogue::packets)
        .map(|packet| (packet.clone(), packet.is_outward))
        .collect();
    let with_lies = [honest.clone(), lies()].concat();
    [honest, with_lies].map(capture)
}

fn capture(mut packets: Vec<Passing>) -> Vec<u8> {
    packets.sort_by_key(|(packet, _)| packet.at);
    let mut section = Section::new(Endian::Little);
    section.interface(Interface {
        link_type: 1,
        name: Some("wan0"),
        resolution: Resolution::Ten(9),
        offset: 0,
    });
    for (packet, is_outgoing) in packets {
        section.passing(0, &packet.on_ethernet(), is_outgoing);
    }
    section.bytes()
}

fn without_timestamps(_: u32, _: u32) -> Tcp {
    Tcp::with_options(Vec::new())
}

/// The connections, and whether they have timestamps.
fn connections(traffic_class: u8) -> [(Dialogue, bool); 4] {
    let begin = |ip: Ip, number| Dialogue::new(Ip { traffic_class, ..ip }, number);
    [
        (begin(Ip::v4(), 0), true),
        (begin(Ip::v6(), 1), true),
        (begin(Ip::v4(), 2).with_segments(without_timestamps), false),
        (begin(Ip::v6(), 3).with_segments(without_timestamps), false),
    ]
}

fn honest() -> Vec<Dialogue> {
    let talk = |(dialogue, _): (Dialogue, bool)| {
        let shaken = dialogue
            .client_sends(0, SYN, 0, 1000, 0)
            .server_sends(RTT, SYN | ACK, 0, 5000, 1000)
            .client_sends(RTT + 1, ACK, 0, 1021, 5000)
            .client_sends(RTT + 2, ACK | PSH, 10, 1022, 5000)
            .server_sends(2 * RTT + 2, ACK | PSH, 10, 5022, 1022);
        (1..=ROUNDS).fold(shaken, |dialogue, round| {
            let at = round * APART;
            let (asked, answered) = (1000 + at as u32, 5000 + at as u32);
            let heard = answered - APART as u32 + 2;
            dialogue
                .client_sends(at, ACK | PSH, 100, asked, heard)
                .server_sends(at + RTT, ACK | PSH, 50, answered, asked)
                .client_sends(at + RTT + 1, ACK, 0, asked + RTT as u32 + 1, answered)
        })
    };
    let mut dialogues: Vec<Dialogue> = connections(0).map(talk).into();
    dialogues.push((1..=ROUNDS).fold(Dialogue::new(Ip::v4(), 4), |dialogue, round| {
        let sequence = round as u16;
        dialogue.request(round * APART, sequence).reply(round * APART + RTT, sequence)
    }));
    dialogues.push((1..=ROUNDS).fold(Dialogue::new(Ip::v4(), 5), |dialogue, round| {
        let (port, id) = (5_000 + round as u16, 7 * round as u16);
        let [query, response] = [((port, DNS_PORT), [1, 0]), ((DNS_PORT, port), [0x81, 0x80])];
        dialogue.pass(round * APART, true, UDP, &dns(query.0, id, query.1, 12)).pass(
            round * APART + RTT,
            false,
            UDP,
            &dns(response.0, id, response.1, 12),
        )
    }));
    dialogues.push((1..=ROUNDS).fold(Dialogue::new(Ip::v6(), 6), |dialogue, round| {
        dialogue.pass(round * APART, true, UDP, &initial(round, true, CLIENT_ID, b"8 bytes.")).pass(
            round * APART + RTT,
            false,
            UDP,
            &initial(round, false, SERVER_ID, CLIENT_ID),
        )
    }));
    dialogues
}

/// An Initial of the client or the server in the connection of a round.
fn initial(round: u64, is_client: bool, source: &[u8], destination: &[u8]) -> Vec<u8> {
    let client = 6_000 + round as u16;
    let ports = if is_client { (client, QUIC_PORT) } else { (QUIC_PORT, client) };
    udp_between(ports, &quic_long(0xc0, 1, [destination, source], 1200))
}

fn lies() -> Vec<Passing> {
    let mut lies = Vec::new();
    let mut lie = |dialogue: Dialogue, is_from_right_side: bool| {
        lies.extend(
            dialogue
                .packets()
                .into_iter()
                .map(|packet| (packet.clone(), packet.is_outward == is_from_right_side)),
        );
    };
    for (dialogue, has_timestamps) in connections(CE) {
        for round in 1..=ROUNDS {
            // While data waits for its ACK.
            let at = round * APART + 7;
            for is_client in [true, false] {
                for segment in segments(has_timestamps, round as u32) {
                    lie(dialogue.clone().segment(at, is_client, segment.clone()), true);
                    lie(dialogue.clone().segment(at + 1, is_client, segment), false);
                }
            }
        }
    }
    for round in 1..=ROUNDS {
        let (at, number) = (round * APART + 7, round as u16);
        let ping = Dialogue::new(Ip::v4(), 4);
        // Another identifier, and a number that nobody has asked for.
        lie(ping.clone().pass(at, false, ICMP, &icmp(0, 0, 99, number, 8)), true);
        lie(ping.clone().pass(at, false, ICMP, &icmp(0, 0, 104, number + 1_000, 8)), true);
        lie(ping.clone().pass(at, true, ICMP, &icmp(8, 0, 104, number, 8)), false);
        let query = Dialogue::new(Ip::v4(), 5);
        for (port, id) in [(5_000 + number, 7 * number + 1), (5_001 + number, 7 * number)] {
            lie(query.clone().pass(at, false, UDP, &dns((DNS_PORT, port), id, [0x81, 0x80], 12)), true);
        }
        let handshake = Dialogue::new(Ip::v6(), 6);
        for first in [0xc0, 0xe0, 0xf0] {
            let packet = quic_long(first, 1, [b"guess", SERVER_ID], 1200);
            let ports = (QUIC_PORT, 6_000 + number);
            lie(handshake.clone().pass(at, false, UDP, &udp_between(ports, &packet)), true);
        }
    }
    // Both ends of connections with a host that sends nothing, from one side.
    for number in 7..17 {
        let mut ip = Ip::v4();
        ip.source = crate::frames::v4(77);
        let pair = Dialogue::new(ip, number);
        let (query, response) = ([1, 0], [0x81, 0x80]);
        let pair = pair.pass(0, true, UDP, &dns((4_000 + number, DNS_PORT), 7, query, 12));
        let pair = pair.pass(2_000, false, UDP, &dns((DNS_PORT, 4_000 + number), 7, response, 12));
        let pair = pair.client_sends(0, SYN, 0, 1000, 0).server_sends(3_000, SYN | ACK, 0, 5000, 1000);
        lies.extend(pair.packets().into_iter().map(|packet| (packet, false)));
    }
    lies
}

/// What once changed a connection.
fn segments(has_timestamps: bool, round: u32) -> Vec<Tcp> {
    // The ends begin at 100,000 and 500,000.
    let far = |number: u32| number.wrapping_add(FAR).wrapping_add(round * 1_000);
    let (sequence, acknowledgement) = (far(100_000), far(500_000));
    let segment = |flags, payload, tsval: Option<u32>| {
        let options = match tsval {
            Some(tsval) if has_timestamps => [&[1, 1][..], &timestamps(tsval, 1)].concat(),
            _ => Vec::new(),
        };
        Tcp { flags, sequence, acknowledgement, payload, ..Tcp::with_options(options) }
    };
    vec![
        segment(ACK | PSH, 100, Some(1_000 + round)),
        segment(ACK, 0, Some(0x4000_0000)),
        segment(ACK, 0, Some(0xc000_0000)),
        segment(ACK | PSH, 100, None),
        segment(FIN | ACK, 0, Some(1_000)),
        segment(RST, 0, None),
        segment(RST | ACK, 0, None),
        segment(SYN, 0, Some(round)),
        segment(SYN | ACK, 0, Some(round)),
    ]
}

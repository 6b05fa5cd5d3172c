//! Whole packets in, samples out.

use std::{vec, vec::Vec};

use proptest::{collection::vec as vec_of, prelude::*, sample::Index};

use super::{Matcher, Packet, RttSample, Settings};
use crate::{
    bytes::Captured,
    limits::SECOND,
    method::{Method, Methods},
    parse::{Decap, Direction, LinkType, Untracked},
    rtt::Rules,
    testing::{ACK, FIN, ICMP, ICMPV6, MS, Network, PSH, SYN, TCP, Tcp, echo},
};

const UDP: u8 = 17;
const START: u64 = 1_700_000_000 * SECOND;
const CLIENT: u8 = 1;
const SERVER: u8 = 2;

/// A packet of the client or the server, `ms` after the start.
type Timed = (u64, Vec<u8>);

/// The header of a packet that a host sends to the other one. The client is in network `network`.
fn header(mut ip: Network, from: u8, network: u8) -> Network {
    let [_, low] = &mut ip.source.0;
    *low |= u64::from(network) << 8;
    if from == SERVER {
        core::mem::swap(&mut ip.source, &mut ip.destination);
    }
    ip
}

/// A segment with timestamps, whose numbers are those of its sender and of what it acknowledges.
fn segment(
    from: u8,
    flags: u8,
    [sequence, ack]: [u32; 2],
    [tsval, tsecr]: [u32; 2],
    payload: usize,
) -> Vec<u8> {
    on_port(40_000, from, flags, [sequence, ack], [tsval, tsecr], payload)
}

fn on_port(
    port: u16,
    from: u8,
    flags: u8,
    [sequence, ack]: [u32; 2],
    [tsval, tsecr]: [u32; 2],
    payload: usize,
) -> Vec<u8> {
    let tcp = Tcp { flags, payload, source_port: port, ..Tcp::usual(tsval, tsecr) };
    let tcp = match from {
        SERVER => Tcp { source_port: 443, destination_port: port, ..tcp },
        _ => tcp,
    };
    let mut bytes = tcp.bytes();
    bytes[4..8].copy_from_slice(&sequence.to_be_bytes());
    bytes[8..12].copy_from_slice(&ack.to_be_bytes());
    header(Network::v4(), from, 0).frame(TCP, &bytes)
}

/// A connection of 60 ms: handshake, a request, the response, and the end.
fn connection() -> Vec<Timed> {
    vec![
        (0, segment(CLIENT, SYN, [1_000, 0], [100, 0], 0)),
        (20, segment(SERVER, SYN | ACK, [5_000, 1_001], [500, 100], 0)),
        (21, segment(CLIENT, ACK, [1_001, 5_001], [121, 500], 0)),
        (30, segment(CLIENT, ACK | PSH, [1_001, 5_001], [130, 500], 100)),
        (55, segment(SERVER, ACK | PSH, [5_001, 1_101], [535, 130], 50)),
        (60, segment(CLIENT, ACK | FIN, [1_101, 5_051], [160, 535], 0)),
    ]
}

/// A ping of either family, which takes 12 ms.
fn ping(network: &Network) -> Vec<Timed> {
    let (protocol, request, reply) =
        if network.header_len() == 20 { (ICMP, 8, 0) } else { (ICMPV6, 128, 129) };
    let message = |kind| echo(kind, 0, 77, 1, &[9; 16]);
    vec![
        (0, header(network.clone(), CLIENT, 0).frame(protocol, &message(request))),
        (12, header(network.clone(), SERVER, 0).frame(protocol, &message(reply))),
    ]
}

/// A DNS message of the client in a network, or the response to it.
fn dns(network: &Network, from: u8, client: u8, id: u16) -> Vec<u8> {
    let (ports, flags) = if from == CLIENT { ([40_001, 53], 0x01) } else { ([53, 40_001], 0x81) };
    let mut datagram: Vec<u8> = ports.into_iter().flat_map(u16::to_be_bytes).collect();
    datagram.extend([0, 8 + 29, 0, 0]);
    datagram.extend(id.to_be_bytes());
    datagram.extend([flags, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    datagram.extend([7; 17]);
    header(network.clone(), from, client).frame(UDP, &datagram)
}

fn capturing() -> Rules {
    Rules { include_local: true, ..Rules::UNLIMITED }
}

fn take(matcher: &mut Matcher, packets: &[Timed]) -> Vec<RttSample> {
    let of_packet = |(ms, bytes): &Timed| matcher.packet(START + ms * MS, LinkType::Ethernet, bytes);
    packets.iter().flat_map(of_packet).collect()
}

/// The methods of samples, and the RTTs in ms.
fn shown(samples: &[RttSample]) -> Vec<(Method, u64)> {
    samples.iter().map(|it| (it.sample.method, it.sample.rtt / MS)).collect()
}

#[test]
fn conversation_gives_handshake_and_timestamp_samples() {
    let mut matcher = Matcher::new(capturing());
    let samples = take(&mut matcher, &connection());
    let (handshake, timestamps) = (Method::TcpHandshake, Method::TcpTs);
    assert_eq!(shown(&samples), [(handshake, 20), (handshake, 1), (timestamps, 25), (timestamps, 5)]);
    let [client, server] = ["192.0.2.1:40000", "192.0.2.2:443"].map(|end| end.parse().unwrap());
    let ends: Vec<_> = samples.iter().map(|it| (it.source, it.destination)).collect();
    assert_eq!(ends, [(server, client), (client, server), (server, client), (client, server)]);
    assert_eq!((samples[2].sample.identifier, samples[2].sample.rtt), (130, 25 * MS));
}

#[test]
fn both_methods_give_two_samples_of_one_packet() {
    let methods = Methods::ALL.with_seq_always();
    let mut matcher = Matcher::new(Rules { methods, ..capturing() });
    let samples = take(&mut matcher, &connection()[..5]);
    assert_eq!(shown(&samples[2..]), [(Method::TcpTs, 25), (Method::TcpSeq, 25)]);
}

#[test]
fn pings_and_queries_of_both_families_are_measured() {
    for network in [Network::v4(), Network::v6()] {
        let mut matcher = Matcher::new(capturing());
        let samples = take(&mut matcher, &ping(&network));
        assert_eq!(shown(&samples), [(Method::IcmpEcho, 12)]);
        assert_eq!(samples[0].source.is_ipv4(), network.header_len() == 20);
        let query = (30, dns(&network, CLIENT, 0, 7));
        let samples = take(&mut matcher, &[query, (38, dns(&network, SERVER, 0, 7))]);
        assert_eq!(shown(&samples), [(Method::Dns, 8)]);
        assert_eq!((samples[0].source.port(), samples[0].sample.identifier), (53, 7));
        assert_eq!((matcher.flows(), matcher.pending_queries()), (1, 0));
    }
}

#[test]
fn packets_to_this_host_are_timed_only_if_asked_for() {
    let mut matcher = Matcher::new(Rules::UNLIMITED);
    matcher.add_local("192.0.2.1".parse().unwrap());
    let samples = take(&mut matcher, &connection());
    assert!(samples.iter().all(|it| it.source.port() == 443), "{samples:?}");
    assert_eq!(shown(&samples), [(Method::TcpHandshake, 20), (Method::TcpTs, 25)]);
}

#[test]
fn a_packet_that_is_not_measured_has_its_reason() {
    let mut matcher = Matcher::new(capturing());
    let reason = matcher.packet(START, LinkType::Ethernet, &[0; 3]).untracked();
    assert_eq!(reason, Some(Untracked::Truncated));
    let measured = matcher.packet(START, LinkType::Ethernet, &connection()[0].1);
    assert_eq!((measured.untracked(), measured.count()), (None, 0));
}

#[test]
fn a_response_from_the_side_of_the_client_is_forged() {
    let settings = Settings { has_two_arms: true, ..Settings::new(capturing()) };
    let mut matcher = Matcher::with_settings(settings);
    let mut pass = |ms, bytes: &[u8], direction| {
        let captured = Captured { bytes, frame_len: bytes.len() };
        let packet = Packet {
            time: START + ms * MS,
            interface: 1,
            link: LinkType::Ethernet,
            direction: Some(direction),
            bytes: captured,
        };
        let samples = matcher.packet_with(&packet);
        (samples.untracked(), samples.count())
    };
    let [query, response] = [CLIENT, SERVER].map(|from| dns(&Network::v4(), from, 0, 7));
    assert_eq!(pass(0, &query, Direction::Ingress), (None, 0));
    assert_eq!(pass(1, &response, Direction::Ingress), (Some(Untracked::SameHook), 0));
    assert_eq!(pass(2, &response, Direction::Egress), (None, 1));
}

#[test]
fn a_response_without_direction_is_from_anywhere() {
    let settings = Settings { has_two_arms: true, ..Settings::new(capturing()) };
    let mut matcher = Matcher::with_settings(settings);
    let [query, response] = [CLIENT, SERVER].map(|from| dns(&Network::v4(), from, 0, 7));
    assert_eq!(matcher.packet(START, LinkType::Ethernet, &query).count(), 0);
    assert_eq!(matcher.packet(START + 9 * MS, LinkType::Ethernet, &response).count(), 1);
}

#[test]
fn flows_are_removed_after_their_time() {
    let mut matcher = Matcher::new(capturing());
    take(&mut matcher, &connection()[..5]);
    take(&mut matcher, &ping(&Network::v6()));
    take(&mut matcher, &[(60, dns(&Network::v4(), CLIENT, 0, 7))]);
    let mut left = |seconds| {
        matcher.expire(START + seconds * SECOND);
        (matcher.flows(), matcher.pending_queries())
    };
    assert_eq!(left(10), (2, 1));
    assert_eq!(left(11), (2, 0));
    assert_eq!(left(31), (1, 0), "the ping");
    assert_eq!(left(300), (1, 0));
    assert_eq!(left(301), (0, 0), "the connection");
}

#[test]
fn packets_remove_the_flows_of_others_after_their_time() {
    let mut matcher = Matcher::new(capturing());
    take(&mut matcher, &connection());
    take(&mut matcher, &ping(&Network::v4()));
    assert_eq!(matcher.flows(), 2);
    let later: Vec<_> = ping(&Network::v6()).into_iter().map(|(ms, bytes)| (ms + 400_000, bytes)).collect();
    assert_eq!(shown(&take(&mut matcher, &later)), [(Method::IcmpEcho, 12)]);
    assert_eq!(matcher.flows(), 1);
}

#[test]
fn a_flood_of_flows_evicts_itself_and_no_flow_that_is_proved() {
    let mut matcher = Matcher::with_settings(Settings::new(capturing()).with_max_flows(16));
    take(&mut matcher, &connection()[..5]);
    for port in 0..5_000 {
        let syn = on_port(port, CLIENT, SYN, [1, 0], [1, 0], 0);
        assert_eq!(take(&mut matcher, &[(56, syn)]), []);
        assert!(matcher.flows() <= 16);
    }
    assert_eq!(shown(&take(&mut matcher, &connection()[5..])), [(Method::TcpTs, 5)]);
}

#[test]
fn no_more_flows_begin_than_there_is_room_for() {
    const ROOM: u16 = 64;
    let settings = Settings { max_flows: ROOM.into(), ..Settings::new(capturing()) };
    let mut matcher = Matcher::with_settings(settings);
    let mut begin = |port, ms: u64| {
        let syn = on_port(port, CLIENT, SYN, [1, 0], [1, 0], 0);
        let untracked = matcher.packet(START + ms * MS, LinkType::Ethernet, &syn).untracked();
        (untracked, matcher.flows())
    };
    for port in 1..=ROOM {
        assert_eq!(begin(port, 0), (None, port.into()));
    }
    assert_eq!(begin(100, 1), (Some(Untracked::MapFull), ROOM.into()));
    assert_eq!(begin(100, 40_000), (None, 1), "the others have been idle too long");
}

#[test]
fn the_newest_queries_are_kept() {
    let mut matcher = Matcher::with_settings(Settings::new(capturing()).with_max_flows(80));
    let message = |from, id| (u64::from(id), dns(&Network::v4(), from, 0, id));
    for id in 0..1_000 {
        take(&mut matcher, &[message(CLIENT, id)]);
    }
    assert_eq!(matcher.pending_queries(), 10, "the share of the queries of a prefix");
    let answered: Vec<_> = (0..1_000).map(|id| (1_000, message(SERVER, id).1)).collect();
    let samples = take(&mut matcher, &answered);
    assert_eq!(
        samples.into_iter().map(|it| it.sample.identifier).collect::<Vec<_>>(),
        (990..1_000).collect::<Vec<_>>()
    );
}

fn links() -> impl Strategy<Value = LinkType> {
    any::<Index>().prop_map(|index| *index.get(&LinkType::ALL))
}

proptest! {
    #[test]
    fn any_bytes_at_any_time_are_taken(
        packets in vec_of((any::<u64>(), links(), vec_of(any::<u8>(), 0..120)), 0..40),
    ) {
        let settings = Settings { decap: Decap::ALL, ..Settings::new(Rules::UNLIMITED) };
        let mut matcher = Matcher::with_settings(settings.with_max_flows(4));
        for (time, link, bytes) in packets {
            matcher.packet(time, link, &bytes);
            prop_assert!(matcher.flows() <= 8 && matcher.pending_queries() <= 16);
        }
        matcher.expire(u64::MAX);
    }

    #[test]
    fn any_change_of_a_conversation_is_taken(
        changes in vec_of((any::<Index>(), any::<Index>(), any::<u8>(), any::<Index>(), 0..u64::MAX), 0..60),
    ) {
        let whole = [connection(), ping(&Network::v4()), ping(&Network::v6())].concat();
        let mut matcher = Matcher::with_settings(Settings::new(capturing()).with_max_flows(4));
        for (packet, at, byte, len, time) in changes {
            let (ms, mut bytes) = packet.get(&whole).clone();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let kept = len.index(2 * bytes.len()).min(bytes.len());
            // Most times are near those of the others, some are anywhere.
            let time = if time % 8 == 0 { time } else { START + ms * MS + time % SECOND };
            let captured = Captured { bytes: &bytes[..kept], frame_len: bytes.len() };
            let (link, direction) = (LinkType::Ethernet, None);
            matcher.packet_with(&Packet { time, interface: 0, link, direction, bytes: captured });
            prop_assert!(matcher.flows() <= 8);
        }
    }
}

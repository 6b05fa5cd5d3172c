//! A packet and its answer, for each method.

use std::net::{Ipv4Addr, Ipv6Addr};

use pping_bench_programs::exchange::{Exchange, Field, PacketTemplate, TEMPLATE_LEN, Traffic};
use pping_common::method::Method;

use crate::frames;

/// The offsets in a frame of the identification, the addresses, the ports, and what follows: TCP's numbers, an echo's identifier and
/// number, UDP's payload.
const IDENTIFICATION: usize = 18;
const SOURCE: u32 = 26;
const SOURCE_V6: u32 = 22;
const DESTINATION: u32 = 30;
const PORTS: u32 = 34;
const SEQUENCE: u32 = 38;
const ACKNOWLEDGEMENT: u32 = 42;
const ECHO: u32 = 38;
const PAYLOAD: u32 = 42;
/// The offsets of TCP's timestamps.
const TSVAL: u32 = 58;
const TSECR: u32 = 62;

const ACK: u8 = 0x10;
const SYN_ACK: u8 = 0x12;

/// Bytes of each segment.
const STEP: u32 = 1400;

/// An exchange that gives a sample each time.
pub(crate) struct Sampled {
    pub(crate) method: Method,
    pub(crate) exchange: Exchange,
    /// The exchange that must come first.
    pub(crate) before: Option<Exchange>,
    /// The highest number of exchanges.
    pub(crate) most: u32,
}

/// Returns an exchange for each method.
pub(crate) fn of_each_method() -> Vec<Sampled> {
    let (initial, answer) = (frames::quic_initial(true), frames::quic_initial(false));
    let opening = exchange((&initial, &[]), (&answer, &[]));
    let openings = exchange((&initial, &[ports(1 << 16, 443)]), (&answer, &[ports(1, 443 << 16)]));
    let spins = exchange((&frames::quic_short(true), &[spin()]), (&frames::quic_short(false), &[spin()]));
    let segments = exchange(
        (&frames::tcp_without_timestamps(), &[counted(SEQUENCE, 0, STEP)]),
        (&frames::tcp_answer(false, ACK), &[counted(ACKNOWLEDGEMENT, STEP, STEP)]),
    );
    let stamped = exchange(
        (&frames::tcp(1, 2, STEP as usize), &[counted(TSVAL, 0, 1), counted(SEQUENCE, 0, STEP)]),
        (&frames::tcp_answer(true, ACK), &[counted(TSECR, 0, 1), counted(ACKNOWLEDGEMENT, STEP, STEP)]),
    );
    let handshakes = exchange(
        (&frames::syn(), &[ports(1 << 16, 443), counted(SEQUENCE, 0, STEP)]),
        (&frames::tcp_answer(false, SYN_ACK), &[ports(1, 443 << 16), counted(ACKNOWLEDGEMENT, 1, STEP)]),
    );
    let echoes =
        exchange((&frames::echo_request(), &[echo_number()]), (&frames::echo_reply(), &[echo_number()]));
    let queries = exchange((&frames::dns(false), &[dns_id()]), (&frames::dns(true), &[dns_id()]));
    let endless = |method, exchange| Sampled { method, exchange, before: None, most: u32::MAX };
    vec![
        endless(Method::TcpTs, stamped),
        endless(Method::TcpSeq, segments),
        endless(Method::IcmpEcho, echoes),
        endless(Method::Dns, queries),
        Sampled { before: Some(opening), ..endless(Method::QuicSpin, spins) },
        // A flow has one handshake only.
        Sampled { most: 1 << 16, ..endless(Method::TcpHandshake, handshakes) },
        Sampled { most: 1 << 16, ..endless(Method::QuicHandshake, openings) },
    ]
}

/// Segments of `flows` flows in turn, each with a timestamp that the answer echoes. `flows` is a power of two.
pub(crate) fn echoes(flows: u32) -> Exchange {
    let host = |at| Field { at, base: 20 << 24, step: 1, mask: flows - 1 };
    exchange(
        (&frames::tcp(1, 2, STEP as usize), &[counted(TSVAL, 0, 1), host(SOURCE)]),
        (&frames::tcp_answer(true, ACK), &[counted(TSECR, 0, 1), host(DESTINATION)]),
    )
}

/// Two SYNs of a flood, each from a new source.
pub(crate) fn flood() -> Exchange {
    let from = |network: u32| Field { at: SOURCE, base: network << 24, step: 1, mask: 0xff_ffff };
    let syn = frames::syn();
    exchange((&syn, &[from(20)]), (&syn, &[from(30)]))
}

/// Packets of `2 * half` flows in turn, where `half` is a power of two.
pub(crate) struct Crowd {
    /// Lets each flow of the first half be seen in both directions, then each of the second.
    pub(crate) before: [Exchange; 2],
    /// A packet of a flow in the first half, and one of a flow in the second.
    pub(crate) packets: Exchange,
}

/// Packets of many flows in turn.
pub(crate) fn crowd(half: u32) -> Crowd {
    let host = |at, network: u32| Field { at, base: network << 24, step: 1, mask: half - 1 };
    let (packet, answer) = (frames::tcp(1, 2, 0), frames::tcp_answer(true, ACK));
    Crowd {
        before: [20, 30].map(|network| {
            exchange((&packet, &[host(SOURCE, network)]), (&answer, &[host(DESTINATION, network)]))
        }),
        packets: exchange((&packet, &[host(SOURCE, 20)]), (&packet, &[host(SOURCE, 30)])),
    }
}

/// What many connections through a router have in common.
#[derive(Clone, Copy)]
pub(crate) struct Connections {
    /// How many there are, a power of two.
    pub(crate) flows: u32,
    pub(crate) is_v6: bool,
    /// Whether timestamps follow the clock, or the number of packets.
    pub(crate) is_by_clock: bool,
    /// Whether they open.
    pub(crate) is_opening: bool,
}

/// The addresses of the first client and of the server in the network with this number.
pub(crate) fn hosts_v4(network: u8) -> [Ipv4Addr; 2] {
    [1, 2].map(|host| Ipv4Addr::new(10, 77, network, host))
}

/// The same for IPv6.
pub(crate) fn hosts_v6(network: u8) -> [Ipv6Addr; 2] {
    [1, 2].map(|host| Ipv6Addr::new(0xfd77, network.into(), 0, 0, 0, 0, 0, host))
}

/// Connections between hosts of the network with this number through a router with this MAC address, by these interfaces.
pub(crate) fn traffic(
    connections: Connections,
    interfaces: [u32; 2],
    router: [u8; 6],
    network: u8,
) -> Traffic {
    let Connections { flows, is_v6, is_by_clock, is_opening } = connections;
    let (mut packets, hosts) = if is_v6 {
        (
            [frames::tcp_v6(1, 7, Traffic::PAYLOAD as usize), frames::tcp_answer_v6()],
            hosts_v6(network).map(|host| host.octets().to_vec()),
        )
    } else {
        (
            [frames::tcp(1, 7, Traffic::PAYLOAD as usize), frames::tcp_answer(true, ACK)],
            hosts_v4(network).map(|host| host.octets().to_vec()),
        )
    };
    let [client, server] = &hosts;
    for (frame, addresses) in packets.iter_mut().zip([[client, server], [server, client]]) {
        frame[..router.len()].copy_from_slice(&router);
        let (sources, addresses) =
            (if is_v6 { SOURCE_V6 } else { SOURCE } as usize, addresses.map(Vec::as_slice).concat());
        frame[sources..][..addresses.len()].copy_from_slice(&addresses);
        if !is_v6 {
            frame[IDENTIFICATION..][..2].copy_from_slice(&Traffic::IDENTIFICATION.to_be_bytes());
            frames::fill_in_checksum(frame);
        }
    }
    let end: [u8; 2] = std::array::from_fn(|at| client[client.len() - 2 + at]);
    Traffic {
        packets: packets.map(|frame| template(&frame, &[]).start),
        interfaces,
        flows,
        first: u32::from(network) * Traffic::MAX_FLOWS,
        clients: u16::from_be_bytes(end),
        is_v6: is_v6.into(),
        is_by_clock: is_by_clock.into(),
        is_opening: is_opening.into(),
        reserved: 0,
    }
}

/// Two packets, each with its first bytes and the numbers that change.
fn exchange(there: (&[u8], &[Field]), back: (&[u8], &[Field])) -> Exchange {
    Exchange { packets: [there, back].map(|(frame, fields)| template(frame, fields)) }
}

/// Shorter frames are padded: their headers say where they end.
fn template(frame: &[u8], fields: &[Field]) -> PacketTemplate {
    let mut template = PacketTemplate { start: [0; TEMPLATE_LEN], fields: [Field::NONE; 2] };
    template.start.iter_mut().zip(frame).for_each(|(to, from)| *to = *from);
    template.fields.iter_mut().zip(fields).for_each(|(to, from)| *to = *from);
    template
}

fn counted(at: u32, base: u32, step: u32) -> Field {
    Field { at, base, step, mask: u32::MAX }
}

/// The ports, one of which changes each time.
fn ports(step: u32, base: u32) -> Field {
    Field { at: PORTS, base, step, mask: 0xffff * step }
}

/// The identifier of an echo, which stays the same, and its sequence number.
fn echo_number() -> Field {
    Field { at: ECHO, base: 0x1234 << 16, step: 1, mask: 0xffff }
}

/// The UDP checksum, which is zero, and the DNS id.
fn dns_id() -> Field {
    Field { at: PAYLOAD - 2, base: 0, step: 1, mask: 0xffff }
}

/// The first byte of a short header, and the next ones.
fn spin() -> Field {
    Field { at: PAYLOAD, base: 0x40 << 24, step: 0x20 << 24, mask: 0x20 << 24 }
}

//! During floods of SYNs, and of SYNs with their SYN-ACKs, other flows are still measured.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use pping::kernel::load_options::LoadOptions;
use pping_common::{
    abi::RttEvent,
    arm::Arm,
    hash::{TableKeys, siphash},
    method::{Method, Methods},
    parse::{Address, IpAddress, Ipv4, Ipv6, LinkType, Untracked},
    rings::{self, RINGS},
    rtt::Rules,
};

use super::{
    frames::{ACK, Ip, PSH, SYN, TCP, Tcp, v4},
    rig::{Program, Rig, SETTINGS, samples},
};
use crate::frames::v6;

const MAX_FLOWS: u32 = 64;
const MAX_UNPROVED: u32 = 8;
/// Far more SYNs than fit, each from its own host.
const SYNS: u32 = 2_000;

/// A segment without options from one host to another.
fn segment(
    ends: (IpAddr, IpAddr),
    flags: u8,
    payload: usize,
    sequence: u32,
    acknowledgement: u32,
) -> Vec<u8> {
    let segment = Tcp { flags, sequence, acknowledgement, payload, ..Tcp::with_options([]) };
    Ip::between(ends.0, ends.1).frame(TCP, &segment.bytes())
}

/// Keys by which a test knows which prefixes share a ring.
pub(super) fn keys() -> TableKeys {
    let mut number = 0;
    TableKeys::random(|| {
        number += 1;
        siphash([1, 2], [number])
    })
}

/// The ring for what a host begins.
pub(super) fn ring(host: IpAddr) -> u32 {
    match host {
        IpAddr::V4(host) => rings::of(Ipv4::of(IpAddress::mapped(host.octets())), Arm::FIRST, &keys()),
        IpAddr::V6(host) => rings::of(Ipv6::of(IpAddress::from_bytes(host.octets())), Arm::FIRST, &keys()),
    }
}

/// A host of the prefix with this number, in the family of `like`.
fn elsewhere(like: IpAddr, prefix: u32, host: u8) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::from_bits(0x0a00_0000 + (prefix << 8) + u32::from(host)).into(),
        IpAddr::V6(_) => {
            Ipv6Addr::from_bits(0xfd << 120 | u128::from(prefix) << 72 | u128::from(host)).into()
        }
    }
}

/// A prefix whose hosts do not share the ring of `host`.
pub(super) fn prefix_apart_from(host: IpAddr) -> u32 {
    (0..100).find(|&prefix| ring(elsewhere(host, prefix, 1)) != ring(host)).unwrap()
}

/// A host of a prefix in the family of `like`, for a flood.
pub(super) fn of_prefix(like: IpAddr, prefix: u32) -> IpAddr {
    elsewhere(like, prefix, 1)
}

/// A SYN from a new host.
fn syn(number: u32) -> Vec<u8> {
    segment((Ipv4Addr::from_bits(0x0a00_0000 + number).into(), v4(2)), SYN, 0, number, 0)
}

#[test]
fn flood_evicts_the_oldest_unproved_flows_only() {
    let settings = LoadOptions { max_flows: MAX_FLOWS, max_unproved: MAX_UNPROVED, ..SETTINGS };
    let mut rig = Rig::with(settings, LinkType::Ethernet);
    let (there, mut back) = ((v4(1), v4(2)), 0);
    // All segments use the ports of the client's connection.
    let reply = |flags, payload, sequence, acknowledgement| {
        let segment =
            Tcp { ports: (443, 40_000), flags, payload, sequence, acknowledgement, ..Tcp::with_options([]) };
        Ip::between(v4(2), v4(1)).frame(TCP, &segment.bytes())
    };
    rig.send(Program::Egress, &segment(there, SYN, 0, 999, 0));
    rig.send(Program::Ingress, &reply(SYN | ACK, 0, 4_999, 1_000));
    rig.send(Program::Egress, &segment(there, ACK, 0, 1_000, 5_000));
    for number in 0..SYNS {
        if number % 100 == 0 {
            rig.send(Program::Egress, &segment(there, ACK | PSH, 10, 1_000 + back, 5_000));
            back += 10;
            rig.send(Program::Ingress, &reply(ACK, 0, 5_000, 1_000 + back));
        }
        rig.send(Program::Ingress, &syn(number));
    }
    let counters = super::rig::counters(&rig.kernel, rig.twin.interface_id);
    let measured = samples(&super::rig::events(&mut rig.kernel));
    let by = |method: Method| measured.iter().filter(|sample| sample.method == method as u8).count();
    assert_eq!((by(Method::TcpHandshake), by(Method::TcpSeq)), (2, 20), "the flood disturbed what goes on");
    assert_eq!(counters.untracked[Untracked::MapFull as usize], 0, "there was no room for some");
    assert_eq!(counters.entries_made[0], u64::from(SYNS) + 1);
    let left = counters.entries_made[0] - counters.entries_deleted[0];
    assert!(left <= u64::from(MAX_UNPROVED) + 1, "{left} flows are left");
    assert_eq!(counters.evicted, counters.entries_deleted[0]);
    // Another flow can still open and be measured.
    let other = (v4(3), v4(2));
    rig.send(Program::Egress, &segment(other, SYN, 0, 99, 0));
    let answer = Tcp {
        ports: (443, 40_000),
        flags: SYN | ACK,
        sequence: 7,
        acknowledgement: 100,
        payload: 0,
        ..Tcp::with_options([])
    };
    rig.send(Program::Ingress, &Ip::between(v4(2), v4(3)).frame(TCP, &answer.bytes()));
    assert_eq!(samples(&super::rig::events(&mut rig.kernel)).len(), 1);
}

/// If only timestamps are measured, SYNs without timestamps cannot fill the table.
#[test]
fn syn_without_timestamps_opens_no_flow_by_tcp_ts() {
    let rules = Rules { methods: Methods::NONE.with(Method::TcpTs), ..SETTINGS.rules };
    let mut rig = Rig::with(LoadOptions { rules, max_flows: MAX_FLOWS, ..SETTINGS }, LinkType::Ethernet);
    for number in 0..100 {
        rig.send(Program::Ingress, &syn(number));
    }
    rig.agree("a flood");
    assert_eq!(rig.twin.counters.entries_made, [0; 2]);
    assert_eq!(rig.twin.counters.untracked[Untracked::NoTimestamp as usize], 100);
}

/// A connection between two hosts, packet by packet.
#[derive(Clone, Copy)]
struct Connection {
    hosts: [IpAddr; 2],
    port: u16,
}

impl Connection {
    /// Sends a segment of one of the two hosts.
    fn send(&self, rig: &mut Rig, from: usize, flags: u8, numbers: [u32; 2], payload: usize) {
        let ports = if from == 0 { (self.port, 443) } else { (443, self.port) };
        let [sequence, acknowledgement] = numbers;
        let segment = Tcp { ports, flags, sequence, acknowledgement, payload, ..Tcp::with_options([]) };
        let program = if from == 0 { Program::Egress } else { Program::Ingress };
        let ip = Ip::between(self.hosts[from], self.hosts[1 - from]);
        rig.send(program, &ip.frame(TCP, &segment.bytes()));
    }

    /// The client asks for a connection.
    fn ask(&self, rig: &mut Rig) {
        self.send(rig, 0, SYN, [999, 0], 0);
    }

    /// The server grants it.
    fn answer(&self, rig: &mut Rig) {
        self.send(rig, 1, SYN | ACK, [4_999, 1_000], 0);
    }

    /// The client completes the handshake, and sends data.
    fn request(&self, rig: &mut Rig) {
        self.send(rig, 0, ACK, [1_000, 5_000], 0);
        self.send(rig, 0, ACK | PSH, [1_000, 5_000], 10);
    }

    /// The server acknowledges the data.
    fn acknowledge(&self, rig: &mut Rig) {
        self.send(rig, 1, ACK, [5_000, 1_010], 0);
    }
}

/// A rig whose rings have 16 places each.
fn rig_with_rings() -> Rig {
    rig_with_places(16)
}

/// A rig whose rings have this many places each.
fn rig_with_places(places: u32) -> Rig {
    let max_unproved = RINGS * places;
    let settings = LoadOptions { max_flows: 1024, max_unproved, table_keys: Some(keys()), ..SETTINGS };
    Rig::with(settings, LinkType::Ethernet)
}

/// Sends forged pairs of SYN and SYN-ACK, each for another prefix.
fn forge(rig: &mut Rig, like: IpAddr, numbers: impl Iterator<Item = u32>) {
    for number in numbers {
        let hosts = [elsewhere(like, number, 7), like];
        let pair = Connection { hosts, port: 9 };
        pair.ask(rig);
        pair.answer(rig);
    }
}

/// Returns how many samples a host's flows have given since the last call: of handshakes, and of sequence numbers.
fn of_method(rig: &mut Rig, host: IpAddr, what: &str) -> [usize; 2] {
    let host = match host {
        IpAddr::V4(host) => host.to_ipv6_mapped().octets(),
        IpAddr::V6(host) => host.octets(),
    };
    let measured = samples(&rig.agree(what));
    let of_host =
        |sample: &&RttEvent| [sample.endpoints.source, sample.endpoints.destination].contains(&host);
    [Method::TcpHandshake, Method::TcpSeq]
        .map(|method| measured.iter().filter(of_host).filter(|sample| sample.method == method as u8).count())
}

#[test]
fn forged_handshakes_take_the_places_of_forged_handshakes() {
    for [client, server] in [[v4(1), v4(2)], [v6(1), v6(2)]] {
        // A newcomer may leave out some of the places, so that 32 do not last for 32 newcomers.
        let mut rig = rig_with_places(32);
        for port in 0..100_u16 {
            let flood = u32::from(port) * 30;
            let honest = Connection { hosts: [client, server], port: 1_000 + port };
            honest.ask(&mut rig);
            forge(&mut rig, client, flood..flood + 15);
            honest.answer(&mut rig);
            honest.request(&mut rig);
            forge(&mut rig, client, flood + 15..flood + 30);
            honest.acknowledge(&mut rig);
            assert_eq!(of_method(&mut rig, server, "a connection in a flood"), [2, 1], "{server}, {port}");
        }
        let counters = rig.twin.counters;
        assert_eq!(counters.untracked[Untracked::MapFull as usize], 0, "there was no room for some");
        let left = counters.entries_made.iter().sum::<u64>() - counters.entries_deleted.iter().sum::<u64>();
        assert!((256..=256 + 100).contains(&left), "{left} flows are left");
    }
}

#[test]
fn whoever_has_one_prefix_takes_the_places_of_one_ring() {
    for [client, server] in [[v4(1), v4(2)], [v6(1), v6(2)]] {
        let mut rig = rig_with_rings();
        let slow = (0..16).map(|port| Connection { hosts: [client, server], port: 1_000 + port });
        slow.clone().for_each(|it| it.ask(&mut rig));
        let other = of_prefix(client, prefix_apart_from(client));
        for port in 0..3_000 {
            Connection { hosts: [other, server], port }.ask(&mut rig);
        }
        slow.for_each(|it| it.answer(&mut rig));
        assert_eq!(of_method(&mut rig, client, "slow answers"), [16, 0]);
        assert_eq!(rig.twin.counters.evicted, 3_000 - 16);
    }
}

#[test]
fn slow_answer_survives_proved_flows_of_its_prefix() {
    for [client, server] in [[v4(1), v4(2)], [v6(1), v6(2)]] {
        let mut rig = rig_with_rings();
        let slow = Connection { hosts: [client, server], port: 1_000 };
        slow.ask(&mut rig);
        for port in 0..200 {
            let quick = Connection { hosts: [client, server], port };
            quick.ask(&mut rig);
            quick.answer(&mut rig);
            quick.request(&mut rig);
            quick.acknowledge(&mut rig);
        }
        assert_eq!(of_method(&mut rig, client, "quick ones"), [400, 200]);
        slow.answer(&mut rig);
        assert_eq!(of_method(&mut rig, client, "the slow one"), [1, 0]);
        assert_eq!(rig.twin.counters.evicted, 0);
    }
}

/// Data of one end and the acknowledgements of the other prove a flow, even if its handshake was not seen. Segments of one
/// end alone do not.
#[test]
fn flows_that_were_there_before_are_proved_by_both_ends() {
    for [client, server] in [[v4(1), v4(2)], [v6(1), v6(2)]] {
        let mut rig = rig_with_rings();
        let both = Connection { hosts: [client, server], port: 1_000 };
        let one = Connection { hosts: [client, server], port: 1_001 };
        for it in [both, one] {
            it.send(&mut rig, 0, ACK | PSH, [1_000, 5_000], 10);
        }
        both.acknowledge(&mut rig);
        forge(&mut rig, client, 0..1_000);
        rig.agree("a flood");
        let before = rig.twin.counters.entries_made.iter().sum::<u64>();
        both.send(&mut rig, 0, ACK | PSH, [1_010, 5_000], 10);
        assert_eq!(rig.twin.counters.entries_made.iter().sum::<u64>(), before);
        one.send(&mut rig, 0, ACK | PSH, [1_010, 5_000], 10);
        assert_eq!(rig.twin.counters.entries_made.iter().sum::<u64>(), before + 1, "it begins again");
        both.send(&mut rig, 1, ACK, [5_000, 1_020], 0);
        assert_eq!(of_method(&mut rig, client, "afterwards"), [0, 1]);
    }
}

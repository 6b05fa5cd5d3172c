//! During a SYN flood, established flows are still measured.

use std::net::{IpAddr, Ipv4Addr};

use pping::kernel::load::LoadOptions;
use pping_common::{
    parse::{LinkType, Untracked},
    rtt::{Method, Methods, Rules},
};

use super::{
    frames::{ACK, Ip, PSH, SYN, TCP, Tcp, v4},
    rig::{Program, Rig, SETTINGS, samples},
};

const MAX_FLOWS: u32 = 64;
const MAX_UNANSWERED: u32 = 8;
/// Far more SYNs than fit, each from a host of its own.
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

/// A SYN from a new host.
fn syn(number: u32) -> Vec<u8> {
    segment((Ipv4Addr::from_bits(0x0a00_0000 + number).into(), v4(2)), SYN, 0, number, 0)
}

#[test]
fn in_a_flood_established_flows_stay_and_the_oldest_unanswered_make_room() {
    let settings = LoadOptions { max_flows: MAX_FLOWS, max_unanswered: MAX_UNANSWERED, ..SETTINGS };
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
        rig.send(Program::Ingress, &syn(number));
        if number % 100 == 0 {
            rig.send(Program::Egress, &segment(there, ACK | PSH, 10, 1_000 + back, 5_000));
            back += 10;
            rig.send(Program::Ingress, &reply(ACK, 0, 5_000, 1_000 + back));
        }
    }
    let counters = super::rig::counters(&rig.kernel, rig.twin.interface_id);
    let measured = samples(&super::rig::events(&mut rig.kernel));
    let by = |method: Method| measured.iter().filter(|sample| sample.method == method as u8).count();
    assert_eq!((by(Method::TcpHandshake), by(Method::TcpSeq)), (2, 20), "the flood disturbed what goes on");
    assert_eq!(counters.untracked[Untracked::MapFull as usize], 0, "there was no room for some");
    assert_eq!(counters.entries_made[0], u64::from(SYNS) + 1);
    let left = counters.entries_made[0] - counters.entries_deleted[0];
    assert!(left <= u64::from(MAX_UNANSWERED) + 1, "{left} flows are left");
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
fn syns_without_timestamps_open_no_flow_when_only_timestamps_are_measured() {
    let rules = Rules { methods: Methods::NONE.with(Method::TcpTs), ..SETTINGS.rules };
    let mut rig = Rig::with(LoadOptions { rules, max_flows: MAX_FLOWS, ..SETTINGS }, LinkType::Ethernet);
    for number in 0..100 {
        rig.send(Program::Ingress, &syn(number));
    }
    rig.agree("a flood");
    assert_eq!(rig.twin.counters.entries_made, [0; 2]);
    assert_eq!(rig.twin.counters.untracked[Untracked::NoTimestamp as usize], 100);
}

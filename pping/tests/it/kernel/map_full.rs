//! Flows beyond the room in the maps are counted, and known flows stay.

use std::net::{IpAddr, Ipv6Addr};

use pping::kernel::load_options::LoadOptions;
use pping_common::{
    abi::Lost,
    hash::TableKeys,
    limits::UNANSWERED_IDLE_SECONDS,
    parse::{LinkType, Untracked},
};

use super::{
    frames::{echo, v4, v6},
    rig::{Program, Rig, SETTINGS, samples},
};

const MAX_FLOWS: u32 = 16;

/// Sends a request and its reply on the flow with this number, in each family.
fn ping(rig: &mut Rig, number: u16, sequence: u16) {
    for [a, b] in [[v4(1), v4(2)], [v6(1), v6(2)]] {
        rig.send(Program::Egress, &echo(a, b, number, sequence, false));
        rig.send(Program::Ingress, &echo(b, a, number, sequence, true));
    }
}

#[test]
fn flows_without_room_are_counted_and_the_others_go_on() {
    let mut rig = Rig::with(LoadOptions { max_flows: MAX_FLOWS, ..SETTINGS }, LinkType::Ethernet);
    for number in 0..40 {
        ping(&mut rig, number, 1);
        let reported = rig.agree(&format!("flow {number}"));
        let expected = if u32::from(number) < MAX_FLOWS { 2 } else { 0 };
        assert_eq!(samples(&reported).len(), expected, "flow {number}");
    }
    assert_eq!(rig.twin.counters.entries_made, [u64::from(MAX_FLOWS); 2]);
    assert_eq!(rig.twin.counters.untracked[Untracked::MapFull as usize], 2 * 24);
    assert_eq!(rig.twin.counters.untracked[Untracked::NoFlow as usize], 2 * 24);
    for number in 0..MAX_FLOWS as u16 {
        ping(&mut rig, number, 2);
        assert_eq!(samples(&rig.agree("flows with room")).len(), 2, "flow {number}");
    }
    assert_eq!(rig.twin.counters.lost[Lost::Rtt as usize], 0);
}

#[test]
fn there_is_room_again_after_a_sweep() {
    let mut rig = Rig::with(LoadOptions { max_flows: MAX_FLOWS, ..SETTINGS }, LinkType::Ethernet);
    for number in 0..40 {
        ping(&mut rig, number, 1);
    }
    rig.agree("before the sweep");
    for _ in 0..=UNANSWERED_IDLE_SECONDS {
        rig.sweep();
    }
    rig.agree_in_any_order("the sweep");
    assert_eq!(rig.twin.counters.entries_deleted, [u64::from(MAX_FLOWS); 2]);
    for number in 20..20 + MAX_FLOWS as u16 {
        ping(&mut rig, number, 2);
        assert_eq!(samples(&rig.agree("after the sweep")).len(), 2, "flow {number}");
    }
}

/// Sends an echo between two hosts, and asserts that it is measured.
fn is_measured(rig: &mut Rig, [a, b]: [IpAddr; 2], number: u16) {
    rig.send(Program::Egress, &echo(a, b, number, 1, false));
    rig.send(Program::Ingress, &echo(b, a, number, 1, true));
    assert_eq!(samples(&rig.agree("an echo")).len(), 1, "{a} and {b}, {number}");
}

#[test]
fn highest_address_bits_distinguish_flows() {
    let mut rig = Rig::with(LoadOptions { max_flows: MAX_FLOWS, ..SETTINGS }, LinkType::Ethernet);
    let IpAddr::V6(victim) = v6(2) else { unreachable!() };
    for bits in 0..8_u128 {
        let flipped = (bits & 1) << 127 | (bits >> 1 & 1) << 63 | (bits >> 2 & 1) << 31;
        is_measured(&mut rig, [v6(1), Ipv6Addr::from_bits(victim.to_bits() ^ flipped).into()], 1);
    }
}

#[test]
fn flows_with_equal_tags_are_flows_of_their_own() {
    let mut number = 0;
    let keys = TableKeys::random(|| {
        number += 0x0123_4567_89ab_cdef;
        number
    });
    let table_keys = Some(keys.with_equal_thirds());
    let mut rig = Rig::with(LoadOptions { table_keys, ..SETTINGS }, LinkType::Ethernet);
    for number in 0..20 {
        is_measured(&mut rig, [v4(1), v4(2)], number);
        is_measured(&mut rig, [v6(1), v6(2)], number);
    }
}

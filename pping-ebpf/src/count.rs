//! Counts packets in this CPU's counters of an interface.

use pping_common::{
    abi::{Counters, PacketCounters, PacketProgram, Timed},
    parse::{Direction, Protocol, Untracked},
};

use crate::{cost, shared::prelude::*};

/// Counts a packet on this CPU, as [`Counters::packet`] does. Each packet is counted here once, so the count also decides
/// which packets are timed.
#[inline(always)]
pub(crate) fn packet(
    counters: Shared<Counters>,
    program: PacketProgram,
    direction: Direction,
    protocol: Protocol,
    len: usize,
    traffic_class: u8,
) {
    let traffic = counters.at(field!(Counters, traffic));
    let line = traffic.element(direction as usize).element(protocol as usize);
    let codepoint = PacketCounters::codepoint(traffic_class);
    let packets = line.at(field!(PacketCounters, by_ecn)).element(codepoint);
    let count = packets.read().wrapping_add(1);
    packets.write(count);
    line.at(field!(PacketCounters, bytes)).count(len as u64);
    if Timed::is_next(count) {
        cost::schedule_next(program);
    }
}

/// Counts why a packet is not measured.
#[inline(always)]
pub(crate) fn untracked(counters: Shared<Counters>, reason: Untracked) {
    counters.at(field!(Counters, untracked)).element(reason as usize).count(1);
}

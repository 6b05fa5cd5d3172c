//! Forwarding time: from the ingress program of one watched interface to the egress program of another. Only TCP
//! segments that are recorded have one.
//!
//! A segment is recognised by what NAT leaves alone: sequence and acknowledgement number, TSval and `TSecr`. Their hash selects
//! an entry. An incoming segment writes its time there, over that of any segment before, and an outgoing one looks there.

use pping_common::{
    abi::{Part, Passing, Residence},
    hash::mix,
    limits::{MAX_PASSING, SECOND},
    parse::{Direction, Kind, Transport},
};

use super::count;
use crate::{maps, shared::prelude::*};

/// The longest forwarding time, ns; resolving a neighbour's address takes less. After a longer time, this host dropped the
/// segment that came in, and the segment that leaves is a retransmission that carries the same.
const MAX_FORWARDING: u64 = 5 * SECOND;

/// Writes the time of an incoming segment that is recorded, or takes the time of an outgoing one.
#[inline(always)]
pub(crate) fn pass(
    direction: Direction,
    interface_id: u16,
    transport: &Transport,
    now: u64,
    is_recorded: bool,
) {
    let segment = &transport.segment;
    // Without timestamps, a retransmission looks like the first transmission.
    if transport.kind != Kind::Tcp || !segment.has_timestamps {
        return;
    }
    let word = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let numbers = mix(0, word(segment.sequence, segment.acknowledgement));
    let content = mix(numbers, word(segment.timestamps.tsval, segment.timestamps.tsecr));
    let index = (content >> (u64::BITS - MAX_PASSING.ilog2())) as u32;
    let Some(entry) = maps::passing(index) else { return };
    match direction {
        Direction::Ingress if is_recorded => arrive(entry, interface_id, content, now),
        Direction::Ingress => {}
        Direction::Egress => leave(entry, interface_id, content, now),
    }
}

#[inline(always)]
fn arrive(entry: Shared<Passing>, interface_id: u16, content: u64, now: u64) {
    entry.at(field!(Passing, time)).write(now);
    entry.at(field!(Passing, content)).write(content ^ now);
    entry.at(field!(Passing, interface_id)).write(u64::from(interface_id) ^ now);
}

#[inline(always)]
fn leave(entry: Shared<Passing>, interface_id: u16, content: u64, now: u64) {
    let time = entry.at(field!(Passing, time)).read();
    let from = entry.at(field!(Passing, interface_id)).read() ^ time;
    let is_it = time != 0 && entry.at(field!(Passing, content)).read() ^ time == content;
    if !is_it || from == u64::from(interface_id) || now < time {
        return;
    }
    entry.at(field!(Passing, time)).write(0);
    if now - time > MAX_FORWARDING {
        return;
    }
    if let Some(residence) = maps::residence(Part::Forwarding.index(interface_id)) {
        residence.at(field!(Residence, followed)).add(1);
    }
    count(Part::Forwarding, interface_id, now - time);
}

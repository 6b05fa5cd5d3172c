//! The fast path: TCP segments in the middle of a connection, most of which only need to be counted, and UDP datagrams
//! while nothing is measured by UDP.
//!
//! For [common packets](Frame::parse_fast) it does what [`crate::track`] does for all packets, but in registers. It
//! writes to the scratch space only if the packet may match or record.

use pping_common::{
    abi::{Interface, PacketProgram},
    bytes::Bytes as _,
    flow::FlowKey,
    method::Method,
    parse::{Decap, Direction, Family, Frame, Ipv4, Ipv6, LinkType, Protocol, Untracked},
    rtt::PossibleChange,
    table::Candidates,
};

use crate::{
    bytes::Linear,
    config, count,
    maps::{self, Flows},
    shared::prelude::*,
    table, track,
};

/// What the fast path did with a packet.
pub(crate) enum Handled {
    /// It did nothing: the packet takes the slow path.
    No,
    /// It counted the packet, and [`step`](crate::step::step) has to follow.
    MatchDue(Family),
    /// It counted the packet, and nothing is left to do.
    Done,
}

/// Counts a common datagram; `false` if the packet is not one. For use only if [`has_no_udp`] is true.
#[inline(always)]
pub(crate) fn count_datagram(
    program: PacketProgram,
    direction: Direction,
    interface: Shared<Interface>,
    packet: &Linear,
) -> bool {
    if link_type(interface) != LinkType::Ethernet {
        return false;
    }
    let traffic_class = match Frame::peek_family(packet) {
        Some(Family::V4) => Frame::parse_fast_udp::<Ipv4>(packet),
        Some(Family::V6) => Frame::parse_fast_udp::<Ipv6>(packet),
        None => None,
    };
    let (Some(traffic_class), Some(counters)) = (traffic_class, maps::counters(id(interface))) else {
        return false;
    };
    count::packet(counters, program, direction, Protocol::Udp, packet.frame_len(), traffic_class);
    count::untracked(counters, Untracked::Unsupported);
    true
}

/// True if nothing is measured by UDP, and nothing inside tunnels.
#[inline(always)]
pub(crate) fn has_no_udp() -> bool {
    !config::rules().methods.has_udp() && config::decap() == Decap::NONE
}

/// Counts a packet by its first headers only, because the slow path is not loaded.
#[inline(always)]
pub(crate) fn count_not_loaded(
    program: PacketProgram,
    direction: Direction,
    interface: Shared<Interface>,
    packet: &Linear,
) {
    let Some(counters) = maps::counters(id(interface)) else { return };
    let (protocol, traffic_class) = Frame::peek_protocol(packet, link_type(interface));
    count::packet(counters, program, direction, protocol, packet.frame_len(), traffic_class);
    count::untracked(counters, Untracked::NotLoaded);
}

/// Counts that a packet was not matched, because the stage for it is not loaded. The packet itself is already counted.
#[inline(always)]
pub(crate) fn count_unmatched(interface_id: u16) {
    if let Some(counters) = maps::counters(interface_id) {
        count::untracked(counters, Untracked::NotLoaded);
    }
}

/// Counts a packet, if it is a common one.
#[inline(always)]
pub(crate) fn count(
    program: PacketProgram,
    direction: Direction,
    interface: Shared<Interface>,
    packet: &Linear,
) -> Handled {
    let methods = config::rules().methods;
    // If timestamps and sequence numbers are both timed, most packets record something.
    let has_fast_path = methods.has_tcp() && !methods.has_both();
    if !has_fast_path || link_type(interface) != LinkType::Ethernet {
        return Handled::No;
    }
    match Frame::peek_family(packet) {
        Some(Family::V4) => count_family::<Ipv4>(program, direction, interface, packet),
        Some(Family::V6) => count_family::<Ipv6>(program, direction, interface, packet),
        None => Handled::No,
    }
}

#[inline(always)]
fn count_family<A: Flows>(
    program: PacketProgram,
    direction: Direction,
    interface: Shared<Interface>,
    packet: &Linear,
) -> Handled {
    let Some(frame) = Frame::parse_fast::<A>(packet) else { return Handled::No };
    let transport = &frame.transport;
    // Without `tcp-seq`, the slow path counts segments without timestamps as such.
    if !transport.segment.has_timestamps && !config::rules().methods.has(Method::TcpSeq) {
        return Handled::No;
    }
    let interface_id = id(interface);
    let (key, from) = FlowKey::<A>::new(joined_id(interface, interface_id), &frame);
    let buckets = interface.at(field!(Interface, buckets)).element(A::FAMILY as usize).read();
    let candidates = Candidates::of(&key, config::table_keys(), buckets);
    let sweep = interface.at(field!(Interface, sweep)).read();
    let Some(flow) = table::lookup_and_touch(&key, &candidates, sweep) else { return Handled::No };
    let snapshot = flow.snapshot(from);
    // The slow path asks whether the numbers fit: inlined here, that cost every segment 10 ns (docs/lab/performance.md).
    if !snapshot.is_expected(&transport.segment) {
        return Handled::No;
    }
    let Some(counters) = maps::counters(interface_id) else { return Handled::Done };
    count::packet(counters, program, direction, Protocol::Tcp, packet.frame_len(), frame.traffic_class);
    let has_two_arms = interface.at(field!(Interface, has_two_arms)).read();
    let progress = track::count(flow, &snapshot, from, direction, &frame, counters, has_two_arms, true);
    track::count_unusable(&snapshot, from, transport, progress, counters);
    let possible_change = track::possible_change(flow, &snapshot, from, transport, progress, true);
    if let Some(reason) = progress.untracked()
        && possible_change == PossibleChange::Nothing
    {
        count::untracked(counters, reason);
        return Handled::Done;
    }
    if possible_change == PossibleChange::Nothing
        || track::is_rate_limited(flow, &snapshot, from, possible_change, transport, || flow.has_key(&key))
    {
        return Handled::Done;
    }
    // SAFETY: the caller asks for it only after this.
    let Some(scratch) = (unsafe { maps::scratch() }) else { return Handled::Done };
    // Looks the flow up again, to learn its slot.
    if table::lookup(&key, &candidates, &mut scratch.flow.slot, &mut scratch.flow.occupant).is_none() {
        return Handled::Done;
    }
    scratch.packet.frame.copy_fast(&frame);
    scratch.outcome.progress = progress;
    scratch.flow.from = from;
    Handled::MatchDue(A::FAMILY)
}

#[inline(always)]
fn id(interface: Shared<Interface>) -> u16 {
    interface.at(field!(Interface, id)).read()
}

/// The id of an interface in flows and series, by that in counters.
#[inline(always)]
pub(crate) fn joined_id(interface: Shared<Interface>, id: u16) -> u16 {
    Interface::joined_id(id, interface.at(field!(Interface, later.joined)).read())
}

#[inline(always)]
fn link_type(interface: Shared<Interface>) -> LinkType {
    Interface::link_type_of(interface.at(field!(Interface, link_type)).read())
}

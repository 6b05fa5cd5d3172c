//! The stages of a packet: the attached program, and the stages that it calls for what it does not do itself. See [`Stage`].

use pping_common::{
    abi::{Interface, PacketProgram, Stage},
    bytes::Bytes,
    method::Method,
    parse::{Direction, Family, Frame, Ipv4, Ipv6, Kind, LinkType, Untracked, Vlan},
};

use crate::{
    barrier::barrier_var,
    config, copies, cost, count, dns,
    fast_path::{self, Handled},
    lease,
    maps::{self, Flows, Scratch},
    packet_context::PacketContext,
    shared::prelude::*,
    step,
    track::track,
};

/// Watches a packet: counts it if it is a common one, and calls the stage that any other packet needs.
#[inline(always)]
pub fn watch(context: &impl PacketContext, direction: Direction) {
    let program = context.program(direction);
    cost::begin(program);
    let Some(interface) = maps::interface(context.ifindex()).filter(|&it| lease::is_good(it)) else { return };
    handle(context, program, direction, interface);
    cost::end(program, || interface.at(field!(Interface, id)).read());
}

#[inline(always)]
fn handle(
    context: &impl PacketContext,
    program: PacketProgram,
    direction: Direction,
    interface: Shared<Interface>,
) {
    // Only the slow path tells copies.
    let has_fast_path = config::copies_within() == 0;
    if has_fast_path
        && fast_path::has_no_udp()
        && fast_path::count_datagram(program, direction, interface, &context.linear())
    {
        return;
    }
    let handled = if has_fast_path {
        fast_path::count(program, direction, interface, &context.linear())
    } else {
        Handled::No
    };
    if let Handled::Done = handled {
        return;
    }
    // SAFETY: the only reference to it in this stage.
    let Some(scratch) = (unsafe { maps::scratch() }) else { return };
    scratch.packet.direction = direction;
    scratch.packet.interface_id = interface.at(field!(Interface, id)).read();
    scratch.packet.joined_id = fast_path::joined_id(interface, scratch.packet.interface_id);
    scratch.packet.frame.vlan = context.vlan();
    match handled {
        Handled::Done => {}
        Handled::MatchDue(family) => call_step(context, family, scratch.packet.interface_id),
        Handled::No => {
            scratch.packet.link_type = interface.at(field!(Interface, link_type)).read();
            scratch.packet.sweep = interface.at(field!(Interface, sweep)).read();
            scratch.packet.has_two_arms = interface.at(field!(Interface, has_two_arms)).read();
            for family in Family::ALL.map(|family| family as usize) {
                scratch.packet.buckets[family] =
                    interface.at(field!(Interface, buckets)).element(family).read();
            }
            context.call(Stage::Slow);
            fast_path::count_not_loaded(program, direction, interface, &context.linear());
        }
    }
}

/// The stage [`Stage::Slow`].
#[inline(always)]
pub fn slow(context: &impl PacketContext) {
    // SAFETY: the only reference to it in this stage.
    let Some(scratch) = (unsafe { maps::scratch() }) else { return };
    let vlan = scratch.packet.frame.vlan;
    let link = Interface::link_type_of(scratch.packet.link_type);
    scratch.packet.parsed = parse(&context.bytes(), link, vlan, &mut scratch.packet.frame);
    barrier_var(scratch);
    if config::copies_within() == 0 {
        count_parsed(context, scratch);
    } else {
        context.call(Stage::Copies);
        fast_path::count_unmatched(scratch.packet.interface_id);
    }
}

/// The stage [`Stage::Copies`].
#[inline(always)]
pub fn tell_copies(context: &impl PacketContext) {
    if config::copies_within() == 0 {
        return;
    }
    // SAFETY: the only reference to it in this stage.
    let Some(scratch) = (unsafe { maps::scratch() }) else { return };
    if scratch.packet.parsed.is_ok() && copies::is_copy(&context.bytes(), scratch) {
        scratch.packet.parsed = Err(Untracked::Duplicate);
    }
    barrier_var(scratch);
    count_parsed(context, scratch);
}

/// Counts a packet that was parsed, and calls the stage that its flow needs.
#[inline(always)]
fn count_parsed(context: &impl PacketContext, scratch: &mut Scratch) {
    let direction = context.direction(scratch.packet.direction);
    let (program, interface_id) = (context.program(direction), scratch.packet.interface_id);
    match count(program, direction, context.linear().frame_len(), scratch) {
        Some(Next::Step(family)) => call_step(context, family, interface_id),
        Some(Next::Report(family)) => call_networks(context, family, interface_id),
        None => {}
    }
    cost::end(program, || interface_id);
}

/// The stage [`Stage::StepV4`].
#[inline(always)]
pub fn step_v4(context: &impl PacketContext) {
    step::<Ipv4>(context);
}

/// The stage [`Stage::StepV6`].
#[inline(always)]
pub fn step_v6(context: &impl PacketContext) {
    step::<Ipv6>(context);
}

#[inline(always)]
fn step<A: Flows>(context: &impl PacketContext) {
    // SAFETY: the only reference to it in this stage.
    let Some(scratch) = (unsafe { maps::scratch() }) else { return };
    let direction = context.direction(scratch.packet.direction);
    let interface_id = scratch.packet.interface_id;
    let Some(counters) = maps::counters(scratch.packet.joined_id) else { return };
    if step::step::<A>(counters, scratch) {
        call_networks(context, A::FAMILY, interface_id);
    }
    cost::end(context.program(direction), || interface_id);
}

/// The stage [`Stage::ReportV4`].
#[inline(always)]
pub fn report_v4(context: &impl PacketContext) {
    report::<Ipv4>(context);
}

/// The stage [`Stage::ReportV6`].
#[inline(always)]
pub fn report_v6(context: &impl PacketContext) {
    report::<Ipv6>(context);
}

#[inline(always)]
fn report<A: Flows>(context: &impl PacketContext) {
    // SAFETY: the only reference to it in this stage.
    let Some(scratch) = (unsafe { maps::scratch() }) else { return };
    let direction = context.direction(scratch.packet.direction);
    let interface_id = scratch.packet.interface_id;
    let Some(counters) = maps::counters(scratch.packet.joined_id) else { return };
    if is_dns(scratch) {
        dns::report::<A>(direction, counters, scratch);
    } else {
        step::report::<A>(direction, counters, scratch);
    }
    cost::end(context.program(direction), || interface_id);
}

/// Calls the stage that matches and records in a flow of this family.
#[inline(always)]
fn call_step(context: &impl PacketContext, family: Family, interface_id: u16) {
    // Each call has a constant number: so the kernel makes it a jump.
    match family {
        Family::V4 => context.call(Stage::StepV4),
        Family::V6 => context.call(Stage::StepV6),
    }
    fast_path::count_unmatched(interface_id);
}

/// The stage [`Stage::NetworksV4`].
#[inline(always)]
pub fn networks_v4(context: &impl PacketContext) {
    networks::<Ipv4>(context);
}

/// The stage [`Stage::NetworksV6`].
#[inline(always)]
pub fn networks_v6(context: &impl PacketContext) {
    networks::<Ipv6>(context);
}

#[inline(always)]
fn networks<A: Flows>(context: &impl PacketContext) {
    if !config::has_networks() {
        return;
    }
    // SAFETY: the only reference to it in this stage.
    let Some(scratch) = (unsafe { maps::scratch() }) else { return };
    let direction = context.direction(scratch.packet.direction);
    let interface_id = scratch.packet.interface_id;
    let Some(counters) = maps::counters(scratch.packet.joined_id) else { return };
    if is_dns(scratch) {
        dns::count_for_network(direction, counters, scratch);
    } else {
        step::count_for_network::<A>(direction, counters, scratch);
    }
    barrier_var(scratch);
    call_report(context, A::FAMILY, interface_id);
}

/// Calls the stage that counts what a packet of this family gave for its network, if networks are counted, or else the one that
/// reports it.
#[inline(always)]
fn call_networks(context: &impl PacketContext, family: Family, interface_id: u16) {
    if !config::has_networks() {
        return call_report(context, family, interface_id);
    }
    match family {
        Family::V4 => context.call(Stage::NetworksV4),
        Family::V6 => context.call(Stage::NetworksV6),
    }
    fast_path::count_unmatched(interface_id);
}

/// Calls the stage that reports what a packet of this family gave.
#[inline(always)]
fn call_report(context: &impl PacketContext, family: Family, interface_id: u16) {
    match family {
        Family::V4 => context.call(Stage::ReportV4),
        Family::V6 => context.call(Stage::ReportV6),
    }
    fast_path::count_unmatched(interface_id);
}

/// Whether a packet that was parsed is a message of DNS, and these are measured.
#[inline(always)]
fn is_dns(scratch: &Scratch) -> bool {
    config::rules().methods.has(Method::Dns) && scratch.packet.frame.transport.kind == Kind::Dns
}

/// The stage that a packet needs.
enum Next {
    /// The one that matches and records in its flow, of this family.
    Step(Family),
    /// The one that reports what it gave.
    Report(Family),
}

/// Parses a packet, in steps that are verified one after the other.
///
/// # Errors
/// If the packet cannot be measured; the error says why.
#[inline(always)]
pub fn parse(packet: &impl Bytes, link: LinkType, vlan: Vlan, frame: &mut Frame) -> Result<(), Untracked> {
    frame.parse_link(packet, link, vlan)?;
    barrier_var(frame);
    frame.parse_network(packet)?;
    barrier_var(frame);
    let decap = config::decap();
    if frame.enter_tunnel(packet, decap)? {
        barrier_var(frame);
        frame.parse_network(packet)?;
        barrier_var(frame);
        frame.reject_nested_tunnel(packet, decap)?;
    }
    barrier_var(frame);
    let parsed = frame.parse_transport(packet, config::scope());
    barrier_var(frame);
    parsed
}

/// Counts a packet that was parsed, and finds its flow or query. Returns the stage that has to follow, if any.
#[inline(always)]
fn count(program: PacketProgram, direction: Direction, len: usize, scratch: &mut Scratch) -> Option<Next> {
    let counters = maps::counters(scratch.packet.interface_id)?;
    count::packet(
        counters,
        program,
        direction,
        scratch.packet.frame.protocol,
        len,
        scratch.packet.frame.traffic_class,
    );
    barrier_var(scratch);
    let is_dns = is_dns(scratch);
    let family = scratch.packet.frame.family;
    let report = |has_sample: bool| has_sample.then_some(Next::Report(family));
    let tracked = match (scratch.packet.parsed, family) {
        (Ok(()), Family::V4) if is_dns => dns::message::<Ipv4>(direction, scratch).map(report),
        (Ok(()), Family::V6) if is_dns => dns::message::<Ipv6>(direction, scratch).map(report),
        (Ok(()), Family::V4) => track::<Ipv4>(direction, counters, scratch).map(|it| it.map(Next::Step)),
        (Ok(()), Family::V6) => track::<Ipv6>(direction, counters, scratch).map(|it| it.map(Next::Step)),
        (Err(reason), _) => Err(reason),
    };
    tracked.unwrap_or_else(|reason| {
        count::untracked(counters, reason);
        None
    })
}

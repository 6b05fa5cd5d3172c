//! The way of every packet: fast path, or parse, count and track.

use aya_ebpf::programs::{TcContext, XdpContext};
use pping_common::{
    abi::Direction,
    bytes::Bytes,
    flow::{Ipv4, Ipv6},
    parse::{Family, Frame, Kind, LinkType, Protocol, Untracked, Vlan},
    rtt::Method,
};

use crate::{
    bounds::within,
    bytes::{Linear, Scattered},
    config, dns,
    fast_path::{self, Handled},
    launder::{launder, launder_ptr},
    lease,
    maps::{self, Scratch},
    track::{step_due, track},
};

/// Takes a packet at XDP.
#[inline(always)]
pub fn observe_xdp(ctx: &XdpContext) {
    // SAFETY: the context is valid, and the verifier knows this field as readable.
    let ifindex = unsafe { (*ctx.ctx).ingress_ifindex };
    let Some(interface) = maps::interface(ifindex).filter(|_| lease::is_good()) else { return };
    if fast_path::has_no_udp()
        && fast_path::count_datagram(Direction::Ingress, interface, &Linear::of_xdp_laundered(ctx))
    {
        return;
    }
    let packet = Linear::of_xdp(ctx);
    let way = fast_path::count(Direction::Ingress, interface, &packet);
    if let Handled::Done = way {
        return;
    }
    let Some(scratch) = maps::scratch() else { return };
    scratch.frame.vlan = Vlan::NONE;
    let due = match way {
        Handled::Done => None,
        Handled::MatchDue(family) => Some(family),
        Handled::No => {
            // Laundered, so that the verifier forgets how far the fast path read.
            let packet = Linear::of_xdp_laundered(ctx);
            scratch.parsed = parse(&packet, interface.link_type(), Vlan::NONE, &mut scratch.frame);
            observe(Direction::Ingress, interface.id, packet.frame_len(), scratch)
        }
    };
    if let Some(family) = due {
        go_on(Direction::Ingress, interface.id, scratch, family);
    }
}

/// Takes a packet at tc.
#[inline(always)]
pub fn observe_skb(ctx: &TcContext, direction: Direction) {
    let skb = ctx.skb.skb;
    // SAFETY: the context is valid, and the verifier knows this field as readable.
    let ifindex = unsafe { (*skb).ifindex };
    let Some(interface) = maps::interface(ifindex).filter(|_| lease::is_good()) else { return };
    if fast_path::has_no_udp()
        && fast_path::count_datagram(direction, interface, &Linear::of_sk_buff(launder_ptr(skb)))
    {
        return;
    }
    let packet = Linear::of_skb(ctx);
    let way = fast_path::count(direction, interface, &packet);
    if let Handled::Done = way {
        return;
    }
    let Some(scratch) = maps::scratch() else { return };
    let mut vlan = Vlan::NONE;
    // SAFETY: as above.
    if unsafe { (*skb).vlan_present } != 0 {
        // SAFETY: as above.
        vlan.push(unsafe { (*skb).vlan_tci } as u16);
    }
    scratch.frame.vlan = vlan;
    let due = match way {
        Handled::Done => None,
        Handled::MatchDue(family) => Some(family),
        Handled::No => {
            scratch.parsed = parse(&Scattered(ctx), interface.link_type(), vlan, &mut scratch.frame);
            observe(direction, interface.id, packet.frame_len(), scratch)
        }
    };
    if let Some(family) = due {
        go_on(direction, interface.id, scratch, family);
    }
}

/// Parses a packet, in steps that are verified one after the other.
///
/// # Errors
/// Why the packet cannot be measured.
#[inline(always)]
pub fn parse(packet: &impl Bytes, link: LinkType, vlan: Vlan, frame: &mut Frame) -> Result<(), Untracked> {
    frame.parse_link(packet, link, vlan)?;
    launder(frame);
    frame.parse_network(packet)?;
    launder(frame);
    let decap = config::decap();
    if frame.enter_tunnel(packet, decap)? {
        launder(frame);
        frame.parse_network(packet)?;
        launder(frame);
        frame.refuse_tunnel(packet, decap)?;
    }
    launder(frame);
    frame.parse_transport(packet, config::scope())
}

/// Counts a packet that was parsed, and finds its flow or query. Returns the family of its flow if [`step_due`] has to follow.
#[inline(always)]
fn observe(direction: Direction, interface_id: u16, len: usize, scratch: &mut Scratch) -> Option<Family> {
    launder(scratch);
    let counters = maps::counters(interface_id)?;
    // SAFETY: this CPU's own counters, and softirqs are off while a packet is handled: only the sweep adds to them meanwhile,
    // atomically.
    let counters = unsafe { &mut *counters };
    let protocol = within::<{ Protocol::COUNT }>(scratch.frame.protocol as usize);
    counters.packet(direction, protocol, len, scratch.frame.traffic_class);
    let is_dns = config::rules().methods.has(Method::Dns) && scratch.frame.transport.kind == Kind::Dns;
    let tracked = match (scratch.parsed, scratch.frame.family) {
        (Ok(()), Family::V4) if is_dns => {
            dns::message::<Ipv4>(direction, interface_id, counters, scratch).map(|()| None)
        }
        (Ok(()), Family::V6) if is_dns => {
            dns::message::<Ipv6>(direction, interface_id, counters, scratch).map(|()| None)
        }
        (Ok(()), Family::V4) => track::<Ipv4>(direction, interface_id, counters, scratch),
        (Ok(()), Family::V6) => track::<Ipv6>(direction, interface_id, counters, scratch),
        (Err(reason), _) => Err(reason),
    };
    tracked.unwrap_or_else(|reason| {
        counters.untracked[within::<{ Untracked::COUNT }>(reason as usize)] += 1;
        None
    })
}

/// Calls [`step_due`] for a flow of this family.
#[inline(always)]
fn go_on(direction: Direction, interface_id: u16, scratch: &mut Scratch, family: Family) {
    let Some(counters) = maps::counters(interface_id) else { return };
    // SAFETY: as above.
    let counters = unsafe { &mut *counters };
    match family {
        Family::V4 => step_due::<Ipv4>(direction, interface_id, counters, scratch),
        Family::V6 => step_due::<Ipv6>(direction, interface_id, counters, scratch),
    }
}

//! What is told of flows that a sweep deletes.

use pping_common::{
    abi::{Control, Counters, Emit, EndEvent, Endpoints, FlowEventKind, Lost, TriggeredBy},
    flow::{Endpoint, Flow, FlowKey, Lifecycle, Reason},
    limits::{SECOND, SWEEP_INTERVAL_SECONDS},
    parse::{Datagram, Protocol, Segment},
};

use super::Sweep;
use crate::{config, emit, maps::Flows, sync};

/// Reports a flow that has been idle too long, and is deleted.
#[inline(always)]
pub(super) fn expire<A: Flows>(
    key: &FlowKey<A>,
    flow: &Flow,
    sweep: &Sweep,
    counters: &mut Counters,
) -> bool {
    let is_open = |endpoint| flow.direction(endpoint).lifecycle == Lifecycle::Open;
    let (low_open, high_open) = (is_open(Endpoint::Low), is_open(Endpoint::High));
    let mut lost = 0;
    if config::emit().has(Emit::FLOWS) {
        if low_open {
            lost += u64::from(!timeout(sweep, high_to_low(key)));
        }
        if high_open {
            lost += u64::from(!timeout(sweep, high_to_low(key).reversed()));
        }
    }
    if config::emit().has(Emit::ENDS) {
        let is_sent = end(key, flow, sweep);
        sync::add(&raw mut counters.lost[Lost::End as usize], u64::from(!is_sent));
    }
    sync::add(&raw mut counters.closed[Reason::Timeout as usize], u64::from(low_open || high_open));
    sync::add(&raw mut counters.lost[Lost::Flow as usize], lost);
    true
}

/// Reports a flow though it may not have ended, and is deleted. `false` if there is no room to report it, and time to wait for
/// some: it stays.
#[inline(always)]
pub(super) fn cut_off<A: Flows>(
    key: &FlowKey<A>,
    flow: &Flow,
    sweep: &Sweep,
    counters: &mut Counters,
) -> bool {
    if config::emit().has(Emit::ENDS) && !end(key, flow, sweep) {
        if sweep.cut_off == Control::OVER {
            return false;
        }
        sync::add(&raw mut counters.lost[Lost::End as usize], 1);
    }
    true
}

#[inline(always)]
fn end<A: Flows>(key: &FlowKey<A>, flow: &Flow, sweep: &Sweep) -> bool {
    let (first, began) = flow.beginning();
    let idle = u64::from(sweep.number.wrapping_sub(flow.last_seen) * SWEEP_INTERVAL_SECONDS) * SECOND;
    let last_packet = sweep.now.saturating_sub(idle).max(flow.last_known());
    let (reason, ended) = match flow.closed_at {
        0 if sweep.cut_off != 0 => (EndEvent::STILL_OPEN, last_packet),
        0 => (Reason::Timeout as u8, last_packet),
        closed_at => (flow.closed_by as u8, closed_at),
    };
    let endpoints = match first {
        Endpoint::Low => high_to_low(key),
        Endpoint::High => high_to_low(key).reversed(),
    };
    let (sent, received) = (flow.direction(first), flow.direction(first.other()));
    emit::end(reason, (began, ended), endpoints, sent, received)
}

#[inline(always)]
fn timeout(sweep: &Sweep, endpoints: Endpoints) -> bool {
    emit::flow(FlowEventKind::Closing, Reason::Timeout, TriggeredBy::GarbageCollection, sweep.now, endpoints)
}

/// The endpoints for a record of the low side's direction: the high side is the one that replies.
#[inline(always)]
fn high_to_low<A: Flows>(key: &FlowKey<A>) -> Endpoints {
    Endpoints {
        source: key.high.to_address().to_bytes(),
        destination: key.low.to_address().to_bytes(),
        source_port: key.high_port,
        destination_port: key.low_port,
        interface: key.interface,
        protocol: match key.protocol {
            Segment::NUMBER => Protocol::Tcp as u8,
            Datagram::NUMBER => Protocol::Udp as u8,
            _ => A::ECHO as u8,
        },
        reserved: 0,
    }
}

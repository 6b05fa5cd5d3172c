//! Deleting idle flows.

use core::ffi::c_void;

use aya_ebpf::{
    EbpfContext,
    helpers::{bpf_for_each_map_elem, bpf_ktime_get_ns},
};
use aya_log_ebpf::debug;
use pping_common::{
    abi::{Endpoints, FlowEventKind, Lost, TriggeredBy},
    flow::{Flow, FlowKey, Ipv4, Ipv6, Lifecycle, Reason, Side},
    parse::{Protocol, Segment},
};

use crate::{
    emit,
    maps::{self, FLOWS_V4, FLOWS_V6, Flows},
    sync,
};

/// What a sweep tells its callbacks.
#[repr(C)]
struct Sweep {
    number: u32,
    reserved: u32,
    now: u64,
}

/// Begins the next sweep: deletes the flows that have been idle too long and reports those that were
/// open. Walks the maps in the kernel, so that a million flows cost no system call each (Linux 5.13).
#[inline(always)]
pub fn sweep(ctx: &impl EbpfContext) {
    let Some(number) = maps::begin_sweep() else { return };
    // SAFETY: this helper only reads a clock.
    let now = unsafe { bpf_ktime_get_ns() };
    let mut sweep = Sweep { number, reserved: 0, now };
    walk((&raw const FLOWS_V4).cast(), visit_v4, &mut sweep);
    walk((&raw const FLOWS_V6).cast(), visit_v6, &mut sweep);
    debug!(ctx, "sweep {} done", number);
}

type Visit<A> = extern "C" fn(*mut c_void, *const FlowKey<A>, *mut Flow, *mut Sweep) -> i64;

#[inline(always)]
fn walk<A>(map: *const c_void, visit: Visit<A>, sweep: &mut Sweep) {
    // SAFETY: `map` is a hash map whose keys and values are those of `visit`, and `sweep` outlives the
    // walk. The verifier checks the callback against them.
    unsafe {
        bpf_for_each_map_elem(map.cast_mut(), visit as *mut c_void, (&raw mut *sweep).cast(), 0);
    }
}

extern "C" fn visit_v4(_: *mut c_void, key: *const FlowKey<Ipv4>, flow: *mut Flow, sweep: *mut Sweep) -> i64 {
    visit(key, flow, sweep);
    0
}

extern "C" fn visit_v6(_: *mut c_void, key: *const FlowKey<Ipv6>, flow: *mut Flow, sweep: *mut Sweep) -> i64 {
    visit(key, flow, sweep);
    0
}

#[inline(always)]
fn visit<A: Flows>(key: *const FlowKey<A>, flow: *mut Flow, sweep: *mut Sweep) {
    // SAFETY: the kernel calls back with pointers to an element of the map and to the walk's own context.
    let (key, flow, sweep) = unsafe { (*key, &*flow, &*sweep) };
    if !flow.is_expired(key.protocol, sweep.number) {
        return;
    }
    let is_open = |side| flow.direction(side).lifecycle == Lifecycle::Open;
    let (low_open, high_open) = (is_open(Side::Low), is_open(Side::High));
    // A packet that comes between the look and this begins the flow anew.
    if A::map().remove(&key).is_err() {
        return;
    }
    let Some(counters) = maps::counters(key.interface) else { return };
    let mut lost = 0;
    if low_open {
        lost += u64::from(!timeout(sweep, high_to_low(&key)));
    }
    if high_open {
        lost += u64::from(!timeout(sweep, high_to_low(&key).reversed()));
    }
    // SAFETY: this CPU's counters. A packet on this CPU may interrupt, so whatever is added here is added
    // in one instruction.
    let (deleted, closed, lost_flows) = unsafe {
        (
            &raw mut (*counters).entries_deleted[A::FAMILY as usize],
            &raw mut (*counters).closed[Reason::Timeout as usize],
            &raw mut (*counters).lost[Lost::Flow as usize],
        )
    };
    sync::add(deleted, 1);
    sync::add(closed, u64::from(low_open || high_open));
    sync::add(lost_flows, lost);
}

#[inline(always)]
fn timeout(sweep: &Sweep, endpoints: Endpoints) -> bool {
    emit::flow(FlowEventKind::Closing, Reason::Timeout, TriggeredBy::GarbageCollection, sweep.now, endpoints)
}

/// The endpoints for a record of the low side's direction: the high side is the one that replies.
#[inline(always)]
fn high_to_low<A: Flows>(key: &FlowKey<A>) -> Endpoints {
    Endpoints {
        source: key.high.to_address().to_octets(),
        destination: key.low.to_address().to_octets(),
        source_port: key.high_port,
        destination_port: key.low_port,
        interface: key.interface,
        protocol: if key.protocol == Segment::NUMBER { Protocol::Tcp as u8 } else { A::ECHO as u8 },
        reserved: 0,
    }
}

//! Adding up what flows sent, and deleting idle ones.

mod interfaces;
mod queries;
mod reports;
mod walk;

use core::ffi::c_void;

use aya_ebpf::{EbpfContext, helpers::bpf_ktime_get_ns};
use aya_log_ebpf::debug;
use pping_common::{
    abi::{Control, Counters, SeriesSelector, SweepRequest},
    flow::{Endpoint, Flow, FlowKey, Ipv4, Ipv6},
    rtt::Method,
    table::{Entry, Slot, idle},
};

use self::walk::{END, GO_ON, Visit, walk};
use crate::{
    aggregate, config,
    launder::{launder, launder_ptr},
    lease,
    maps::{self, DUE, Flows, Occupant, QUERIES_V4, QUERIES_V6, Sweep},
    shared::{Shared, field},
    sync, table,
};

/// Begins the next sweep, or goes on with it, and returns what the agent wants looked at. If the lease has run out no sweep begins,
/// which [`Control::lapsed`] says.
#[inline(always)]
fn go_on(ctx: &impl EbpfContext) -> Option<u32> {
    let (control, request) = (maps::control()?, maps::request()?);
    // SAFETY: a map value, valid for the program's run.
    let control = unsafe { Shared::new(control) };
    // SAFETY: a map value, valid for the program's run. The agent writes to it between two runs.
    let (kind, due) = unsafe {
        ((&raw const (*request).kind).read_volatile(), (&raw const (*request).due).read_volatile())
    };
    let cut_off = control.at(field!(Control, cut_off)).read();
    let sweep = control.at(field!(Control, sweep));
    if kind == SweepRequest::BEGIN && cut_off == 0 && lease::renew(control) {
        // Only the agent's one sweep at a time writes here.
        sweep.write(sweep.read().wrapping_add(1));
    }
    let number = sweep.read();
    // SAFETY: this helper only reads a clock.
    let sweep = Sweep { number, cut_off, now: unsafe { bpf_ktime_get_ns() }, due, ends: 0 };
    // SAFETY: map values, valid for the program's run. Only the agent's one sweep at a time uses them.
    unsafe {
        maps::sweep()?.write_volatile(sweep);
        (&raw mut (*request).sweep).write_volatile(number);
    }
    if kind == SweepRequest::BEGIN {
        debug!(ctx, "sweep {} begins", number);
    }
    Some(kind)
}

/// Visits the flows or queries that the agent asks for. Adds what flows sent to their series, removes the flows that have been
/// idle too long and reports those that were open; removes the queries that have waited too long. The walk is in the kernel, so
/// that a million flows cost few system calls (Linux 5.13), and in shares, since this CPU does nothing else meanwhile.
#[inline(always)]
pub fn sweep(ctx: &impl EbpfContext) {
    let Some(kind) = go_on(ctx) else { return };
    let has_dns = config::rules().methods.has(Method::Dns);
    match kind {
        SweepRequest::BEGIN => walk((&raw const DUE).cast(), interfaces::update_next),
        SweepRequest::V4 => visit(fold_v4, end_v4),
        SweepRequest::V6 => visit(fold_v6, end_v6),
        SweepRequest::QUERY_V4 if has_dns => walk((&raw const QUERIES_V4).cast(), queries::give_up_v4),
        SweepRequest::QUERY_V6 if has_dns => walk((&raw const QUERIES_V6).cast(), queries::give_up_v6),
        _ => {}
    }
}

/// In two walks: in one, the verifier would follow each way through the end of a flow for each way through what is added up
/// before.
#[inline(always)]
fn visit(fold: Visit<u32, u64>, end: Visit<u32, u64>) {
    let due = (&raw const DUE).cast();
    walk(due, fold);
    // SAFETY: a map value, valid for the program's run.
    if maps::sweep().is_some_and(|sweep| unsafe { (&raw const (*sweep).ends).read_volatile() } != 0) {
        walk(due, end);
    }
}

/// The same one flow, or query, at a time.
#[inline(always)]
pub fn sweep_one(ctx: &impl EbpfContext) {
    let (Some(kind), Some(request), Some(sweep)) = (go_on(ctx), maps::request(), maps::sweep()) else {
        return;
    };
    // SAFETY: map values, valid for the program's run.
    let (slot, request) = unsafe { (Slot((&raw const (*sweep).due).read_volatile()), &*request) };
    match kind {
        SweepRequest::BEGIN => interfaces::update_all(),
        SweepRequest::V4 => visit_one::<Ipv4>(slot),
        SweepRequest::V6 => visit_one::<Ipv6>(slot),
        SweepRequest::QUERY_V4 => queries::look_up(&request.query_v4),
        SweepRequest::QUERY_V6 => queries::look_up(&request.query_v6),
        _ => {}
    }
}

#[inline(always)]
fn visit_one<A: Flows>(slot: Slot) {
    fold::<A>(slot);
    finish::<A>(slot);
}

extern "C" fn fold_v4(_: *mut c_void, index: *const u32, slot: *mut u64, _: *mut c_void) -> i64 {
    wanted(index, slot).map_or(END, |slot| {
        fold::<Ipv4>(slot);
        GO_ON
    })
}

extern "C" fn fold_v6(_: *mut c_void, index: *const u32, slot: *mut u64, _: *mut c_void) -> i64 {
    wanted(index, slot).map_or(END, |slot| {
        fold::<Ipv6>(slot);
        GO_ON
    })
}

extern "C" fn end_v4(_: *mut c_void, index: *const u32, slot: *mut u64, _: *mut c_void) -> i64 {
    wanted(index, slot).map_or(END, finish::<Ipv4>)
}

extern "C" fn end_v6(_: *mut c_void, index: *const u32, slot: *mut u64, _: *mut c_void) -> i64 {
    wanted(index, slot).map_or(END, finish::<Ipv6>)
}

/// The slot at an index of what the agent wants looked at; `None` behind the last.
#[inline(always)]
fn wanted(index: *const u32, slot: *const u64) -> Option<Slot> {
    let sweep = maps::sweep()?;
    // SAFETY: an element of the map, and the sweep has been written.
    let (index, slot, due) = unsafe { (*index, *slot, (&raw const (*sweep).due).read_volatile()) };
    (index < due).then_some(Slot(slot as u32))
}

/// Adds up what a flow sent.
#[inline(always)]
fn fold<A: Flows>(slot: Slot) {
    let Some((action, _, entry)) = Action::of::<A>(slot) else { return };
    if action != Action::Fold
        && let Some(sweep) = maps::sweep()
    {
        // SAFETY: a map value, valid for the program's run.
        unsafe { (&raw mut (*sweep).ends).write_volatile(1) };
    }
    let key = table::key_of::<A>(entry);
    if let Some(counters) = counters(key) {
        // SAFETY: a map value, valid for the program's run.
        add_up(key, unsafe { &raw mut (*entry).flow }, counters);
    }
}

/// Removes a flow if it has expired or is cut off. Returns [`GO_ON`] or [`END`].
#[inline(always)]
fn finish<A: Flows>(slot: Slot) -> i64 {
    let Some((action, occupant, entry)) = Action::of::<A>(slot) else { return GO_ON };
    if action == Action::Fold {
        return GO_ON;
    }
    let key = table::key_of::<A>(entry);
    let (Some(counters), Some(sweep)) = (counters(key), maps::sweep()) else { return GO_ON };
    // SAFETY: map values, valid for the program's run, and the sweep has been written. Other CPUs may write to the flow
    // meanwhile, but not so that a value read here was never in it.
    let (key, flow, sweep) = unsafe { (&*key, &(*entry).flow, &sweep.read_volatile()) };
    // If another CPU has the lock, the next sweep comes back.
    let Some(bucket) = table::lock::<A>(slot, occupant) else { return GO_ON };
    let is_reported = if action == Action::CutOff {
        reports::cut_off(key, flow, sweep, counters)
    } else {
        reports::expire(key, flow, sweep, counters);
        true
    };
    table::unlock::<A>(slot, occupant, bucket, !is_reported);
    if !is_reported {
        return END;
    }
    let deleted = counters.at(field!(Counters, entries_deleted)).element(A::FAMILY as usize);
    sync::add(deleted.as_ptr(), 1);
    GO_ON
}

/// The counters of a flow's interface.
#[inline(always)]
fn counters<A>(key: *const FlowKey<A>) -> Option<Shared<Counters>> {
    // SAFETY: the kernel calls back with pointers to an element of the map.
    maps::counters(unsafe { (*key).interface })
}

/// What is to be done about a flow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    /// Add up what it sent.
    Fold,
    /// And remove it: it has been idle too long.
    Expire,
    /// And remove it: the agent stops looking.
    CutOff,
}

impl Action {
    /// For the flow in a slot, with what is there; `None` if the slot is free.
    #[inline(always)]
    fn of<A: Flows>(slot: Slot) -> Option<(Self, Occupant, *mut Entry)> {
        let sweep = maps::sweep()?;
        let (occupant, seen) = table::peek::<A>(slot)?;
        if occupant.tag == 0 {
            return None;
        }
        let entry = A::map().get_ptr_mut(occupant.entry)?;
        let key = table::key_of::<A>(entry);
        // SAFETY: map values, valid for the program's run, and the sweep has been written.
        let (protocol, flow, sweep) = unsafe { ((*key).protocol, &mut (*entry).flow, sweep.read_volatile()) };
        let idle = idle(sweep.number, seen);
        // Only the sweep writes and reads `last_seen`.
        flow.last_seen = sweep.number.wrapping_sub(idle);
        let action = if sweep.cut_off != 0 {
            Self::CutOff
        } else if flow.is_expired(protocol, sweep.number) {
            Self::Expire
        } else {
            Self::Fold
        };
        Some((action, occupant, entry))
    }
}

/// Adds to its series what a flow sent since the last sweep.
#[inline(always)]
fn add_up<A: Flows>(key: *const FlowKey<A>, flow: *mut Flow, counters: Shared<Counters>) {
    let Some(scratch) = maps::sweep_scratch() else { return };
    // SAFETY: a map value, valid for the walk. Only the sweep writes to what is folded.
    let flow_ref = unsafe { &mut *flow };
    scratch.low = flow_ref.low.fold();
    scratch.high = flow_ref.high.fold();
    launder(scratch);
    if scratch.low.packets == 0 && scratch.high.packets == 0 {
        return;
    }
    for timed in [Endpoint::Low, Endpoint::High] {
        launder(scratch);
        // SAFETY: as above.
        let (key, flow_ref) = unsafe { (&*launder_ptr(key), &*launder_ptr(flow)) };
        let Some(selector) = SeriesSelector::of_flow(key, flow_ref, timed, config::rules()) else { continue };
        scratch.selector = selector;
        launder(scratch);
        let traffic = match timed {
            Endpoint::Low => (&scratch.low, &scratch.high),
            Endpoint::High => (&scratch.high, &scratch.low),
        };
        aggregate::traffic(flow, timed, &scratch.selector, counters, &mut scratch.target, traffic);
    }
}

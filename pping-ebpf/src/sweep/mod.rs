//! The sweep: adds up what flows sent, and removes idle flows.

mod interfaces;
mod queries;
mod reports;
mod walk;
mod worst;

use core::ffi::c_void;

use aya_ebpf::{EbpfContext, helpers::bpf_ktime_get_ns};
use aya_log_ebpf::debug;
use pping_common::{
    abi::{Control, Counters, Emit, SeriesSelector, SweepRequest, Volume},
    flow::{Cold, Endpoint, FlowKey, has_still_timestamps, last_known},
    limits::{SECOND, SWEEP_INTERVAL_SECONDS},
    method::Method,
    parse::{Ipv4, Ipv6, Segment},
    series::SeriesRef,
    table::{Slot, idle_sweeps},
};

use self::{
    reports::Ending,
    walk::{CONTINUE, Callback, END, walk},
};
use crate::{
    aggregate,
    barrier::barrier_var,
    config,
    flow::{self, FlowRef},
    lease,
    maps::{self, DUE, Flows, Occupant, SweepRun, SweepScratch},
    shared::prelude::*,
    table,
};

/// A flow that has sent no packet for this many sweeps needs no entry of the pool.
const IDLE_WITHOUT_PENDING: u32 = 2;

/// Begins the next sweep or continues the present one, and returns the kind of the agent's request. If a renewal finds
/// that the lease has run out, no sweep begins, and [`Control::lapsed`] is set.
#[inline(always)]
fn begin_or_continue(ctx: &impl EbpfContext) -> Option<u32> {
    let (control, request) = (maps::control()?, maps::request()?);
    let kind = request.at(field!(SweepRequest, kind)).read();
    let due = request.at(field!(SweepRequest, due)).read();
    let cut_off = control.at(field!(Control, cut_off)).read();
    let sweep = control.at(field!(Control, sweep));
    let begins = kind == SweepRequest::BEGIN;
    let is_good = cut_off == 0 && (begins || kind == SweepRequest::RENEW) && lease::renew(control);
    if begins && is_good {
        // Only this program writes here, and the agent makes one request at a time.
        sweep.write(sweep.read().wrapping_add(1));
    }
    let number = sweep.read();
    let run = maps::sweep_run()?;
    run.at(field!(SweepRun, number)).write(number);
    run.at(field!(SweepRun, cut_off)).write(cut_off);
    // SAFETY: this helper only reads a clock.
    run.at(field!(SweepRun, now)).write(unsafe { bpf_ktime_get_ns() });
    run.at(field!(SweepRun, due)).write(due);
    run.at(field!(SweepRun, needs_second_walk)).write(0);
    request.at(field!(SweepRequest, sweep)).write(number);
    if begins {
        debug!(ctx, "sweep {} begins", number);
    }
    Some(kind)
}

/// Visits the flows or queries that the agent asks for. Adds what flows sent to their series, removes and reports expired
/// flows, and removes queries that have waited too long. The kernel walks through the map (Linux 5.13), so that a million
/// flows cost few system calls. One run visits only a share of the flows, because this CPU does nothing else meanwhile.
#[inline(always)]
pub fn run(ctx: &impl EbpfContext) {
    let Some(kind) = begin_or_continue(ctx) else { return };
    let has_dns = config::rules().methods.has(Method::Dns);
    match kind {
        SweepRequest::BEGIN | SweepRequest::RENEW => interfaces::walk_through(),
        SweepRequest::V4 => visit_v4(),
        SweepRequest::V6 => visit_v6(),
        SweepRequest::QUERY_V4 if has_dns => queries::walk_through_v4(),
        SweepRequest::QUERY_V6 if has_dns => queries::walk_through_v6(),
        _ => {}
    }
}

#[inline(never)]
fn visit_v4() {
    visit(flush_v4, finish_v4);
}

#[inline(never)]
fn visit_v6() {
    visit(flush_v6, finish_v6);
}

/// Flushes the flows that are due, and finishes them in a second walk. In a single walk the verifier would follow each
/// path through `finish` once for each path through `flush`.
#[inline(always)]
fn visit(flush: Callback<u32, u64>, finish: Callback<u32, u64>) {
    let due = (&raw const DUE).cast();
    // SAFETY: callbacks of this type are for the keys and values of the map.
    unsafe { walk(due, flush) };
    if maps::sweep_run().is_some_and(|run| run.at(field!(SweepRun, needs_second_walk)).read() != 0) {
        // SAFETY: callbacks of this type are for the keys and values of the map.
        unsafe { walk(due, finish) };
    }
}

/// Does the same for a single flow or query.
#[inline(always)]
pub fn run_one(ctx: &impl EbpfContext) {
    let (Some(kind), Some(request), Some(run)) = (begin_or_continue(ctx), maps::request(), maps::sweep_run())
    else {
        return;
    };
    let slot = Slot(run.at(field!(SweepRun, due)).read());
    match kind {
        SweepRequest::BEGIN | SweepRequest::RENEW => interfaces::update_all(),
        SweepRequest::V4 => visit_one::<Ipv4>(slot),
        SweepRequest::V6 => visit_one::<Ipv6>(slot),
        SweepRequest::QUERY_V4 => queries::visit_query::<Ipv4>(request.at(field!(SweepRequest, query_v4))),
        SweepRequest::QUERY_V6 => queries::visit_query::<Ipv6>(request.at(field!(SweepRequest, query_v6))),
        _ => {}
    }
}

#[inline(always)]
fn visit_one<A: Flows>(slot: Slot) {
    flush::<A>(slot);
    finish::<A>(slot);
}

/// # Safety
/// The arguments are those of [`due_slot`].
unsafe extern "C" fn flush_v4(_: *mut c_void, index: *const u32, slot: *mut u64, _: *mut c_void) -> i64 {
    // SAFETY: the kernel calls it with an element of the map.
    unsafe { due_slot(index, slot) }.map_or(END, |slot| {
        flush::<Ipv4>(slot);
        CONTINUE
    })
}

/// # Safety
/// The arguments are those of [`due_slot`].
unsafe extern "C" fn flush_v6(_: *mut c_void, index: *const u32, slot: *mut u64, _: *mut c_void) -> i64 {
    // SAFETY: the kernel calls it with an element of the map.
    unsafe { due_slot(index, slot) }.map_or(END, |slot| {
        flush::<Ipv6>(slot);
        CONTINUE
    })
}

/// # Safety
/// The arguments are those of [`due_slot`].
unsafe extern "C" fn finish_v4(_: *mut c_void, index: *const u32, slot: *mut u64, _: *mut c_void) -> i64 {
    // SAFETY: the kernel calls it with an element of the map.
    unsafe { due_slot(index, slot) }.map_or(END, finish::<Ipv4>)
}

/// # Safety
/// The arguments are those of [`due_slot`].
unsafe extern "C" fn finish_v6(_: *mut c_void, index: *const u32, slot: *mut u64, _: *mut c_void) -> i64 {
    // SAFETY: the kernel calls it with an element of the map.
    unsafe { due_slot(index, slot) }.map_or(END, finish::<Ipv6>)
}

/// Returns the slot at an index of [`DUE`]; `None` past the last that the agent asks for.
///
/// # Safety
/// Both are an element of the map.
#[inline(always)]
unsafe fn due_slot(index: *const u32, slot: *const u64) -> Option<Slot> {
    let due = maps::sweep_run()?.at(field!(SweepRun, due)).read();
    // SAFETY: an element, as this function requires.
    let (index, slot) = unsafe { (*index, *slot) };
    (index < due).then_some(Slot(slot as u32))
}

/// Adds up what a flow sent, and notes if `finish` has to visit it.
#[inline(always)]
fn flush<A: Flows>(slot: Slot) {
    let Some(visit) = Visit::<A>::of(slot) else { return };
    if visit.action != Action::Flush || visit.is_reclaimable() {
        visit.run.at(field!(SweepRun, needs_second_walk)).write(1);
    }
    if let Some(counters) = visit.counters() {
        add_up(visit.key, visit.flow, counters, visit.scratch);
    }
}

/// Removes a flow that has expired or is cut off. Takes the pool entry back from a flow that is idle. Returns
/// [`CONTINUE`] or [`END`].
#[inline(always)]
fn finish<A: Flows>(slot: Slot) -> i64 {
    let Some(visit) = Visit::<A>::of(slot) else { return CONTINUE };
    if visit.action == Action::Flush {
        if visit.is_reclaimable() {
            reclaim(slot, visit);
        }
        return CONTINUE;
    }
    let (Some(counters), Some(cold)) = (visit.counters(), visit.flow.cold()) else { return CONTINUE };
    let Visit { run, action, occupant, flow, idle, key, scratch } = visit;
    // If another CPU has the lock, the next sweep tries again.
    let Some(bucket) = table::lock::<A>(slot, occupant) else { return CONTINUE };
    flow.hot().load_to(&mut scratch.hot);
    cold.at(field!(Cold, locked)).load_to(&mut scratch.locked);
    barrier_var(scratch);
    let mut last_packet = 0;
    if config::emit().has(Emit::ENDS) {
        let has_segments = key.protocol == Segment::NUMBER;
        Endpoint::each(|endpoint| {
            let sent = flow.sent(cold, endpoint);
            *endpoint.of_mut(&mut scratch.volumes) =
                Volume::new(sent, &flow::events(cold, endpoint), has_segments);
        });
        let recorded_at = FlowRef::<A>::recorded_at(scratch.locked.pending);
        let known = last_known(&scratch.hot, &scratch.locked, key.protocol, recorded_at);
        let idle = u64::from(idle * SWEEP_INTERVAL_SECONDS) * SECOND;
        last_packet = run.at(field!(SweepRun, now)).read().saturating_sub(idle).max(known);
        barrier_var(scratch);
    }
    let ending = Ending {
        key,
        hot: &scratch.hot,
        locked: &scratch.locked,
        volumes: &scratch.volumes,
        last_packet,
        run,
    };
    let is_reported = if action == Action::CutOff {
        ending.cut_off(counters)
    } else {
        ending.expire(counters);
        true
    };
    if !is_reported {
        table::unlock(bucket);
        return END;
    }
    let packets = [flow::packets(cold, Endpoint::Low), flow::packets(cold, Endpoint::High)];
    let is_one_way = scratch.hot.is_one_way(key.protocol, packets.map(|packets| packets != 0));
    counters.at(field!(Counters, one_way_flows)).add(u64::from(is_one_way));
    let is_still = key.protocol == Segment::NUMBER
        && has_still_timestamps(&scratch.hot, &scratch.locked, packets, config::rules());
    counters.at(field!(Counters, still_timestamps)).add(u64::from(is_still));
    table::remove(slot, occupant, bucket, flow);
    counters.at(field!(Counters, entries_deleted)).element(A::FAMILY as usize).add(1);
    CONTINUE
}

/// What the sweep does with a flow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    /// Add up what it sent.
    Flush,
    /// Also remove it: it has been idle too long.
    Expire,
    /// Also remove it: the agent stops, or packets were missed while the lease had lapsed.
    CutOff,
}

/// A flow that the sweep visits.
struct Visit<A: Flows> {
    run: Shared<SweepRun>,
    action: Action,
    occupant: Occupant,
    flow: FlowRef<A>,
    /// The sweeps since its last packet.
    idle: u32,
    key: &'static mut FlowKey<A>,
    scratch: &'static mut SweepScratch,
}

impl<A: Flows> Visit<A> {
    /// Visits the flow in a slot; `None` if the slot is free.
    #[inline(always)]
    fn of(slot: Slot) -> Option<Self> {
        let run = maps::sweep_run()?;
        let (occupant, seen) = table::peek::<A>(slot)?;
        if occupant.tag == 0 {
            return None;
        }
        let flow = FlowRef::<A>::new(occupant.entry)?;
        let idle = idle_sweeps(run.at(field!(SweepRun, number)).read(), seen);
        let action = if run.at(field!(SweepRun, cut_off)).read() != 0 {
            Action::CutOff
        } else if flow.is_expired(idle) {
            Action::Expire
        } else {
            Action::Flush
        };
        // SAFETY: one flow is visited at a time, and only here its visit gets them.
        let (key, scratch) = unsafe { (maps::sweep_key::<FlowKey<A>>()?, maps::sweep_scratch()?) };
        flow.key_to(key);
        Some(Self { run, action, occupant, flow, idle, key, scratch })
    }

    /// The counters of the flow's interface.
    #[inline(always)]
    fn counters(&self) -> Option<Shared<Counters>> {
        maps::counters(self.key.interface)
    }

    /// Whether the flow has an entry of the pool that it may not need.
    #[inline(always)]
    fn is_reclaimable(&self) -> bool {
        self.idle >= IDLE_WITHOUT_PENDING && !self.flow.has_pending() && self.flow.has_pool_entry()
    }
}

/// Adds what a flow sent since it was last flushed to its series.
#[inline(always)]
fn add_up<A: Flows>(
    key: &FlowKey<A>,
    flow: FlowRef<A>,
    counters: Shared<Counters>,
    scratch: &mut SweepScratch,
) {
    let Some(cold) = flow.cold() else { return };
    let has_segments = key.protocol == Segment::NUMBER;
    scratch.low = flow.flush(cold, Endpoint::Low, has_segments);
    scratch.high = flow.flush(cold, Endpoint::High, has_segments);
    barrier_var(scratch);
    // What was sent before an endpoint moves to another hook counts where it passed.
    flow.hot().load_to(&mut scratch.hot);
    flow.sweep_hooks(has_segments, [scratch.low.packets != 0, scratch.high.packets != 0]);
    barrier_var(scratch);
    if scratch.low.packets == 0 && scratch.high.packets == 0 {
        return;
    }
    cold.at(field!(Cold, locked)).load_to(&mut scratch.locked);
    Endpoint::each(|timed| {
        if add_up_direction(key, cold, counters, timed, scratch) != 0 {
            if config::has_networks()
                && let Some(networks) = flow.networks()
            {
                add_up_network(networks, timed, scratch);
            }
            match timed {
                Endpoint::Low => worst::consider::<A, false>(key, cold, scratch),
                Endpoint::High => worst::consider::<A, true>(key, cold, scratch),
            };
        }
    });
}

/// Adds what `timed` sent and received to the series of what it sends. Leaves the series selector in the scratch space.
/// Returns 0 if there is no such series. Not inlined, because it is called twice.
#[inline(never)]
fn add_up_direction<A: Flows>(
    key: &FlowKey<A>,
    cold: Shared<Cold>,
    counters: Shared<Counters>,
    timed: Endpoint,
    scratch: &mut SweepScratch,
) -> u64 {
    let has_reply = flow::packets(cold, timed.other()) != 0;
    let state = (&scratch.hot, &scratch.locked);
    let Some(selector) = SeriesSelector::of_flow(key, state, timed, has_reply, config::rules()) else {
        return 0;
    };
    scratch.selector = selector;
    barrier_var(scratch);
    let traffic = match timed {
        Endpoint::Low => (&scratch.low, &scratch.high),
        Endpoint::High => (&scratch.high, &scratch.low),
    };
    let reference = flow::series(cold, timed);
    aggregate::traffic(reference, &scratch.selector, counters, &mut scratch.target, traffic);
    1
}

/// Adds the same to the series of the network at the other end, by the selector that [`add_up_direction`] left. Not inlined, because
/// kernels limit the stack of functions that call each other.
#[inline(never)]
fn add_up_network(networks: Shared<[SeriesRef; 2]>, timed: Endpoint, scratch: &mut SweepScratch) -> u64 {
    let traffic = match timed {
        Endpoint::Low => (&scratch.low, &scratch.high),
        Endpoint::High => (&scratch.high, &scratch.low),
    };
    aggregate::network_traffic(networks.of(timed), &scratch.selector, &mut scratch.target, traffic);
    0
}

/// Takes the pool entry back from an idle flow, if nothing is pending.
#[inline(always)]
fn reclaim<A: Flows>(slot: Slot, visit: Visit<A>) {
    let Visit { occupant, flow, scratch, .. } = visit;
    let Some(mut guard) = flow.lock_briefly() else { return };
    if table::is_present::<A>(slot, occupant) {
        // SAFETY: this helper only reads a clock.
        guard.reclaim_pending(unsafe { bpf_ktime_get_ns() }, scratch);
    }
}

//! What is left to do once a packet's flow is found: matches and records under the lock of the flow, and reports the sample.

use aya_ebpf::helpers::bpf_ktime_get_ns;
use pping_common::{
    abi::{Counters, Emit, SeriesSelector},
    flow::Endpoint,
    parse::{Datagram, Direction, Kind, Untracked},
    rtt::{Pass, Progress},
};

use crate::{
    aggregate,
    barrier::{barrier_var, within},
    config, count,
    emit::{self, Context},
    flow::{self, FlowRef},
    flow_guard::FlowGuard,
    maps::{Flows, Scratch},
    residence::forwarding,
    shared::prelude::*,
    table,
};

/// Handles the rare packet that may match, record, open or close: takes the flow's lock and reads the clock. The packet
/// is the one in scratch space. Returns whether [`report`] has to follow: a separate stage, because the verifier would
/// check it once for each path through this one.
#[inline(always)]
pub(crate) fn step<A: Flows>(counters: Shared<Counters>, scratch: &mut Scratch) -> bool {
    let from = sender(scratch.flow.from);
    let Some(flow) = FlowRef::<A>::new(scratch.flow.occupant.entry) else { return false };
    let Some(mut guard) = flow.lock() else {
        counters.at(field!(Counters, contended)).count(1);
        flow.note_contended(from, &scratch.packet.frame.transport);
        return false;
    };
    // Another flow may have taken the slot.
    if !table::is_present::<A>(scratch.flow.slot, scratch.flow.occupant) {
        drop(guard);
        counters.at(field!(Counters, contended)).count(1);
        return false;
    }
    if scratch.outcome.progress == Progress::Elsewhere {
        // The first copy: it changes nothing else.
        guard.note_forwarded(from);
        drop(guard);
        count::untracked(counters, Untracked::OtherHook);
        return false;
    }
    // Reloaded for each use: with the value in a register, the verifier would check all that follows once for each value.
    scratch.flow.is_udp = u32::from(scratch.packet.frame.transport.number() == Datagram::NUMBER);
    barrier_var(scratch);
    guard.copy_to(&mut scratch.flow.copies, scratch.flow.is_udp != 0);
    barrier_var(scratch);
    // The clock is read after `copy_to` cleared `contended`. A packet that is missed from here on sets it again, and
    // the next CPU with the lock invalidates what this one records.
    // SAFETY: this helper only reads a clock.
    let now = unsafe { bpf_ktime_get_ns() };
    scratch.packet.now = now;
    // It is seldom needed, and lies in memory that most packets with the lock do not touch.
    let is_needed =
        guard.view(&mut scratch.flow.copies).needs_outside_end(from, &scratch.packet.frame.transport);
    scratch.flow.outside_end = if is_needed { flow.outside_end(from.other()) } else { 0 };
    barrier_var(scratch);
    guard.view(&mut scratch.flow.copies).confirm(
        from,
        &scratch.packet.frame.transport,
        scratch.flow.outside_end,
    );
    barrier_var(scratch);
    guard.view(&mut scratch.flow.copies).invalidate_if_missed(scratch.flow.is_udp != 0);
    barrier_var(scratch);
    let (transport, progress) = (&scratch.packet.frame.transport, &mut scratch.outcome.progress);
    guard.view(&mut scratch.flow.copies).settle(from, transport, progress, now);
    barrier_var(scratch);
    if scratch.outcome.progress != Progress::Refused {
        let transport = &scratch.packet.frame.transport;
        scratch.outcome.changes =
            guard.view(&mut scratch.flow.copies).update_lifecycle(from, transport, scratch.packet.now);
        barrier_var(scratch);
        measure(&mut guard, from, Pass::First, counters, scratch);
        if config::rules().methods.has_both() {
            measure(&mut guard, from, Pass::Second, counters, scratch);
        }
    }
    barrier_var(scratch);
    guard.copy_from(&scratch.flow.copies, scratch.flow.is_udp != 0);
    barrier_var(scratch);
    // The flow's state for the event, copied before another CPU can change it.
    if config::emit().has(Emit::SAMPLES) {
        scratch.flow.state = guard.state(from.other());
    }
    // Emitting takes longer than all the rest, so the lock is released first.
    drop(guard);
    barrier_var(scratch);
    if scratch.outcome.progress == Progress::Refused {
        count::untracked(counters, Untracked::OutOfWindow);
        return false;
    }
    count_measured(counters, scratch);
    config::has_residence()
        || scratch.outcome.measured.has_sample
        || config::rules().methods.has_both() && scratch.outcome.measured_second.has_sample
        || scratch.outcome.changes.opened
        || scratch.outcome.changes.closed_forward
        || scratch.outcome.changes.closed_reverse
}

/// Counts what was given up or left out, and the echo requests and replies. Without a branch, so that the verifier follows one
/// path.
#[inline(always)]
fn count_measured(counters: Shared<Counters>, scratch: &Scratch) {
    let (first, second) = (&scratch.outcome.measured, &scratch.outcome.measured_second);
    let (pending_full, gave_way) =
        (counters.at(field!(Counters, pending_full)), counters.at(field!(Counters, gave_way)));
    pending_full.count(u64::from(first.pending_full));
    gave_way.count(u64::from(first.gave_way));
    counters.at(field!(Counters, echo_requests)).count(u64::from(first.asked));
    counters.at(field!(Counters, echo_replies)).count(u64::from(first.answered));
    counters.at(field!(Counters, echo_not_awaited)).count(u64::from(first.not_awaited));
    let mut to_this_host = u64::from(first.to_this_host);
    if config::rules().methods.has_both() {
        pending_full.count(u64::from(second.pending_full));
        gave_way.count(u64::from(second.gave_way));
        // The packet is one, however many identifiers it has.
        to_this_host |= u64::from(second.to_this_host);
    }
    counters.at(field!(Counters, to_this_host)).count(to_this_host);
}

/// Reports what [`step`] found: what the packet opened, its samples, and what it closed.
#[inline(always)]
pub(crate) fn report<A: Flows>(direction: Direction, counters: Shared<Counters>, scratch: &mut Scratch) {
    let interface_id = scratch.packet.joined_id;
    if scratch.outcome.changes.opened {
        let opened =
            counters.at(field!(Counters, opened)).element(scratch.outcome.changes.opened_by as usize);
        opened.count(u64::from(scratch.outcome.changes.opened_first));
        let context = Context { direction, interface_id, frame: &scratch.packet.frame };
        emit::opening::<A>(&context, counters, &scratch.outcome.changes);
        barrier_var(scratch);
    }
    report_sample::<A>(direction, interface_id, counters, scratch);
    if config::rules().methods.has_both() {
        scratch.outcome.measured = scratch.outcome.measured_second;
        barrier_var(scratch);
        report_sample::<A>(direction, interface_id, counters, scratch);
    }
    if scratch.outcome.changes.closed_forward || scratch.outcome.changes.closed_reverse {
        let closed =
            counters.at(field!(Counters, closed)).element(scratch.outcome.changes.closed_by as usize);
        closed.count(u64::from(scratch.outcome.changes.closed_last));
        let context = Context { direction, interface_id, frame: &scratch.packet.frame };
        emit::closing::<A>(&context, counters, &scratch.outcome.changes, scratch.packet.now);
    }
    if config::has_residence() {
        barrier_var(scratch);
        let is_recorded = scratch.outcome.plan.records();
        forwarding::pass(
            direction,
            scratch.packet.interface_id,
            &scratch.packet.frame.transport,
            scratch.packet.now,
            is_recorded,
        );
    }
}

/// The endpoint that sent the packet, from scratch space.
#[inline(always)]
fn sender(from: Endpoint) -> Endpoint {
    // The mask shows the verifier the bounds of the number, by which both directions are found.
    match within::<2>(from as usize) {
        0 => Endpoint::Low,
        _ => Endpoint::High,
    }
}

/// Runs a pass over the packet, in steps that are verified one after the other.
#[inline(always)]
fn measure<A: Flows>(
    guard: &mut FlowGuard<A>,
    from: Endpoint,
    pass: Pass,
    counters: Shared<Counters>,
    scratch: &mut Scratch,
) {
    let rules = config::rules();
    if pass == Pass::First && scratch.packet.frame.transport.kind == Kind::Tcp {
        let transport = &scratch.packet.frame.transport;
        guard.view(&mut scratch.flow.copies).note_segment(
            from,
            transport,
            scratch.outcome.progress,
            scratch.packet.now,
            rules,
        );
    }
    barrier_var(scratch);
    let transport = &scratch.packet.frame.transport;
    guard.view(&mut scratch.flow.copies).plan(
        from,
        transport,
        scratch.outcome.progress,
        scratch.packet.now,
        rules,
        pass,
        &mut scratch.outcome.plan,
    );
    barrier_var(scratch);
    if pass == Pass::First && scratch.packet.frame.transport.kind == Kind::Echo {
        guard.view(&mut scratch.flow.copies).free_answered_echo(from, &mut scratch.outcome.plan);
        barrier_var(scratch);
        guard.view(&mut scratch.flow.copies).limit_echo(
            from,
            scratch.packet.now,
            rules,
            &mut scratch.outcome.plan,
        );
        barrier_var(scratch);
    }
    let measured = if pass == Pass::First {
        &mut scratch.outcome.measured
    } else {
        &mut scratch.outcome.measured_second
    };
    guard.view(&mut scratch.flow.copies).find(
        from,
        scratch.packet.now,
        rules,
        pass,
        &mut scratch.outcome.plan,
        measured,
    );
    barrier_var(scratch);
    if scratch.outcome.plan.records() && !guard.ensure_pending() {
        counters.at(field!(Counters, no_pending)).count(1);
    }
    barrier_var(scratch);
    if pass == Pass::First && scratch.packet.frame.transport.kind == Kind::Echo {
        guard.view(&mut scratch.flow.copies).free_repeated_echo(
            scratch.packet.now,
            rules,
            &mut scratch.outcome.plan,
            &mut scratch.outcome.measured,
        );
        barrier_var(scratch);
        guard.view(&mut scratch.flow.copies).push_echo(
            scratch.packet.now,
            &mut scratch.outcome.plan,
            &mut scratch.outcome.measured,
        );
        barrier_var(scratch);
        guard.view(&mut scratch.flow.copies).keep_echo(
            from,
            scratch.packet.now,
            rules,
            &scratch.outcome.plan,
            &mut scratch.outcome.measured,
        );
        barrier_var(scratch);
        guard.view(&mut scratch.flow.copies).note_pending_echoes();
        barrier_var(scratch);
        return;
    }
    guard.view(&mut scratch.flow.copies).void(
        from,
        scratch.packet.now,
        rules,
        pass,
        &mut scratch.outcome.plan,
    );
    barrier_var(scratch);
    let measured = if pass == Pass::First {
        &mut scratch.outcome.measured
    } else {
        &mut scratch.outcome.measured_second
    };
    guard.view(&mut scratch.flow.copies).record(
        from,
        scratch.packet.now,
        rules,
        pass,
        &scratch.outcome.plan,
        measured,
    );
    barrier_var(scratch);
}

/// If there is a sample, counts it, adds it to its series and emits it.
#[inline(always)]
fn report_sample<A: Flows>(
    direction: Direction,
    interface_id: u16,
    counters: Shared<Counters>,
    scratch: &mut Scratch,
) {
    if !scratch.outcome.measured.has_sample {
        return;
    }
    let from = sender(scratch.flow.from);
    let Some(flow) = FlowRef::<A>::new(scratch.flow.occupant.entry) else { return };
    let method = scratch.outcome.measured.sample.method as usize;
    counters.at(field!(Counters, samples)).element(direction as usize).element(method).count(1);
    aggregate(direction, interface_id, counters, scratch, flow, from);
    barrier_var(scratch);
    let context = Context { direction, interface_id, frame: &scratch.packet.frame };
    let sample = &scratch.outcome.measured.sample;
    emit::rtt::<A>(
        &context,
        counters,
        sample,
        &scratch.flow.state,
        scratch.packet.now,
        scratch.outcome.target.index,
    );
    barrier_var(scratch);
}

/// Adds the sample to the series of what the other endpoint sends: the packet of `from` echoes that.
#[inline(always)]
fn aggregate<A: Flows>(
    direction: Direction,
    interface_id: u16,
    counters: Shared<Counters>,
    scratch: &mut Scratch,
    flow: FlowRef<A>,
    from: Endpoint,
) {
    let method = scratch.outcome.measured.sample.method;
    let is_proved = flow.is_proved();
    let selector =
        SeriesSelector::of_sample(interface_id, method, direction as u8, &scratch.packet.frame, is_proved);
    let rtt = scratch.outcome.measured.sample.rtt;
    let Some(cold) = flow.cold() else { return };
    aggregate::sample(
        flow::series(cold, from.other()),
        &selector,
        counters,
        &mut scratch.outcome.target,
        rtt,
    );
}

/// Adds the samples that [`step`] found to the series of the network at their other end.
#[inline(always)]
pub(crate) fn count_for_network<A: Flows>(
    direction: Direction,
    counters: Shared<Counters>,
    scratch: &mut Scratch,
) {
    let Some(flow) = FlowRef::<A>::new(scratch.flow.occupant.entry) else { return };
    let Some(networks) = flow.networks() else { return };
    let reference = networks.of(sender(scratch.flow.from).other());
    let measured = &scratch.outcome.measured;
    let first = measured.has_sample.then_some((measured.sample.method, measured.sample.rtt));
    let measured = &scratch.outcome.measured_second;
    let second = measured.has_sample.then_some((measured.sample.method, measured.sample.rtt));
    let both = [first, if config::rules().methods.has_both() { second } else { None }];
    for (method, rtt) in both.into_iter().flatten() {
        let (interface_id, frame) = (scratch.packet.joined_id, &scratch.packet.frame);
        let selector =
            SeriesSelector::of_sample(interface_id, method, direction as u8, frame, flow.is_proved());
        aggregate::network_sample(Some(reference), &selector, counters, &mut scratch.outcome.target, rtt);
        barrier_var(scratch);
    }
}

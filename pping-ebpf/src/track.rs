//! Finds the flow of a parsed packet, and does what `pping-common` decides.

use aya_ebpf::helpers::{bpf_ktime_get_ns, generated::bpf_ktime_get_coarse_ns};
use pping_common::{
    abi::{Counters, SeriesSelector},
    flow::{self as flows, Cold, Endpoint, Facts, FlowKey, FlowSnapshot},
    parse::{Datagram, Direction, Family, Frame, Kind, Transport, Untracked},
    rtt::{Pass, PossibleChange, Progress, is_newer},
    table::Candidates,
};

use crate::{
    aggregate,
    barrier::{barrier_var, within},
    config, count,
    emit::{self, Context},
    flow::{self, DirectionCounter, FlowGuard, FlowRef},
    maps::{self, Flows, Newcomers, Occupant, RecentFlow, Scratch},
    residence::forwarding,
    rings::SourceRing,
    shared::prelude::*,
    sync,
    table::{self, Inserted},
};

/// Counts a packet for its flow. Returns the family of the flow if [`step`] has to follow, because the packet may match
/// or record. An error says why the packet has no flow.
#[inline(always)]
pub(crate) fn track<A: Flows>(
    direction: Direction,
    interface_id: u16,
    counters: Shared<Counters>,
    scratch: &mut Scratch,
) -> Result<Option<Family>, Untracked> {
    let (key, from) = FlowKey::<A>::new(interface_id, &scratch.packet.frame);
    let family = A::FAMILY as usize;
    let candidates = Candidates::of(&key, config::table_keys(), scratch.packet.buckets[family]);
    let flow = match table::lookup(&key, &candidates, &mut scratch.flow.slot, &mut scratch.flow.occupant) {
        Some(flow) => flow,
        None => match insert_flow(counters, &key, &candidates, scratch)? {
            Some(flow) => flow,
            None => return Ok(None),
        },
    };
    barrier_var(scratch);
    table::touch::<A>(scratch.flow.slot, scratch.packet.sweep);
    scratch.flow.snapshot = flow.snapshot(from);
    let (snapshot, frame) = (&scratch.flow.snapshot, &scratch.packet.frame);
    scratch.outcome.progress =
        count(flow, snapshot, from, direction, frame, counters, scratch.packet.has_two_arms, false);
    barrier_var(scratch);
    count_unusable(
        &scratch.flow.snapshot,
        from,
        &scratch.packet.frame.transport,
        scratch.outcome.progress,
        counters,
    );
    barrier_var(scratch);
    scratch.outcome.possible_change = possible_change(
        flow,
        &scratch.flow.snapshot,
        from,
        &scratch.packet.frame.transport,
        scratch.outcome.progress,
        false,
    );
    barrier_var(scratch);
    // What changes nothing has no effect, except that the first copy is remembered.
    if let Some(reason) = scratch.outcome.progress.untracked()
        && scratch.outcome.possible_change == PossibleChange::Nothing
    {
        return Err(reason);
    }
    let is_present = || table::is_present::<A>(scratch.flow.slot, scratch.flow.occupant);
    let is_done = scratch.outcome.possible_change == PossibleChange::Nothing
        || is_rate_limited(
            flow,
            &scratch.flow.snapshot,
            from,
            scratch.outcome.possible_change,
            &scratch.packet.frame.transport,
            is_present,
        );
    // Segments without timestamps are counted as such, but a RST or FIN among them still closes its flow.
    if scratch.outcome.progress != Progress::Elsewhere
        && scratch.packet.frame.transport.begins_flow(config::rules().methods) == Err(Untracked::NoTimestamp)
    {
        count::untracked(counters, Untracked::NoTimestamp);
    }
    if is_done {
        return Ok(None);
    }
    scratch.flow.from = from;
    Ok(Some(A::FAMILY))
}

/// Inserts a flow, if this packet may begin one and there is room. `None` if other CPUs hold the locks.
#[inline(always)]
fn insert_flow<A: Flows>(
    counters: Shared<Counters>,
    key: &FlowKey<A>,
    candidates: &Candidates,
    scratch: &mut Scratch,
) -> Result<Option<FlowRef<A>>, Untracked> {
    if config::excludes()
        && (maps::is_excluded(key.low.to_address()) || maps::is_excluded(key.high.to_address()))
    {
        return Err(Untracked::Excluded);
    }
    scratch.packet.frame.transport.begins_flow(config::rules().methods)?;
    let flow = match table::insert(
        key,
        candidates,
        &mut scratch.flow.slot,
        &mut scratch.flow.occupant,
        scratch.packet.sweep,
    ) {
        Inserted::New(flow) => flow,
        Inserted::Existing(flow) => return Ok(Some(flow)),
        Inserted::Full => return Err(Untracked::MapFull),
        Inserted::Contended => {
            counters.at(field!(Counters, contended)).count(1);
            return Ok(None);
        }
    };
    counters.at(field!(Counters, entries_made)).element(A::FAMILY as usize).count(1);
    let mut facts =
        Facts::of_ends(maps::is_local(key.low.to_address()), maps::is_local(key.high.to_address()));
    barrier_var(&mut facts);
    if let Some(cold) = flow.cold() {
        cold.at(field!(Cold, locked.facts)).write(facts);
    }
    let new = RecentFlow::new(scratch.flow.slot, scratch.flow.occupant.tag);
    Ok(enter_ring::<A>(counters, new, scratch).then_some(flow))
}

/// Gives a new flow a place in the ring of its source, and evicts the oldest there if that is not proved yet and finds no
/// other place. Returns `false` if other CPUs hold the ring's lock: then the new flow is evicted, because it has no place.
#[inline(always)]
fn enter_ring<A: Flows>(counters: Shared<Counters>, new: RecentFlow, scratch: &mut Scratch) -> bool {
    // What has to go.
    scratch.newcomer.recent = new;
    let ring = SourceRing::of::<A>(Newcomers::Flows, &scratch.packet.frame, scratch.arm());
    let place = ring.and_then(SourceRing::take);
    if let (Some(ring), Some(place)) = (ring, place) {
        if let Some(recent) = A::recent(place) {
            scratch.newcomer.recent = RecentFlow(sync::exchange(recent, new.0));
        }
        barrier_var(scratch);
        scratch.newcomer.ahead = 0;
        if newcomer::<A>(scratch.newcomer.recent, new).is_some() {
            scratch.newcomer.ahead = ring.ahead_of(place, |place| {
                A::recent(place).is_some_and(|recent| newcomer::<A>(RecentFlow(recent.read()), new).is_none())
            });
        }
        barrier_var(scratch);
        if scratch.newcomer.ahead != 0
            && let Some(free) = ring.take_ahead(scratch.newcomer.ahead).and_then(A::recent)
        {
            scratch.newcomer.recent = RecentFlow(sync::exchange(free, scratch.newcomer.recent.0));
        }
    }
    barrier_var(scratch);
    let old = scratch.newcomer.recent;
    let is_in_ring = place.is_some();
    let unproved = if is_in_ring { newcomer::<A>(old, new) } else { occupant::<A>(old) };
    if let Some((occupant, flow)) = unproved
        && let Some(bucket) = table::lock::<A>(old.slot(), occupant)
    {
        table::remove(old.slot(), occupant, bucket, flow);
        counters.at(field!(Counters, entries_deleted)).element(A::FAMILY as usize).count(1);
        counters.at(field!(Counters, evicted)).count(1);
    }
    is_in_ring
}

/// The flow in a place of a ring, unless it is proved or gone. It is gone if the new flow has its slot.
#[inline(always)]
fn newcomer<A: Flows>(recent: RecentFlow, new: RecentFlow) -> Option<(Occupant, FlowRef<A>)> {
    if recent.slot() == new.slot() {
        return None;
    }
    occupant(recent).filter(|(_, flow)| !flow.is_proved())
}

/// The flow in a place of a ring, unless it is gone. Another flow may have its slot by now.
#[inline(always)]
fn occupant<A: Flows>(recent: RecentFlow) -> Option<(Occupant, FlowRef<A>)> {
    if recent.tag() == 0 {
        return None;
    }
    let (occupant, _) = table::peek::<A>(recent.slot()).filter(|(there, _)| there.tag == recent.tag())?;
    Some((occupant, FlowRef::new(occupant.entry)?))
}

/// Counts a packet for its flow, and returns how it advanced its direction. `snapshot` is what the packet found there.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "they are what a packet is counted by")]
pub(crate) fn count<A: Flows>(
    flow: FlowRef<A>,
    snapshot: &FlowSnapshot,
    from: Endpoint,
    direction: Direction,
    frame: &Frame,
    counters: Shared<Counters>,
    has_two_arms: u32,
    is_expected: bool,
) -> Progress {
    let mut counter = DirectionCounter { flow, from, direction, counters, has_two_arms };
    let traffic_class = frame.traffic_class;
    flows::count(&mut counter, snapshot, &frame.transport, traffic_class, direction as u8, is_expected)
}

/// Counts a segment that no method measures, because its sender's timestamps cannot be used.
#[inline(always)]
pub(crate) fn count_unusable(
    snapshot: &FlowSnapshot,
    from: Endpoint,
    transport: &Transport,
    progress: Progress,
    counters: Shared<Counters>,
) {
    if progress.untracked().is_none() && snapshot.is_without_method(from, transport, config::rules()) {
        count::untracked(counters, Untracked::UnusableTimestamp);
    }
}

/// The possible effect of a packet on its flow.
#[inline(always)]
pub(crate) fn possible_change<A: Flows>(
    flow: FlowRef<A>,
    snapshot: &FlowSnapshot,
    from: Endpoint,
    transport: &Transport,
    progress: Progress,
    is_expected: bool,
) -> PossibleChange {
    snapshot.possible_change(
        from,
        transport,
        progress,
        config::rules(),
        |endpoint| flow.pending(endpoint),
        || flow.outside_end(from.other()),
        is_expected,
    )
}

/// True if the rate limit forbids recording this packet, so that the locked step can be skipped. That is so for most
/// packets with a new `TSval`. Takes no lock, and reads a clock that is cheap but coarse. `is_present` says whether the
/// flow still is where it was found.
#[inline(always)]
pub(crate) fn is_rate_limited<A: Flows>(
    flow: FlowRef<A>,
    snapshot: &FlowSnapshot,
    from: Endpoint,
    possible_change: PossibleChange,
    transport: &Transport,
    is_present: impl FnOnce() -> bool,
) -> bool {
    /// How far this clock may lag, ns: two ticks of a kernel with the longest ticks.
    const LATE: u64 = 20_000_000;
    let rules = config::rules();
    // If timestamps and sequence numbers are both timed, the step is never skipped. Saying so here spares the verifier
    // the paths below.
    if !sync::HAS_REPLACE || rules.methods.has_both() || possible_change == PossibleChange::Anything {
        return false;
    }
    // SAFETY: this helper only reads a clock (Linux 5.11).
    let end = (rules.rate_limit > LATE).then(|| unsafe { bpf_ktime_get_coarse_ns() } + LATE);
    if !snapshot.is_rate_limited(transport, end, rules) {
        return false;
    }
    possible_change == PossibleChange::Sequence
        || advance(flow, from, transport.segment.timestamps.tsval, is_present)
}

/// Replaces the newest `TSval` of a direction; `false` if another CPU changed it or the flow meanwhile.
#[inline(always)]
fn advance<A: Flows>(
    flow: FlowRef<A>,
    from: Endpoint,
    tsval: u32,
    is_present: impl FnOnce() -> bool,
) -> bool {
    let newest = flow.newest_tsval(from);
    let known = newest.read();
    // If the flow is still present, `known` was its own value, and not that of another flow in its slot.
    if !is_present() || !is_newer(tsval, known) || !sync::replace(newest, known, tsval) {
        return false;
    }
    // A CPU with the lock may have read the older value. Then `contended` tells the next CPU with the lock that a
    // packet went by unseen.
    if flow.is_busy() || is_newer(tsval, newest.read()) {
        flow.set_contended();
    }
    true
}

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
    scratch.flow.outside_end = flow.outside_end(from.other());
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
    scratch.flow.state = guard.state(from.other());
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
pub(crate) fn report<A: Flows>(
    direction: Direction,
    interface_id: u16,
    counters: Shared<Counters>,
    scratch: &mut Scratch,
) {
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
            interface_id,
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

//! From a parsed packet to its flow, and to what `pping-common` says should happen.

use aya_ebpf::helpers::{bpf_ktime_get_ns, generated::bpf_ktime_get_coarse_ns};
use pping_common::{
    abi::{Counters, Direction},
    flow::{Endpoint, Flow, FlowKey, Noted, Reason},
    parse::{Family, Frame, Transport, Untracked},
    rtt::{Effect, Method, Pass, is_newer},
    table::{Candidates, Entry},
};

use crate::{
    aggregate::{self, Belonging},
    bounds::within,
    config,
    emit::{self, Context, State},
    fast_path,
    maps::{self, Flows, RecentFlow, Scratch},
    sync,
    table::{self, Inserted},
};

/// Counts a packet to its flow, matches it and records it; where there is a fast path, only says that a [`step`] is due, by the
/// family of the flow. An error says why it has none.
#[inline(always)]
pub(crate) fn track<A: Flows>(
    direction: Direction,
    interface_id: u16,
    counters: &mut Counters,
    scratch: &mut Scratch,
) -> Result<Option<Family>, Untracked> {
    let (key, from) = FlowKey::<A>::new(interface_id, &scratch.frame);
    let Some(candidates) = table::candidates(&key) else { return Ok(None) };
    let entry = match table::lookup(&key, &candidates, &mut scratch.slot, &mut scratch.occupant) {
        Some(entry) => entry,
        None => match begin(counters, &key, &candidates, scratch)? {
            Some(entry) => entry,
            None => return Ok(None),
        },
    };
    maps::launder(scratch);
    table::touch::<A>(scratch.slot, maps::sweeps());
    // SAFETY: a map value, valid for the program's run.
    let flow = unsafe { &raw mut (*entry).flow };
    scratch.noted = count(flow, from, direction, &scratch.frame, counters);
    maps::launder(scratch);
    let transport = &scratch.frame.transport;
    // SAFETY: a map value, valid for the program's run. Other CPUs may write to it meanwhile, but not so
    // that a value read here was never in it; what follows from a stale one is looked at again below.
    scratch.effect = unsafe { &*flow }.effect(from, transport, &scratch.noted, config::rules());
    maps::launder(scratch);
    let is_present = || table::is_present::<A>(scratch.slot, scratch.occupant);
    let is_over = scratch.effect == Effect::Nothing
        || is_rate_limited(flow, from, scratch.effect, &scratch.frame.transport, is_present);
    // RST and FIN of a flow that lost its timestamps still close it.
    if scratch.frame.transport.begins_flow(config::rules().methods) == Err(Untracked::NoTimestamp) {
        counters.untracked[Untracked::NoTimestamp as usize] += 1;
    }
    if is_over {
        return Ok(None);
    }
    if fast_path::EXISTS {
        scratch.from = from;
        return Ok(Some(A::FAMILY));
    }
    step::<A>(direction, interface_id, counters, scratch, entry, from);
    Ok(None)
}

/// Does the step that is due, of a packet of which the scratch space has all that is known.
#[inline(always)]
pub(crate) fn step_due<A: Flows>(
    direction: Direction,
    interface_id: u16,
    counters: &mut Counters,
    scratch: &mut Scratch,
) {
    // From memory, so that what follows is verified once, and not for each way here.
    maps::launder(scratch);
    let from = scratch.from;
    let Some(entry) = A::map().get_ptr_mut(scratch.occupant.entry) else { return };
    step::<A>(direction, interface_id, counters, scratch, entry, from);
}

/// Makes the entry of a flow, if a flow can begin with this packet and there is room. `None` if other CPUs are in the way.
#[inline(always)]
fn begin<A: Flows>(
    counters: &mut Counters,
    key: &FlowKey<A>,
    candidates: &Candidates,
    scratch: &mut Scratch,
) -> Result<Option<*mut Entry>, Untracked> {
    if config::excludes()
        && (maps::is_excluded(key.low.to_address()) || maps::is_excluded(key.high.to_address()))
    {
        return Err(Untracked::Excluded);
    }
    scratch.frame.transport.begins_flow(config::rules().methods)?;
    let entry = match table::insert(key, candidates, &mut scratch.slot, &mut scratch.occupant, maps::sweeps())
    {
        Inserted::New(entry) => entry,
        Inserted::Existing(entry) => return Ok(Some(entry)),
        Inserted::Full => return Err(Untracked::MapFull),
        Inserted::Contended => {
            counters.contended += 1;
            return Ok(None);
        }
    };
    counters.entries_made[A::FAMILY as usize] += 1;
    let local = u32::from(maps::is_local(key.low.to_address())) << Endpoint::Low as u32
        | u32::from(maps::is_local(key.high.to_address())) << Endpoint::High as u32;
    // SAFETY: a map value, valid for the program's run.
    unsafe { (*entry).flow.local = local };
    evict_unanswered::<A>(
        counters,
        RecentFlow { slot: scratch.slot, occupant: scratch.occupant },
        &mut scratch.recent[A::FAMILY as usize],
    );
    Ok(Some(entry))
}

/// Notes a new flow in place of one that this CPU made long before, and deletes that if nobody has answered it since.
#[inline(always)]
fn evict_unanswered<A: Flows>(counters: &mut Counters, new: RecentFlow, begun: &mut u32) {
    *begun = if *begun + 1 < config::unanswered() { *begun + 1 } else { 0 };
    maps::launder(begun);
    let Some(noted) = A::recent().get_ptr_mut(*begun) else { return };
    // SAFETY: a map value of this CPU's own, valid for the program's run.
    let old = unsafe { noted.read() };
    // SAFETY: as above.
    unsafe { noted.write(new) };
    // Another flow may be there by now.
    if old.occupant.tag == 0 || old.slot == new.slot || !table::is_present::<A>(old.slot, old.occupant) {
        return;
    }
    let Some(entry) = A::map().get_ptr_mut(old.occupant.entry) else { return };
    // SAFETY: as above. Other CPUs may write to it meanwhile, but not so that a value read here was never in it.
    if !unsafe { &(*entry).flow }.is_unanswered() {
        return;
    }
    if let Some(bucket) = table::lock::<A>(old.slot, old.occupant) {
        table::unlock::<A>(old.slot, old.occupant, bucket, false);
        counters.entries_deleted[A::FAMILY as usize] += 1;
        counters.evicted += 1;
    }
}

/// Counts a packet to its flow, and says what it means for that.
#[inline(always)]
pub(crate) fn count(
    flow: *mut Flow,
    from: Endpoint,
    direction: Direction,
    frame: &Frame,
    counters: &mut Counters,
) -> Noted {
    // SAFETY: a map value, valid for the program's run; raw pointers only, since other CPUs may add too.
    let sender = unsafe {
        match from {
            Endpoint::Low => &raw mut (*flow).low,
            Endpoint::High => &raw mut (*flow).high,
        }
    };
    // SAFETY: as above. What `note` reads and writes is for counting only, and says itself what several CPUs do to it.
    let noted = unsafe { &mut *sender }.note(&frame.transport, frame.traffic_class, direction as u8);
    // SAFETY: as above.
    let (packets, bytes, retransmissions, reordered, ce_packets) = unsafe {
        (
            &raw mut (*sender).packets,
            &raw mut (*sender).bytes,
            &raw mut (*sender).retransmissions,
            &raw mut (*sender).reordered,
            &raw mut (*sender).ce_packets,
        )
    };
    sync::add(packets, 1);
    sync::add(bytes, u64::from(frame.transport.payload()));
    if noted.is_retransmission {
        sync::add_32(retransmissions, 1);
        counters.retransmissions[direction as usize] += 1;
    }
    if noted.is_reordered {
        sync::add_32(reordered, 1);
        counters.reordered[direction as usize] += 1;
    }
    if noted.is_ce {
        sync::add_32(ce_packets, 1);
    }
    noted
}

/// Whether a packet that would have something wait cannot, and no more is to be done about it: most of those that have a new
/// `TSval`, where recordings are limited. It takes no lock, and a clock that is cheap and not exact. `is_present` says whether
/// the flow still is where it was found.
#[inline(always)]
pub(crate) fn is_rate_limited(
    flow: *mut Flow,
    from: Endpoint,
    effect: Effect,
    transport: &Transport,
    is_present: impl FnOnce() -> bool,
) -> bool {
    /// By how much this clock may be late: two ticks of the slowest kernels.
    const LATE: u64 = 20_000_000;
    let rules = config::rules();
    // Where both numbers are timed there is nothing to spare, which the verifier need not find out for each way here.
    if !sync::HAS_REPLACE || rules.methods.has_both() || effect == Effect::Anything {
        return false;
    }
    let end = if rules.rate_limit > LATE {
        // SAFETY: this helper only reads a clock (Linux 5.11).
        unsafe { bpf_ktime_get_coarse_ns() + LATE }
    } else {
        u64::MAX
    };
    // SAFETY: a map value, valid for the program's run. Other CPUs may write to it meanwhile, but not so that a value read
    // here was never in it.
    if !unsafe { &*flow }.is_rate_limited(from, transport, end, rules) {
        return false;
    }
    effect == Effect::Sequence || advance(flow, from, transport.segment.timestamps.tsval, is_present)
}

/// Has a direction's newest `TSval` be this; `false` when another CPU is in the way.
#[inline(always)]
fn advance(flow: *mut Flow, from: Endpoint, tsval: u32, is_present: impl FnOnce() -> bool) -> bool {
    // SAFETY: a map value, valid for the program's run; raw pointers only, since other CPUs may write too.
    unsafe {
        let newest = match from {
            Endpoint::Low => &raw mut (*flow).low.newest_tsval,
            Endpoint::High => &raw mut (*flow).high.newest_tsval,
        };
        let known = newest.read_volatile();
        // If the flow is there now, that was its own: what another one in its place has noted is not replaced.
        if !is_present() || !is_newer(tsval, known) || !sync::replace(newest, known, tsval) {
            return false;
        }
        // Whoever has the lock may have read the one before, and write another one. Then the next one with the lock learns that
        // a packet went by unseen.
        if (&raw const (*flow).busy).read_volatile() != 0 || is_newer(tsval, newest.read_volatile()) {
            (*flow).contended = 1;
        }
    }
    true
}

/// The rare packet that matches, records, opens or closes: alone with the flow, and with a clock.
#[inline(always)]
fn step<A: Flows>(
    direction: Direction,
    interface_id: u16,
    counters: &mut Counters,
    scratch: &mut Scratch,
    entry: *mut Entry,
    from: Endpoint,
) {
    // SAFETY: a map value, valid for the program's run.
    let (flow, busy) = unsafe { (&raw mut (*entry).flow, &raw mut (*entry).flow.busy) };
    if !sync::lock(busy) {
        counters.contended += 1;
        // SAFETY: as above. Whoever takes the lock next learns from this that a packet went by unseen.
        unsafe { (*flow).contended = 1 };
        return;
    }
    // Another flow may have taken the slot.
    if !table::is_present::<A>(scratch.slot, scratch.occupant) {
        sync::unlock(busy);
        counters.contended += 1;
        return;
    }
    // SAFETY: this helper only reads a clock.
    let now = unsafe { bpf_ktime_get_ns() };
    // SAFETY: the lock is held, so nobody else has a mutable view of what `step` changes.
    let flow_ref = unsafe { &mut *flow };
    scratch.changes = flow_ref.follow(from, &scratch.frame.transport, now);
    maps::launder(scratch);
    measure(flow, from, now, Pass::First, scratch);
    if config::rules().methods.has_both() {
        measure(flow, from, now, Pass::Second, scratch);
    }
    // SAFETY: as above.
    let flow_ref = unsafe { &*flow };
    // What the record tells of the two directions, before another CPU can change it.
    let (timed, other) = match from {
        Endpoint::Low => (&flow_ref.high, &flow_ref.low),
        Endpoint::High => (&flow_ref.low, &flow_ref.high),
    };
    scratch.state = State {
        min_rtt: timed.rtt.min,
        smoothed_rtt: timed.rtt.smoothed,
        sent_packets: timed.packets,
        sent_bytes: timed.bytes,
        rec_packets: other.packets,
        rec_bytes: other.bytes,
    };
    // Telling the agent takes longer than all the rest, so it is done when others can have the flow again.
    sync::unlock(busy);
    maps::launder(scratch);

    counters.pending_full += u64::from(scratch.measured.pending_full);
    if config::rules().methods.has_both() {
        counters.pending_full += u64::from(scratch.second.pending_full);
    }
    if scratch.changes.opened {
        let reason = within::<{ Reason::COUNT }>(scratch.changes.opened_by as usize);
        counters.opened[reason] += u64::from(scratch.changes.opened_first);
        let context = Context { direction, interface_id, frame: &scratch.frame };
        emit::opening::<A>(&context, counters, &scratch.changes);
        maps::launder(scratch);
    }
    report::<A>(direction, interface_id, counters, scratch, flow, from, now);
    if config::rules().methods.has_both() {
        scratch.measured = scratch.second;
        maps::launder(scratch);
        report::<A>(direction, interface_id, counters, scratch, flow, from, now);
    }
    if scratch.changes.closed_forward || scratch.changes.closed_reverse {
        let reason = within::<{ Reason::COUNT }>(scratch.changes.closed_by as usize);
        counters.closed[reason] += u64::from(scratch.changes.closed_last);
        let context = Context { direction, interface_id, frame: &scratch.frame };
        emit::closing::<A>(&context, counters, &scratch.changes, now);
    }
}

/// Measures by the packet, in steps that are verified one after the other.
#[inline(always)]
fn measure(flow: *mut Flow, from: Endpoint, now: u64, pass: Pass, scratch: &mut Scratch) {
    let rules = config::rules();
    let flow = maps::launder_ptr(flow).cast_mut();
    // SAFETY: a map value, valid for the program's run, of which the lock is held.
    let flow_ref = unsafe { &mut *flow };
    flow_ref.plan(from, &scratch.frame.transport, &scratch.noted, now, rules, pass, &mut scratch.plan);
    maps::launder(scratch);
    let flow = maps::launder_ptr(flow).cast_mut();
    // SAFETY: as above.
    let flow_ref = unsafe { &mut *flow };
    let measured = if pass == Pass::First { &mut scratch.measured } else { &mut scratch.second };
    flow_ref.find(from, now, rules, pass, &mut scratch.plan, measured);
    maps::launder(scratch);
    let flow = maps::launder_ptr(flow).cast_mut();
    // SAFETY: as above.
    let flow_ref = unsafe { &mut *flow };
    let measured = if pass == Pass::First { &mut scratch.measured } else { &mut scratch.second };
    flow_ref.record(from, now, rules, pass, &scratch.plan, measured);
    maps::launder(scratch);
}

/// Counts a sample, adds it to its series and tells the agent, if there is one.
#[inline(always)]
fn report<A: Flows>(
    direction: Direction,
    interface_id: u16,
    counters: &mut Counters,
    scratch: &mut Scratch,
    flow: *mut Flow,
    from: Endpoint,
    now: u64,
) {
    if !scratch.measured.has_sample {
        return;
    }
    let method = within::<{ Method::COUNT }>(scratch.measured.sample.method as usize);
    counters.samples[direction as usize][method] += 1;
    aggregate(direction, interface_id, counters, scratch, flow, from);
    maps::launder(scratch);
    let context = Context { direction, interface_id, frame: &scratch.frame };
    let sample = &scratch.measured.sample;
    emit::rtt::<A>(&context, counters, sample, &scratch.state, now, scratch.series.index);
    maps::launder(scratch);
}

/// Adds the sample of a packet that `from` sent to the series of what it echoes.
#[inline(always)]
fn aggregate(
    direction: Direction,
    interface_id: u16,
    counters: &mut Counters,
    scratch: &mut Scratch,
    flow: *mut Flow,
    from: Endpoint,
) {
    let frame = &scratch.frame;
    let belonging = Belonging {
        interface_id,
        method: scratch.measured.sample.method as u8,
        direction: direction as u8,
        dscp: frame.traffic_class >> 2,
        source: frame.source,
        destination: frame.destination,
    };
    let rtt = scratch.measured.sample.rtt;
    aggregate::sample(flow, from.other(), &belonging, counters, &mut scratch.series, rtt);
}

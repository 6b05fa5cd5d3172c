//! From a parsed packet to its flow, and to what `pping-common` says should happen.

use aya_ebpf::helpers::{bpf_ktime_get_ns, generated::bpf_ktime_get_coarse_ns};
use pping_common::{
    abi::{Counters, Direction, FlowState, SeriesSelector},
    flow::{Endpoint, Flow, FlowKey, Noted},
    parse::{Family, Frame, Transport, Untracked},
    rtt::{Effect, Pass, is_newer},
    table::{Candidates, Entry},
};

use crate::{
    aggregate, config,
    emit::{self, Context},
    launder::{launder, launder_ptr},
    maps::{self, Flows, RecentFlow, Scratch},
    shared::{Shared, field},
    sync::{self, Atomic},
    table::{self, Inserted},
};

/// Counts a packet to its flow. Returns the family of the flow if [`step`] has to follow: the packet may match or record. An error
/// says why the packet has no flow.
#[inline(always)]
pub(crate) fn track<A: Flows>(
    direction: Direction,
    interface_id: u16,
    counters: Shared<Counters>,
    scratch: &mut Scratch,
) -> Result<Option<Family>, Untracked> {
    let (key, from) = FlowKey::<A>::new(interface_id, &scratch.frame);
    let family = A::FAMILY as usize;
    let candidates = Candidates::of(&key, scratch.seeds[family], scratch.buckets[family]);
    let entry = match table::lookup(&key, &candidates, &mut scratch.slot, &mut scratch.occupant) {
        Some(entry) => entry,
        None => match begin(counters, &key, &candidates, scratch)? {
            Some(entry) => entry,
            None => return Ok(None),
        },
    };
    launder(scratch);
    table::touch::<A>(scratch.slot, scratch.sweep);
    // SAFETY: a map value, valid for the program's run.
    let flow = unsafe { &raw mut (*entry).flow };
    scratch.noted = count(flow, from, direction, &scratch.frame, counters);
    launder(scratch);
    let transport = &scratch.frame.transport;
    // SAFETY: a map value, valid for the program's run. Other CPUs may write to it meanwhile, but not so
    // that a value read here was never in it; what follows from a stale one is looked at again below.
    scratch.effect = unsafe { &*flow }.effect(from, transport, &scratch.noted, config::rules());
    launder(scratch);
    let is_present = || table::is_present::<A>(scratch.slot, scratch.occupant);
    let is_over = scratch.effect == Effect::Nothing
        || is_rate_limited(flow, from, scratch.effect, &scratch.frame.transport, is_present);
    // RST and FIN of a flow that lost its timestamps still close it.
    if scratch.frame.transport.begins_flow(config::rules().methods) == Err(Untracked::NoTimestamp) {
        counters.untracked(Untracked::NoTimestamp);
    }
    if is_over {
        return Ok(None);
    }
    scratch.from = from;
    Ok(Some(A::FAMILY))
}

/// Inserts a flow, if a flow can begin with this packet and there is room. `None` if other CPUs are in the way.
#[inline(always)]
fn begin<A: Flows>(
    counters: Shared<Counters>,
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
    let entry = match table::insert(key, candidates, &mut scratch.slot, &mut scratch.occupant, scratch.sweep)
    {
        Inserted::New(entry) => entry,
        Inserted::Existing(entry) => return Ok(Some(entry)),
        Inserted::Full => return Err(Untracked::MapFull),
        Inserted::Contended => {
            counters.at(field!(Counters, contended)).count(1);
            return Ok(None);
        }
    };
    counters.at(field!(Counters, entries_made)).element(A::FAMILY as usize).count(1);
    let local = Flow::local_ends(maps::is_local(key.low.to_address()), maps::is_local(key.high.to_address()));
    // SAFETY: a map value, valid for the program's run.
    unsafe { (*entry).flow.local = local };
    evict_unanswered::<A>(
        counters,
        RecentFlow { slot: scratch.slot, occupant: scratch.occupant },
        &mut scratch.recent[A::FAMILY as usize],
    );
    Ok(Some(entry))
}

/// Puts a new flow into this CPU's ring of recent flows, and evicts the oldest in it if it is still unanswered.
#[inline(always)]
fn evict_unanswered<A: Flows>(counters: Shared<Counters>, new: RecentFlow, position: &mut u32) {
    *position = if *position + 1 < config::unanswered() { *position + 1 } else { 0 };
    launder(position);
    let Some(oldest) = A::recent().get_ptr_mut(*position) else { return };
    // SAFETY: a map value of this CPU's own, valid for the program's run.
    let old = unsafe { oldest.read() };
    // SAFETY: as above.
    unsafe { oldest.write(new) };
    // It may be gone by now, and another flow in its slot.
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
        counters.at(field!(Counters, entries_deleted)).element(A::FAMILY as usize).count(1);
        counters.at(field!(Counters, evicted)).count(1);
    }
}

/// Counts a packet to its flow, and says what it means for that.
#[inline(always)]
pub(crate) fn count(
    flow: *mut Flow,
    from: Endpoint,
    direction: Direction,
    frame: &Frame,
    counters: Shared<Counters>,
) -> Noted {
    // SAFETY: a map value, valid for the program's run.
    let sender = unsafe {
        match from {
            Endpoint::Low => &raw mut (*flow).low,
            Endpoint::High => &raw mut (*flow).high,
        }
    };
    // SAFETY: as above. What this reads and writes is for counting only, atomically where a sum must not lose anything;
    // the rest says itself what several CPUs do to it.
    let sender = unsafe { &mut *sender };
    let segments = (
        || counters.at(field!(Counters, retransmissions)).element(direction as usize).count(1),
        || counters.at(field!(Counters, reordered)).element(direction as usize).count(1),
    );
    sender.count::<Atomic>(&frame.transport, frame.traffic_class, direction as u8, segments)
}

/// True if the rate limit forbids recording this packet, so that the locked step can be skipped: most packets with a new `TSval`.
/// Takes no lock, and a clock that is cheap but coarse. `is_present` says whether the flow still is where it was found.
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
    // Where both numbers are timed the step is never skipped, which the verifier need not find out for each way here.
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

/// Replaces the newest `TSval` of a direction; `false` when another CPU is in the way.
#[inline(always)]
fn advance(flow: *mut Flow, from: Endpoint, tsval: u32, is_present: impl FnOnce() -> bool) -> bool {
    // SAFETY: a map value, valid for the program's run; raw pointers only, since other CPUs may write too.
    unsafe {
        let newest = match from {
            Endpoint::Low => &raw mut (*flow).low.newest_tsval,
            Endpoint::High => &raw mut (*flow).high.newest_tsval,
        };
        let known = newest.read_volatile();
        // If the flow is there now, `known` was its own, and not that of another flow in its slot.
        if !is_present() || !is_newer(tsval, known) || !sync::replace(newest, known, tsval) {
            return false;
        }
        // A CPU with the lock may have read the one before, and write another one. Then the next CPU with the lock learns that
        // a packet went by unseen.
        if (&raw const (*flow).busy).read_volatile() != 0 || is_newer(tsval, newest.read_volatile()) {
            (*flow).contended = 1;
        }
    }
    true
}

/// The rare packet that matches, records, opens or closes: alone with the flow, and with a clock. It is the one in scratch space.
#[inline(always)]
pub(crate) fn step<A: Flows>(
    direction: Direction,
    interface_id: u16,
    counters: Shared<Counters>,
    scratch: &mut Scratch,
) {
    let from = scratch.from;
    let Some(entry) = A::map().get_ptr_mut(scratch.occupant.entry) else { return };
    // SAFETY: a map value, valid for the program's run.
    let (flow, busy) = unsafe { (&raw mut (*entry).flow, &raw mut (*entry).flow.busy) };
    if !sync::lock(busy) {
        counters.at(field!(Counters, contended)).count(1);
        // SAFETY: as above. The next CPU with the lock learns from this that a packet went by unseen.
        unsafe { (*flow).contended = 1 };
        return;
    }
    // Another flow may have taken the slot.
    if !table::is_present::<A>(scratch.slot, scratch.occupant) {
        sync::unlock(busy);
        counters.at(field!(Counters, contended)).count(1);
        return;
    }
    // SAFETY: this helper only reads a clock.
    let now = unsafe { bpf_ktime_get_ns() };
    // SAFETY: the lock is held, so no other CPU changes what `step` does.
    let flow_ref = unsafe { &mut *flow };
    scratch.changes = flow_ref.follow(from, &scratch.frame.transport, now);
    launder(scratch);
    measure(flow, from, now, Pass::First, scratch);
    if config::rules().methods.has_both() {
        measure(flow, from, now, Pass::Second, scratch);
    }
    // What the record has of the flow, before another CPU can change it.
    // SAFETY: as above.
    scratch.state = FlowState::of(unsafe { &*flow }, from.other());
    // Reporting takes longer than all the rest, so the lock is given back first.
    sync::unlock(busy);
    launder(scratch);

    let pending_full = counters.at(field!(Counters, pending_full));
    pending_full.count(u64::from(scratch.measured.pending_full));
    if config::rules().methods.has_both() {
        pending_full.count(u64::from(scratch.second.pending_full));
    }
    if scratch.changes.opened {
        let opened = counters.at(field!(Counters, opened)).element(scratch.changes.opened_by as usize);
        opened.count(u64::from(scratch.changes.opened_first));
        let context = Context { direction, interface_id, frame: &scratch.frame };
        emit::opening::<A>(&context, counters, &scratch.changes);
        launder(scratch);
    }
    report::<A>(direction, interface_id, counters, scratch, flow, from, now);
    if config::rules().methods.has_both() {
        scratch.measured = scratch.second;
        launder(scratch);
        report::<A>(direction, interface_id, counters, scratch, flow, from, now);
    }
    if scratch.changes.closed_forward || scratch.changes.closed_reverse {
        let closed = counters.at(field!(Counters, closed)).element(scratch.changes.closed_by as usize);
        closed.count(u64::from(scratch.changes.closed_last));
        let context = Context { direction, interface_id, frame: &scratch.frame };
        emit::closing::<A>(&context, counters, &scratch.changes, now);
    }
}

/// Measures by the packet, in steps that are verified one after the other.
#[inline(always)]
fn measure(flow: *mut Flow, from: Endpoint, now: u64, pass: Pass, scratch: &mut Scratch) {
    let rules = config::rules();
    let flow = launder_ptr(flow).cast_mut();
    // SAFETY: a map value, valid for the program's run, of which the lock is held.
    let flow_ref = unsafe { &mut *flow };
    flow_ref.plan(from, &scratch.frame.transport, &scratch.noted, now, rules, pass, &mut scratch.plan);
    launder(scratch);
    let flow = launder_ptr(flow).cast_mut();
    // SAFETY: as above.
    let flow_ref = unsafe { &mut *flow };
    let measured = if pass == Pass::First { &mut scratch.measured } else { &mut scratch.second };
    flow_ref.find(from, now, rules, pass, &mut scratch.plan, measured);
    launder(scratch);
    let flow = launder_ptr(flow).cast_mut();
    // SAFETY: as above.
    let flow_ref = unsafe { &mut *flow };
    let measured = if pass == Pass::First { &mut scratch.measured } else { &mut scratch.second };
    flow_ref.record(from, now, rules, pass, &scratch.plan, measured);
    launder(scratch);
}

/// Counts a sample if there is one, adds it to its series and reports it.
#[inline(always)]
fn report<A: Flows>(
    direction: Direction,
    interface_id: u16,
    counters: Shared<Counters>,
    scratch: &mut Scratch,
    flow: *mut Flow,
    from: Endpoint,
    now: u64,
) {
    if !scratch.measured.has_sample {
        return;
    }
    let method = scratch.measured.sample.method as usize;
    counters.at(field!(Counters, samples)).element(direction as usize).element(method).count(1);
    aggregate(direction, interface_id, counters, scratch, flow, from);
    launder(scratch);
    let context = Context { direction, interface_id, frame: &scratch.frame };
    let sample = &scratch.measured.sample;
    emit::rtt::<A>(&context, counters, sample, &scratch.state, now, scratch.target.index);
    launder(scratch);
}

/// Adds the sample of a packet that `from` sent to the series of what it echoes.
#[inline(always)]
fn aggregate(
    direction: Direction,
    interface_id: u16,
    counters: Shared<Counters>,
    scratch: &mut Scratch,
    flow: *mut Flow,
    from: Endpoint,
) {
    let method = scratch.measured.sample.method;
    let selector = SeriesSelector::of_sample(interface_id, method, direction as u8, &scratch.frame);
    let rtt = scratch.measured.sample.rtt;
    aggregate::sample(flow, from.other(), &selector, counters, &mut scratch.target, rtt);
}

//! Finds the flow of a parsed packet, and counts the packet for it, without the lock of the flow.

use aya_ebpf::helpers::generated::bpf_ktime_get_coarse_ns;
use pping_common::{
    abi::Counters,
    flow::{self as flows, Cold, Endpoint, Facts, FlowKey, FlowSnapshot},
    parse::{Direction, Family, Frame, Transport, Untracked},
    rtt::{PossibleChange, Progress, is_newer},
    table::Candidates,
};

use crate::{
    barrier::barrier_var,
    config, count,
    flow::{DirectionCounter, FlowRef},
    maps::{self, Flows, Newcomers, Occupant, RecentFlow, Scratch},
    rings::SourceRing,
    shared::prelude::*,
    sync,
    table::{self, Inserted},
};

/// Counts a packet for its flow. Returns the family of the flow if [`step`](crate::step::step) has to follow, because the packet may match
/// or record. An error says why the packet has no flow.
#[inline(always)]
pub(crate) fn track<A: Flows>(
    direction: Direction,
    counters: Shared<Counters>,
    scratch: &mut Scratch,
) -> Result<Option<Family>, Untracked> {
    let (key, from) = FlowKey::<A>::new(scratch.packet.joined_id, &scratch.packet.frame);
    let family = A::FAMILY as usize;
    let candidates = Candidates::of(&key, config::table_keys(), scratch.packet.buckets[family]);
    let flow = match table::lookup(&key, &candidates, &mut scratch.flow.slot, &mut scratch.flow.occupant) {
        Some(flow) => flow,
        None => match insert_flow(&key, &candidates, scratch)? {
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
    let Some(counters) = maps::counters(scratch.packet.joined_id) else { return Ok(None) };
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

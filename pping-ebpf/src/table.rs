//! Lookup, insert and removal in the tables of [`pping_common::table`]. See docs/architecture.md, the flow table.

use pping_common::{
    flow::FlowKey,
    table::{self, Bucket, Candidates, Slot, Table, WAYS},
};

use crate::{
    barrier::{barrier_index, barrier_var},
    flow::FlowRef,
    maps::{self, Flows, Occupant},
    numbers,
    shared::prelude::*,
    sync,
};

/// The tags of a bucket.
#[inline(always)]
fn tags(bucket: Shared<Bucket>) -> impl Iterator<Item = u32> {
    bucket.at(field!(Bucket, tags)).iter().map(Shared::read)
}

/// Looks up a flow, and writes down its slot.
#[inline(always)]
pub(crate) fn lookup<A: Flows>(
    key: &FlowKey<A>,
    candidates: &Candidates,
    slot: &mut Slot,
    occupant: &mut Occupant,
) -> Option<FlowRef<A>> {
    lookup_in(key, candidates.first, candidates.tag, slot, occupant)
        .or_else(|| lookup_in(key, candidates.second, candidates.tag, slot, occupant))
}

#[inline(always)]
fn lookup_in<A: Flows>(
    key: &FlowKey<A>,
    number: u32,
    tag: u32,
    slot: &mut Slot,
    occupant: &mut Occupant,
) -> Option<FlowRef<A>> {
    let bucket = A::bucket(number)?;
    *slot = Slot::new(number, table::find_way(tags(bucket), tag)?);
    // So the verifier follows what comes next once, not once per slot.
    barrier_var(slot);
    let entry = bucket.at(field!(Bucket, entries)).get(slot.way())?.read();
    *occupant = Occupant { tag, entry };
    FlowRef::new(occupant.entry).filter(|flow| flow.has_key(key))
}

/// Looks up a flow and marks it as seen in this sweep, without writing down its slot.
#[inline(always)]
pub(crate) fn lookup_and_touch<A: Flows>(
    key: &FlowKey<A>,
    candidates: &Candidates,
    sweep: u32,
) -> Option<FlowRef<A>> {
    lookup_and_touch_in(key, candidates.first, candidates.tag, sweep)
        .or_else(|| lookup_and_touch_in(key, candidates.second, candidates.tag, sweep))
}

#[inline(always)]
fn lookup_and_touch_in<A: Flows>(key: &FlowKey<A>, number: u32, tag: u32, sweep: u32) -> Option<FlowRef<A>> {
    let bucket = A::bucket(number)?;
    let entries = bucket.at(field!(Bucket, entries));
    let seen = bucket.at(field!(Bucket, seen));
    let (_, (seen, entry)) =
        tags(bucket).zip(seen.iter().zip(entries.iter())).find(|&(other, _)| other == tag)?;
    // Marked before the key is compared, so that the verifier need not distinguish the slots afterwards. A wrong flow
    // that has the same tag by chance expires a little later.
    seen.update(sweep as u16);
    FlowRef::new(entry.read()).filter(|flow| flow.has_key(key))
}

/// The outcome of an insertion.
pub(crate) enum Inserted<A: Flows> {
    /// The flow is new.
    New(FlowRef<A>),
    /// Another CPU has just inserted the flow.
    Existing(FlowRef<A>),
    /// The table is full.
    Full,
    /// Other CPUs hold the locks.
    Contended,
}

/// Inserts a flow, unless another CPU just did, and writes down its slot.
#[inline(always)]
pub(crate) fn insert<A: Flows>(
    key: &FlowKey<A>,
    candidates: &Candidates,
    slot: &mut Slot,
    occupant: &mut Occupant,
    seen: u32,
) -> Inserted<A> {
    let (Some(table), Some(first), Some(second)) =
        (maps::table(A::FAMILY), A::bucket(candidates.first), A::bucket(candidates.second))
    else {
        return Inserted::Full;
    };
    let flows = table.at(field!(Table, flows));
    if flows.read() >= table.at(field!(Table, entries.max)).read() {
        return Inserted::Full;
    }
    let (first_busy, second_busy) = (first.at(field!(Bucket, busy)), second.at(field!(Bucket, busy)));
    if !sync::lock_briefly(first_busy) {
        return Inserted::Contended;
    }
    // A bucket has each tag once, so another key with the same tag leaves only the other bucket.
    let has_tag = |bucket| table::find_way(tags(bucket), candidates.tag).is_some();
    let (first_has, second_has) = (has_tag(first), has_tag(second));
    let is_better = table::prefers_second(table::occupied(tags(first)), table::occupied(tags(second)));
    // As a number: the compiler would keep half of a pointer for it, which the verifier refuses.
    let is_second = barrier_index(usize::from(!second_has && (first_has || is_better))) != 0;
    let made = if let Some(flow) = lookup(key, candidates, slot, occupant) {
        Inserted::Existing(flow)
    } else if first_has && second_has {
        // By a chance of less than one in 2^56: the keys are secret.
        Inserted::Full
    } else if is_second && !sync::lock_briefly(second_busy) {
        Inserted::Contended
    } else {
        let (bucket, number) =
            if is_second { (second, candidates.second) } else { (first, candidates.first) };
        occupant.tag = candidates.tag;
        let made = fill(key, table, bucket, number, slot, occupant, seen);
        if is_second {
            sync::unlock(second_busy);
        }
        made
    };
    sync::unlock(first_busy);
    if let Inserted::New(_) = made {
        flows.add(1);
    }
    made
}

/// Inserts a flow into a bucket whose lock is held.
#[inline(always)]
fn fill<A: Flows>(
    key: &FlowKey<A>,
    table: Shared<Table>,
    bucket: Shared<Bucket>,
    number: u32,
    slot: &mut Slot,
    occupant: &mut Occupant,
    seen: u32,
) -> Inserted<A> {
    let Some(way) = table::find_way(tags(bucket), 0) else { return Inserted::Full };
    *slot = Slot::new(number, way);
    let Some(free) = numbers::take(A::free(), table.at(field!(Table, entries))) else {
        return Inserted::Contended;
    };
    occupant.entry = free;
    barrier_var(occupant);
    barrier_var(slot);
    let way = slot.way();
    let (Some(flow), Some(seen_at), Some(entry_at), Some(tag_at)) = (
        FlowRef::<A>::new(occupant.entry),
        bucket.at(field!(Bucket, seen)).get(way),
        bucket.at(field!(Bucket, entries)).get(way),
        bucket.at(field!(Bucket, tags)).get(way),
    ) else {
        return Inserted::Full;
    };
    // Another CPU may still use the flow that had this entry.
    if !flow.reset(key) {
        numbers::give(A::free(), occupant.entry);
        return Inserted::Contended;
    }
    // The lock of the bucket is held.
    seen_at.write(seen as u16);
    entry_at.write(occupant.entry);
    sync::publish(tag_at, occupant.tag);
    Inserted::New(flow)
}

/// Marks the flow in a slot as seen in this sweep.
#[inline(always)]
pub(crate) fn touch<A: Flows>(slot: Slot, sweep: u32) {
    if let Some(seen) =
        A::bucket(slot.bucket()).and_then(|bucket| bucket.at(field!(Bucket, seen)).get(slot.way()))
    {
        seen.update(sweep as u16);
    }
}

/// The occupant of a slot, and the sweep in which its last packet came, modulo 2^16.
#[inline(always)]
pub(crate) fn peek<A: Flows>(slot: Slot) -> Option<(Occupant, u16)> {
    let bucket = A::bucket(slot.bucket())?;
    let way = barrier_index(slot.way());
    if way >= WAYS {
        return None;
    }
    let occupant = Occupant {
        tag: bucket.at(field!(Bucket, tags)).get(way)?.read(),
        entry: bucket.at(field!(Bucket, entries)).get(way)?.read(),
    };
    Some((occupant, bucket.at(field!(Bucket, seen)).get(way)?.read()))
}

/// Whether a slot still has this occupant.
#[inline(always)]
pub(crate) fn is_present<A: Flows>(slot: Slot, occupant: Occupant) -> bool {
    peek::<A>(slot).is_some_and(|(there, _)| there == occupant)
}

/// Locks the bucket of a slot until [`unlock`] or [`remove`], if the slot still has this occupant. `None` if not, or if other CPUs hold the lock.
#[inline(always)]
pub(crate) fn lock<A: Flows>(slot: Slot, occupant: Occupant) -> Option<Shared<Bucket>> {
    let bucket = A::bucket(slot.bucket())?;
    let busy = bucket.at(field!(Bucket, busy));
    if !sync::lock_briefly(busy) {
        return None;
    }
    if is_present::<A>(slot, occupant) {
        return Some(bucket);
    }
    sync::unlock(busy);
    None
}

/// Unlocks a bucket.
#[inline(always)]
pub(crate) fn unlock(bucket: Shared<Bucket>) {
    sync::unlock(bucket.at(field!(Bucket, busy)));
}

/// Removes the occupant of a slot, a flow, and unlocks its bucket.
#[inline(always)]
pub(crate) fn remove<A: Flows>(slot: Slot, occupant: Occupant, bucket: Shared<Bucket>, flow: FlowRef<A>) {
    if let Some(tag) = bucket.at(field!(Bucket, tags)).get(slot.way()) {
        tag.write(0);
    }
    unlock(bucket);
    // A CPU that has the lock may still record something. If so, the pool entry is freed when this number is taken again.
    if let Some(mut guard) = flow.lock_briefly() {
        guard.release_pending();
    }
    if let Some(table) = maps::table(A::FAMILY) {
        numbers::give(A::free(), occupant.entry);
        table.at(field!(Table, flows)).add(1_u32.wrapping_neg());
    }
}

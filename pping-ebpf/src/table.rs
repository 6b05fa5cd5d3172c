//! Lookup, insert and removal in the tables of [`pping_common::table`]. See docs/architecture.md, the flow table.

use core::ptr;

use pping_common::{
    flow::{Flow, FlowKey},
    table::{Bucket, Candidates, Entry, Slot, Table, WAYS},
};

use crate::{
    launder::{launder, launder_index, launder_ptr},
    maps::{self, Flows, Occupant},
    sync,
};

/// Words at the start of a flow that are not copied when it is inserted: its lock is there.
const LOCK: usize = 1;

/// A new flow. It is too large for the stack of a BPF program.
static EMPTY_FLOW: Flow = Flow::EMPTY;

/// Looks up a flow, and writes down its slot.
#[inline(always)]
pub(crate) fn lookup<A: Flows>(
    key: &FlowKey<A>,
    candidates: &Candidates,
    slot: &mut Slot,
    occupant: &mut Occupant,
) -> Option<*mut Entry> {
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
) -> Option<*mut Entry> {
    let bucket = A::index().get_ptr(number)?;
    // SAFETY: a map value, valid for the program's run.
    *slot = Slot::new(number, unsafe { &*bucket }.way(tag)?);
    // Then the verifier follows what comes next once, not once per slot.
    launder(slot);
    let way = launder_index(slot.way());
    if way >= WAYS {
        return None;
    }
    // SAFETY: as above.
    let entry = unsafe { (&raw const (*bucket).entries).cast::<u32>().add(way).read() };
    *occupant = Occupant { tag, entry };
    let entry = A::map().get_ptr_mut(occupant.entry)?;
    has_key(entry, key).then_some(entry)
}

/// Looks up a flow and marks it as seen before this sweep, without writing down its slot.
#[inline(always)]
pub(crate) fn lookup_and_touch<A: Flows>(
    key: &FlowKey<A>,
    candidates: &Candidates,
    sweep: u32,
) -> Option<*mut Entry> {
    lookup_and_touch_in(key, candidates.first, candidates.tag, sweep)
        .or_else(|| lookup_and_touch_in(key, candidates.second, candidates.tag, sweep))
}

#[inline(always)]
fn lookup_and_touch_in<A: Flows>(key: &FlowKey<A>, number: u32, tag: u32, sweep: u32) -> Option<*mut Entry> {
    let bucket = A::index().get_ptr_mut(number)?;
    // SAFETY: a map value, valid for the program's run.
    let entry = unsafe {
        let way = (*bucket).way(tag)?;
        // Before the key is compared, so that the verifier need not distinguish the slots afterwards. A wrong flow that has the
        // same tag by chance expires a little later.
        touch_at(bucket, way, sweep);
        (*bucket).entries[way]
    };
    let entry = A::map().get_ptr_mut(entry)?;
    has_key(entry, key).then_some(entry)
}

/// Whether an entry has this key.
#[inline(always)]
pub(crate) fn has_key<A: Flows>(entry: *const Entry, key: &FlowKey<A>) -> bool {
    // SAFETY: a map value, valid for the program's run. A key that another CPU writes just now is not the one, or soon will be.
    key.is_in(unsafe { &(*launder_ptr(entry)).key })
}

/// The key of a flow.
#[inline(always)]
pub(crate) fn key_of<A>(entry: *const Entry) -> *const FlowKey<A> {
    const { assert!(size_of::<FlowKey<A>>() <= size_of::<[u64; 5]>() && align_of::<FlowKey<A>>() <= 8) };
    entry.cast()
}

/// The outcome of an insertion.
#[derive(Clone, Copy)]
pub(crate) enum Inserted {
    /// The flow is new.
    New(*mut Entry),
    /// Another CPU has just inserted the flow.
    Existing(*mut Entry),
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
) -> Inserted {
    let (Some(table), Some(first), Some(second)) = (
        maps::table(A::FAMILY),
        A::index().get_ptr_mut(candidates.first),
        A::index().get_ptr_mut(candidates.second),
    ) else {
        return Inserted::Full;
    };
    // SAFETY: map values, valid for the program's run.
    let (flows, max_flows, first_busy, second_busy) =
        unsafe { ((*table).flows, (*table).max_flows, &raw mut (*first).busy, &raw mut (*second).busy) };
    if flows >= max_flows {
        return Inserted::Full;
    }
    if !sync::lock_rare(first_busy) {
        return Inserted::Contended;
    }
    // SAFETY: as above.
    let (first_bucket, second_bucket) = unsafe { (&*first, &*second) };
    // The other bucket is emptier.
    let is_second = second_bucket.taken() < first_bucket.taken();
    let made = if let Some(entry) = lookup(key, candidates, slot, occupant) {
        Inserted::Existing(entry)
    } else if first_bucket.way(candidates.tag).is_some() || second_bucket.way(candidates.tag).is_some() {
        // One in four thousand million: the two could not be distinguished.
        Inserted::Full
    } else if is_second && !sync::lock_rare(second_busy) {
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
        // SAFETY: as above.
        sync::add_32(unsafe { &raw mut (*table).flows }, 1);
    }
    made
}

/// Inserts a flow into a bucket whose lock is held.
#[inline(always)]
fn fill<A: Flows>(
    key: &FlowKey<A>,
    table: *mut Table,
    bucket: *mut Bucket,
    number: u32,
    slot: &mut Slot,
    occupant: &mut Occupant,
    seen: u32,
) -> Inserted {
    // SAFETY: a map value, valid for the program's run.
    let Some(way) = unsafe { &*bucket }.way(0) else { return Inserted::Full };
    *slot = Slot::new(number, way);
    let Some(free) = allocate::<A>(table) else { return Inserted::Contended };
    occupant.entry = free;
    launder(occupant);
    launder(slot);
    let way = launder_index(slot.way());
    let Some(entry) = A::map().get_ptr_mut(occupant.entry).filter(|_| way < WAYS) else {
        return Inserted::Full;
    };
    // SAFETY: a map value, valid for the program's run.
    let busy = unsafe { &raw mut (*entry).flow.busy };
    // Another CPU may still use the flow that had this entry.
    if !sync::lock_rare(busy) {
        release::<A>(occupant.entry);
        return Inserted::Contended;
    }
    // SAFETY: as above, and with the lock held other CPUs only count there.
    unsafe {
        entry.cast::<FlowKey<A>>().write(*key);
        let (from, to) = ((&raw const EMPTY_FLOW).cast::<u64>(), (&raw mut (*entry).flow).cast::<u64>());
        ptr::copy_nonoverlapping(from.add(LOCK), to.add(LOCK), size_of::<Flow>() / size_of::<u64>() - LOCK);
        (*entry).flow.contended = 0;
    }
    sync::unlock(busy);
    // SAFETY: as above; the lock of the bucket is held.
    unsafe {
        (&raw mut (*bucket).seen).cast::<u16>().add(way).write(seen as u16);
        (&raw mut (*bucket).entries).cast::<u32>().add(way).write(occupant.entry);
        sync::publish((&raw mut (*bucket).tags).cast::<u32>().add(way), occupant.tag);
    }
    Inserted::New(entry)
}

/// A free entry: the last one given back, or else one that was never used. `None` if there is none, or another CPU holds the
/// stack.
#[inline(always)]
fn allocate<A: Flows>(table: *mut Table) -> Option<u32> {
    if let Ok(Some(entry)) = A::free().pop() {
        return Some(entry);
    }
    // SAFETY: a map value, valid for the program's run.
    let (busy, used) = unsafe { (&raw mut (*table).busy, &raw mut (*table).used) };
    if !sync::lock_rare(busy) {
        return None;
    }
    // SAFETY: as above; the lock is held.
    let entry = unsafe {
        let entry = used.read_volatile();
        let is_there = entry < (*table).max_flows;
        used.write_volatile(entry + u32::from(is_there));
        is_there.then_some(entry)
    };
    sync::unlock(busy);
    entry
}

/// Gives an entry back.
#[inline(always)]
fn release<A: Flows>(entry: u32) {
    // The stack has room for all entries, so this fails only if other CPUs hold it too long. Then the entry is lost.
    let _ = A::free().push(&entry, 0);
}

/// Marks the flow in a slot as seen before this sweep.
#[inline(always)]
pub(crate) fn touch<A: Flows>(slot: Slot, sweep: u32) {
    let Some(bucket) = A::index().get_ptr_mut(slot.bucket()) else { return };
    let way = launder_index(slot.way());
    if way < WAYS {
        // SAFETY: a map value, valid for the program's run, and one of its slots.
        unsafe { touch_at(bucket, way, sweep) };
    }
}

/// # Safety
/// The bucket is valid, and has such a slot.
#[inline(always)]
unsafe fn touch_at(bucket: *mut Bucket, way: usize, sweep: u32) {
    // SAFETY: as of this function. Written only when it changes, which leaves the cache line alone.
    unsafe {
        let seen = (&raw mut (*bucket).seen).cast::<u16>().add(way);
        if *seen != sweep as u16 {
            *seen = sweep as u16;
        }
    }
}

/// The occupant of a slot, and the sweep before which its last packet came, modulo 2^16.
#[inline(always)]
pub(crate) fn peek<A: Flows>(slot: Slot) -> Option<(Occupant, u16)> {
    let bucket = A::index().get_ptr(slot.bucket())?;
    let way = launder_index(slot.way());
    // SAFETY: a map value, valid for the program's run.
    (way < WAYS).then(|| unsafe {
        let occupant = Occupant {
            tag: (&raw const (*bucket).tags).cast::<u32>().add(way).read_volatile(),
            entry: (&raw const (*bucket).entries).cast::<u32>().add(way).read_volatile(),
        };
        (occupant, (&raw const (*bucket).seen).cast::<u16>().add(way).read_volatile())
    })
}

/// Whether a slot still has this occupant.
#[inline(always)]
pub(crate) fn is_present<A: Flows>(slot: Slot, occupant: Occupant) -> bool {
    peek::<A>(slot).is_some_and(|(there, _)| there == occupant)
}

/// Locks the bucket of a slot until [`unlock`], if the slot still has this occupant. `None` if not, or if other CPUs hold the lock.
#[inline(always)]
pub(crate) fn lock<A: Flows>(slot: Slot, occupant: Occupant) -> Option<*mut Bucket> {
    let bucket = A::index().get_ptr_mut(slot.bucket())?;
    // SAFETY: a map value, valid for the program's run.
    let busy = unsafe { &raw mut (*bucket).busy };
    if !sync::lock_rare(busy) {
        return None;
    }
    if is_present::<A>(slot, occupant) {
        return Some(bucket);
    }
    sync::unlock(busy);
    None
}

/// Unlocks a bucket, and removes the occupant of the slot unless it `stays`.
#[inline(always)]
pub(crate) fn unlock<A: Flows>(slot: Slot, occupant: Occupant, bucket: *mut Bucket, stays: bool) {
    let way = launder_index(slot.way());
    if !stays && way < WAYS {
        // SAFETY: a map value, valid for the program's run, of which the lock is held.
        unsafe { (&raw mut (*bucket).tags).cast::<u32>().add(way).write_volatile(0) };
    }
    // SAFETY: as above.
    sync::unlock(unsafe { &raw mut (*bucket).busy });
    if let Some(table) = maps::table(A::FAMILY)
        && !stays
    {
        release::<A>(occupant.entry);
        // SAFETY: a map value, valid for the program's run.
        sync::add_32(unsafe { &raw mut (*table).flows }, 1_u32.wrapping_neg());
    }
}

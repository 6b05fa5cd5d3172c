//! The pending timestamps of a flow direction: recorded, and not echoed yet.

use super::plan::{MatchPlan, Pass};
use crate::{
    layout::layout,
    limits::{PENDING_LIFETIME, PENDING_PER_DIRECTION},
    method::Methods,
};

/// A range of the slots of a flow direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingRange {
    first: usize,
    end: usize,
}

impl PendingRange {
    /// All slots.
    pub const WHOLE: Self = Self { first: 0, end: PENDING_PER_DIRECTION };

    /// Returns the slots of a pass: half of them if there are two passes.
    #[inline(always)]
    pub fn of(methods: Methods, pass: Pass) -> Self {
        match pass {
            _ if !methods.has_both() => Self::WHOLE,
            Pass::First => Self { first: 0, end: PENDING_PER_DIRECTION / 2 },
            Pass::Second => Self { first: PENDING_PER_DIRECTION / 2, end: PENDING_PER_DIRECTION },
        }
    }

    #[inline(always)]
    fn has(self, slot: usize) -> bool {
        slot >= self.first && slot < self.end
    }
}

/// The identifiers of one flow direction that were recorded and not echoed yet, each with its time.
///
/// A free slot has the time 0. With a bit mask of free slots, the verifier would follow every combination of bits.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Pending {
    /// The identifiers, side by side so that a search stays within one cache line.
    pub identifiers: [u32; PENDING_PER_DIRECTION],
    /// When each was recorded, ns; 0 in a free slot.
    pub times: [u64; PENDING_PER_DIRECTION],
}

layout!(Pending { identifiers, times });

/// The pending timestamps of both directions of a flow, by their endpoints. A flow of echoes uses both differently: see
/// `super::icmp_echo`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PendingEntry {
    /// When each direction last recorded, ns; 0 before the first recording. In a flow of echoes: the newest request that
    /// gave a sample.
    pub recorded_at: [u64; 2],
    /// The pending timestamps.
    pub directions: [Pending; 2],
}

layout!(PendingEntry { recorded_at, directions });

impl PendingEntry {
    /// Nothing was recorded yet.
    pub const EMPTY: Self = Self { recorded_at: [0; 2], directions: [Pending::EMPTY; 2] };
}

/// Access to the pending timestamps of a flow direction, without the lock of the flow.
pub trait PendingIdentifiers {
    /// Whether a condition holds for any pending identifier.
    fn any(&self, range: PendingRange, condition: impl Fn(u32) -> bool) -> bool;
}

impl PendingIdentifiers for &Pending {
    #[inline(always)]
    fn any(&self, range: PendingRange, condition: impl Fn(u32) -> bool) -> bool {
        any_pending(|slot| (self.times[slot], self.identifiers[slot]), range, condition)
    }
}

/// Whether a condition holds for any pending identifier. `slots` returns the time and the identifier of a slot.
#[inline(always)]
pub fn any_pending(
    slots: impl Fn(usize) -> (u64, u32),
    range: PendingRange,
    condition: impl Fn(u32) -> bool,
) -> bool {
    for slot in 0..PENDING_PER_DIRECTION {
        if range.has(slot) {
            let (time, identifier) = slots(slot);
            if time != 0 && condition(identifier) {
                return true;
            }
        }
    }
    false
}

/// What became of an identifier that was to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inserted {
    /// It took a free slot.
    Free,
    /// It replaced one that had waited too long.
    Replaced,
    /// All slots were taken.
    Full,
}

/// Whether what was recorded at `since` has waited so long by `now` that a newer identifier may replace it.
#[inline(always)]
pub(super) fn has_waited(since: u64, now: u64) -> bool {
    now.saturating_sub(since) >= PENDING_LIFETIME
}

impl Pending {
    /// All slots are free.
    pub const EMPTY: Self =
        Self { identifiers: [0; PENDING_PER_DIRECTION], times: [0; PENDING_PER_DIRECTION] };

    /// The number of pending timestamps.
    pub fn count(&self) -> usize {
        self.times.iter().filter(|&&time| time != 0).count()
    }

    /// Whether anything is pending.
    #[inline(always)]
    pub(crate) fn has_pending(&self) -> bool {
        self.times.iter().fold(0, |all, time| all | time) != 0
    }

    /// Records an identifier at `now` (ns, not 0). If all slots are taken, it replaces the oldest one that has been
    /// pending for [`PENDING_LIFETIME`]. Otherwise it is not recorded.
    #[inline(always)]
    pub(super) fn insert(&mut self, range: PendingRange, identifier: u32, now: u64) -> Inserted {
        let slot = self.oldest(range);
        let oldest = self.times[slot];
        if oldest != 0 && !has_waited(oldest, now) {
            return Inserted::Full;
        }
        self.put(slot, identifier, now);
        if oldest == 0 { Inserted::Free } else { Inserted::Replaced }
    }

    /// Returns 1 if an identifier is pending, else 0. It has no branch: the verifier would follow both for each slot.
    #[inline(always)]
    pub(super) fn has(&self, identifier: u32) -> u32 {
        let mut is_any = 0;
        for slot in 0..PENDING_PER_DIRECTION {
            let differs = u64::from(self.identifiers[slot] ^ identifier);
            // Negative if the one is 0; negative if the other is not.
            let (is_same, is_taken) = (differs.wrapping_sub(1), self.times[slot].wrapping_neg());
            is_any |= (is_same & is_taken) >> 63;
        }
        is_any as u32
    }

    /// Replaces what a slot has.
    #[inline(always)]
    pub(super) fn put(&mut self, slot: usize, identifier: u32, time: u64) {
        self.identifiers[slot] = identifier;
        self.times[slot] = time;
    }

    /// Returns the latest time in any slot; 0 if all are free. It compares as [`Pending::oldest`] does.
    #[inline(always)]
    pub(super) fn newest_time(&self) -> u64 {
        let mut newest = self.times[0];
        for time in self.times {
            let later = time.wrapping_sub(newest);
            newest = newest.wrapping_add(later * (1 - (later >> 63)));
        }
        newest
    }

    /// Returns the oldest slot; a free one counts as older than any. It compares by the sign of differences, because no
    /// time is much later than [`LATEST`](crate::limits::LATEST): with comparisons the verifier would follow every order
    /// of the slots.
    #[inline(always)]
    pub(super) fn oldest(&self, range: PendingRange) -> usize {
        let (mut oldest, mut least) = (range.first, self.times[range.first]);
        for slot in 0..PENDING_PER_DIRECTION {
            if range.has(slot) {
                let later = self.times[slot].wrapping_sub(least);
                let is_older = later >> 63;
                oldest += (slot - oldest) * is_older as usize;
                least = least.wrapping_add(later * is_older);
            }
        }
        oldest % PENDING_PER_DIRECTION
    }

    /// Frees the echoed identifiers, and notes the one that gives the sample.
    #[inline(always)]
    pub(crate) fn free_echoed(&mut self, range: PendingRange, plan: &mut MatchPlan) {
        for slot in 0..PENDING_PER_DIRECTION {
            let distance = plan.echoed.wrapping_sub(self.identifiers[slot]);
            if range.has(slot) && self.times[slot] != 0 && distance < plan.freed_below {
                if distance < plan.sample_below {
                    // From now on only a nearer identifier may give the sample.
                    plan.sample_below = distance;
                    plan.recorded_at = self.times[slot];
                    plan.matched = self.identifiers[slot];
                }
                self.times[slot] = 0;
            }
        }
    }

    /// Frees the `span` identifiers from `from` on that were recorded by `latest`, ns. Returns true if any of them was
    /// pending.
    #[inline(always)]
    pub(super) fn free_range(&mut self, range: PendingRange, from: u32, span: u64, latest: u64) -> bool {
        let mut is_any = false;
        for slot in 0..PENDING_PER_DIRECTION {
            let distance = self.identifiers[slot].wrapping_sub(from);
            // A free slot has the time 0, which this takes for the latest there is.
            let is_recorded = self.times[slot].wrapping_sub(1) < latest;
            if range.has(slot) && is_recorded && u64::from(distance) < span {
                self.times[slot] = 0;
                is_any = true;
            }
        }
        is_any
    }

    /// Frees all slots.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.times = [0; PENDING_PER_DIRECTION];
    }
}

const _: () = {
    assert!(size_of::<Pending>() == 96);
    assert!(size_of::<PendingEntry>() == 208);
};

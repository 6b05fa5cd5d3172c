//! Identifiers that wait for their echo.

use crate::limits::{SLOT_LIFETIME, SLOTS};

/// The identifiers of one flow direction that wait for their echo, each with the time it was seen.
///
/// What is free is written in memory, not gathered in a bit mask: the verifier would follow every
/// combination of bits that a register can hold.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Slots {
    /// Not 0 while any slot waits.
    waiting: u64,
    /// Identifiers, side by side so that looking for one stays within a cache line.
    identifiers: [u32; SLOTS],
    /// When each was seen, ns; 0 in a free slot.
    times: [u64; SLOTS],
}

impl Slots {
    /// Nothing waits.
    pub const EMPTY: Self = Self { waiting: 0, identifiers: [0; SLOTS], times: [0; SLOTS] };

    /// How many identifiers wait.
    pub fn waiting(&self) -> usize {
        self.times.iter().filter(|&&time| time != 0).count()
    }

    /// Whether something waits that a condition holds for.
    #[inline(always)]
    pub(super) fn any(&self, condition: impl Fn(u32) -> bool) -> bool {
        if self.waiting == 0 {
            return false;
        }
        for slot in 0..SLOTS {
            if self.times[slot] != 0 && condition(self.identifiers[slot]) {
                return true;
            }
        }
        false
    }

    /// Lets an identifier wait from `now` on, which must not be 0. When all slots wait, it takes the place
    /// of the one that has waited longest, if that has done so for [`SLOT_LIFETIME`]; otherwise nothing
    /// happens and the answer is `false`.
    #[inline(always)]
    pub(super) fn put(&mut self, identifier: u32, now: u64) -> bool {
        let mut oldest = u64::MAX;
        for slot in 0..SLOTS {
            // A free slot is older than any.
            if self.times[slot] < oldest {
                oldest = self.times[slot];
            }
        }
        if oldest != 0 && now.saturating_sub(oldest) < SLOT_LIFETIME {
            return false;
        }
        for slot in 0..SLOTS {
            if self.times[slot] == oldest {
                self.identifiers[slot] = identifier;
                self.times[slot] = now;
                self.waiting = 1;
                return true;
            }
        }
        false
    }

    /// Sets the time of a waiting identifier anew.
    #[inline(always)]
    pub(super) fn renew(&mut self, identifier: u32, now: u64) {
        for slot in 0..SLOTS {
            if self.times[slot] != 0 && self.identifiers[slot] == identifier {
                self.times[slot] = now;
                return;
            }
        }
    }

    /// Frees the slot of an identifier, and returns since when it waited: 0 when it did not.
    #[inline(always)]
    pub(super) fn take(&mut self, identifier: u32) -> u64 {
        for slot in 0..SLOTS {
            if self.times[slot] != 0 && self.identifiers[slot] == identifier {
                let since = self.times[slot];
                self.times[slot] = 0;
                self.note_waiting();
                return since;
            }
        }
        0
    }

    /// Frees the slots of identifiers that a condition holds for.
    #[inline(always)]
    pub(super) fn free(&mut self, condition: impl Fn(u32) -> bool) {
        for slot in 0..SLOTS {
            if condition(self.identifiers[slot]) {
                self.times[slot] = 0;
            }
        }
        self.note_waiting();
    }

    /// Frees all slots.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.times = [0; SLOTS];
        self.waiting = 0;
    }

    #[inline(always)]
    fn note_waiting(&mut self) {
        self.waiting = self.times.iter().fold(0, |all, time| all | time);
    }
}

const _: () = {
    assert!(size_of::<Slots>() == 104);
    assert!(core::mem::offset_of!(Slots, identifiers) == 8);
    assert!(core::mem::offset_of!(Slots, times) == 40);
};

//! Identifiers that wait for their echo.

use crate::limits::{SLOT_LIFETIME, SLOTS};

/// The identifiers of one flow direction that wait for their echo, each with the time it was seen.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Slots {
    /// Bit `n` is set while slot `n` waits. The rest of a slot means nothing while its bit is clear.
    waiting: u32,
    /// Identifiers, side by side so that looking for one stays within a cache line.
    identifiers: [u32; SLOTS],
    reserved: u32,
    /// When each was seen, ns.
    times: [u64; SLOTS],
}

impl Slots {
    /// Nothing waits.
    pub const EMPTY: Self = Self { waiting: 0, identifiers: [0; SLOTS], reserved: 0, times: [0; SLOTS] };

    /// How many identifiers wait.
    #[inline(always)]
    pub fn waiting(&self) -> u32 {
        self.waiting.count_ones()
    }

    /// Whether something waits that a condition holds for.
    #[inline(always)]
    pub(super) fn any(&self, condition: impl Fn(u32) -> bool) -> bool {
        if self.waiting == 0 {
            return false;
        }
        let mut found = false;
        for (slot, &identifier) in self.identifiers.iter().enumerate() {
            found |= self.waiting & (1 << slot) != 0 && condition(identifier);
        }
        found
    }

    /// Lets an identifier wait. When all slots do, it takes the place of the one that has waited longest,
    /// if that has done so for [`SLOT_LIFETIME`]; otherwise nothing happens and the answer is `false`.
    #[inline(always)]
    pub(super) fn put(&mut self, identifier: u32, now: u64) -> bool {
        let mut oldest = u64::MAX;
        for slot in 0..SLOTS {
            // A free slot is older than any.
            let since = if self.waiting & (1 << slot) == 0 { 0 } else { self.times[slot] };
            oldest = if since < oldest { since } else { oldest };
        }
        if oldest != 0 && now.saturating_sub(oldest) < SLOT_LIFETIME {
            return false;
        }
        for slot in 0..SLOTS {
            let since = if self.waiting & (1 << slot) == 0 { 0 } else { self.times[slot] };
            if since == oldest {
                self.identifiers[slot] = identifier;
                self.times[slot] = now;
                self.waiting |= 1 << slot;
                return true;
            }
        }
        false
    }

    /// Sets the time of a waiting identifier anew; the answer is `false` when it does not wait.
    #[inline(always)]
    pub(super) fn replace(&mut self, identifier: u32, now: u64) -> bool {
        for slot in 0..SLOTS {
            if self.waiting & (1 << slot) != 0 && self.identifiers[slot] == identifier {
                self.times[slot] = now;
                return true;
            }
        }
        false
    }

    /// Frees the slot of an identifier, and returns since when it waited.
    #[inline(always)]
    pub(super) fn take(&mut self, identifier: u32) -> Option<u64> {
        for slot in 0..SLOTS {
            if self.waiting & (1 << slot) != 0 && self.identifiers[slot] == identifier {
                self.waiting &= !(1 << slot);
                return Some(self.times[slot]);
            }
        }
        None
    }

    /// Frees the slots of identifiers that a condition holds for.
    #[inline(always)]
    pub(super) fn free(&mut self, condition: impl Fn(u32) -> bool) {
        for slot in 0..SLOTS {
            if condition(self.identifiers[slot]) {
                self.waiting &= !(1 << slot);
            }
        }
    }

    /// Frees all slots.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.waiting = 0;
    }
}

const _: () = {
    assert!(size_of::<Slots>() == 104);
    assert!(core::mem::offset_of!(Slots, identifiers) == 4);
    assert!(core::mem::offset_of!(Slots, times) == 40);
};

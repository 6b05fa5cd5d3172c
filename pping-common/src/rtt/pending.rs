//! Identifiers that wait for their echo.

use super::plan::{Pass, Work};
use crate::{
    limits::{PENDING_LIFETIME, PENDING_PER_DIRECTION},
    method::Methods,
};

/// Some of the slots of a direction, side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    first: usize,
    end: usize,
}

impl Part {
    /// All of them.
    pub const WHOLE: Self = Self { first: 0, end: PENDING_PER_DIRECTION };

    /// Those of a pass: half of them where there are two.
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

/// The identifiers of one flow direction that wait for their echo, each with the time it was seen.
///
/// What is free is written in memory, not gathered in a bit mask: the verifier would follow every
/// combination of bits that a register can hold.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Pending {
    /// Not 0 while any slot waits.
    waiting: u64,
    /// Identifiers, side by side so that looking for one stays within a cache line.
    identifiers: [u32; PENDING_PER_DIRECTION],
    /// When each was seen, ns; 0 in a free slot.
    times: [u64; PENDING_PER_DIRECTION],
}

impl Pending {
    /// Nothing waits.
    pub const EMPTY: Self =
        Self { waiting: 0, identifiers: [0; PENDING_PER_DIRECTION], times: [0; PENDING_PER_DIRECTION] };

    /// How many identifiers wait.
    pub fn waiting(&self) -> usize {
        self.times.iter().filter(|&&time| time != 0).count()
    }

    /// Whether something waits that a condition holds for.
    #[inline(always)]
    pub(super) fn any(&self, part: Part, condition: impl Fn(u32) -> bool) -> bool {
        if self.waiting == 0 {
            return false;
        }
        for slot in 0..PENDING_PER_DIRECTION {
            if part.has(slot) && self.times[slot] != 0 && condition(self.identifiers[slot]) {
                return true;
            }
        }
        false
    }

    /// Lets an identifier wait from `now` on, which must not be 0. When all slots wait, it takes the place
    /// of the one that has waited longest, if that has done so for [`PENDING_LIFETIME`]; otherwise nothing
    /// happens and the answer is `false`.
    #[inline(always)]
    pub(super) fn put(&mut self, part: Part, identifier: u32, now: u64) -> bool {
        let slot = self.oldest(part);
        let oldest = self.times[slot];
        if oldest != 0 && now.saturating_sub(oldest) < PENDING_LIFETIME {
            return false;
        }
        self.identifiers[slot] = identifier;
        self.times[slot] = now;
        self.waiting = 1;
        true
    }

    /// The slot that has waited longest; a free one is older than any. By the sign of what lies between two times, of which none is
    /// much later than [`LATEST`](crate::limits::LATEST): comparing them, the verifier would follow every order that there is.
    #[inline(always)]
    fn oldest(&self, part: Part) -> usize {
        let (mut oldest, mut least) = (part.first, self.times[part.first]);
        for slot in 0..PENDING_PER_DIRECTION {
            if part.has(slot) {
                let later = self.times[slot].wrapping_sub(least);
                let is_older = later >> 63;
                oldest += (slot - oldest) * is_older as usize;
                least = least.wrapping_add(later * is_older);
            }
        }
        oldest % PENDING_PER_DIRECTION
    }

    /// Frees what is echoed, and finds what the sample is of.
    #[inline(always)]
    pub(super) fn take(&mut self, part: Part, work: &mut Work) {
        if self.waiting == 0 {
            return;
        }
        for slot in 0..PENDING_PER_DIRECTION {
            let distance = work.echoed.wrapping_sub(self.identifiers[slot]);
            if part.has(slot) && self.times[slot] != 0 && distance < work.reach {
                if distance < work.gives {
                    // None that is farther gives one any more.
                    work.gives = distance;
                    work.since = self.times[slot];
                    work.found = self.identifiers[slot];
                }
                self.times[slot] = 0;
            }
        }
        self.note_waiting();
    }

    /// Frees what is at most so far above an identifier, and says whether there was any.
    #[inline(always)]
    pub(super) fn free(&mut self, part: Part, from: u32, span: u64) -> bool {
        if self.waiting == 0 {
            return false;
        }
        let mut is_any = false;
        for slot in 0..PENDING_PER_DIRECTION {
            let distance = self.identifiers[slot].wrapping_sub(from);
            if part.has(slot) && self.times[slot] != 0 && u64::from(distance) < span {
                self.times[slot] = 0;
                is_any = true;
            }
        }
        self.note_waiting();
        is_any
    }

    /// Frees all slots.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.times = [0; PENDING_PER_DIRECTION];
        self.waiting = 0;
    }

    #[inline(always)]
    fn note_waiting(&mut self) {
        self.waiting = self.times.iter().fold(0, |all, time| all | time);
    }
}

const _: () = {
    assert!(size_of::<Pending>() == 104);
    assert!(core::mem::offset_of!(Pending, identifiers) == 8);
    assert!(core::mem::offset_of!(Pending, times) == 40);
};

//! With atomic instructions that return the old value (Linux 5.12).

use core::intrinsics::{AtomicOrdering, atomic_cxchg, atomic_or, atomic_xadd, atomic_xchg};

use pping_common::pool::BinTag;

use crate::shared::prelude::*;

/// Whether [`replace`] is one instruction.
pub(crate) const HAS_REPLACE: bool = true;

/// Attempts to take the lock of a flow before giving up. They take a microsecond or two, many times as long as the lock
/// is ever held, so a failure means that its holder's (virtual) CPU is not running.
pub(super) const ATTEMPTS: u32 = 64;

/// Attempts to take a lock that is held for a moment only, and seldom. Each costs the verifier.
pub(super) const FEW_ATTEMPTS: u32 = 6;

/// Attempts to raise a number. Two new extremes at the same time on two CPUs are rare; if all attempts fail, one of
/// them is left out. More attempts cost the verifier.
const RAISES: u32 = 4;

/// Adds 1 to a counter, and returns the old value. Not relaxed: for a relaxed addition LLVM 22 emits the instruction
/// that returns nothing, and takes the addend for the old value.
#[inline(always)]
#[expect(clippy::unnecessary_wraps, reason = "not every kernel can")]
pub(crate) fn fetch_add_1(counter: Shared<u32>) -> Option<u32> {
    // SAFETY: valid and aligned, as `Shared::new` requires.
    Some(unsafe { atomic_xadd::<u32, u32, { AtomicOrdering::AcqRel }>(counter.as_ptr(), 1) })
}

/// Writes a word after all earlier writes.
#[inline(always)]
pub(crate) fn publish(word: Shared<u32>, value: u32) {
    // SAFETY: valid and aligned, as `Shared::new` requires.
    unsafe { atomic_xchg::<u32, { AtomicOrdering::AcqRel }>(word.as_ptr(), value) };
}

/// Takes the next number from a counter, with its block of bins, whose tag becomes [`BinTag::CLAIMED`]. `tag` returns
/// the tag of that block; `None` if there is no such block.
#[inline(always)]
pub(crate) fn claim_next(counter: Shared<u32>, tag: impl Fn(u32) -> Option<Shared<u32>>) -> Option<u32> {
    let number = fetch_add_1(counter)?;
    tag(number)?.write(BinTag::CLAIMED);
    Some(number)
}

/// Takes the next `numbers` from a counter. Returns the first.
#[inline(always)]
#[expect(clippy::unnecessary_wraps, reason = "not every kernel can")]
pub(crate) fn claim(counter: Shared<u32>, _busy: Shared<u32>, numbers: u32) -> Option<u32> {
    // SAFETY: valid and aligned, as `Shared::new` requires.
    Some(unsafe { atomic_xadd::<u32, u32, { AtomicOrdering::AcqRel }>(counter.as_ptr(), numbers) })
}

/// Replaces a number, and returns the old one.
#[inline(always)]
pub(crate) fn exchange(number: Shared<u64>, new: u64) -> u64 {
    // SAFETY: valid and aligned, as `Shared::new` requires.
    unsafe { atomic_xchg::<u64, { AtomicOrdering::AcqRel }>(number.as_ptr(), new) }
}

/// Raises two numbers to at least these values. Gives up on a number if other CPUs raise it [`RAISES`] times in a row,
/// each time by less.
#[inline(always)]
pub(crate) fn raise(_busy: Shared<u32>, [(a, to_a), (b, to_b)]: [(Shared<u64>, u64); 2]) {
    raise_one(a, to_a);
    raise_one(b, to_b);
}

#[inline(always)]
fn raise_one(number: Shared<u64>, value: u64) {
    for _ in 0..RAISES {
        let seen = number.read();
        if seen >= value {
            return;
        }
        // SAFETY: valid and aligned, as `Shared::new` requires.
        let (_, is_done) = unsafe {
            atomic_cxchg::<u64, { AtomicOrdering::Relaxed }, { AtomicOrdering::Relaxed }>(
                number.as_ptr(),
                seen,
                value,
            )
        };
        if is_done {
            return;
        }
    }
}

/// Replaces a number; `false` if another CPU changed it first.
#[inline(always)]
pub(crate) fn replace(number: Shared<u32>, old: u32, new: u32) -> bool {
    // SAFETY: valid and aligned, as `Shared::new` requires.
    unsafe {
        atomic_cxchg::<u32, { AtomicOrdering::AcqRel }, { AtomicOrdering::Acquire }>(
            number.as_ptr(),
            old,
            new,
        )
        .1
    }
}

/// Sets bits.
#[inline(always)]
pub(crate) fn set_bits(word: Shared<u64>, bits: u64) {
    // SAFETY: valid and aligned, as `Shared::new` requires.
    unsafe { atomic_or::<u64, u64, { AtomicOrdering::Relaxed }>(word.as_ptr(), bits) };
}

/// Takes a lock; `false` when another CPU has it and keeps it.
#[inline(always)]
pub(super) fn take<const ATTEMPTS: u32>(busy: Shared<u32>) -> bool {
    let busy = busy.as_ptr();
    for _ in 0..ATTEMPTS {
        // SAFETY: part of a map value, valid for the program's run, and aligned.
        if unsafe { atomic_xchg::<u32, { AtomicOrdering::AcqRel }>(busy, 1) } == 0 {
            return true;
        }
    }
    false
}

/// Releases a lock.
#[inline(always)]
pub(crate) fn unlock(busy: Shared<u32>) {
    publish(busy, 0);
}

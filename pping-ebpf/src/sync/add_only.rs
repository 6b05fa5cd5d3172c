//! Without atomic instructions that return the old value: Linux 5.10 and 5.11, and on arm64 up to 5.17.
//!
//! A lock counts the CPUs that want it. A CPU that adds 1 and then reads 1 has the lock; others read more until it is
//! released. If two CPUs add at the same time, both read 2, take back what they added, and try again. So there is one
//! holder on every processor, because all CPUs see the changes of one word in the same order: a CPU that reads 1 after
//! its own addition knows that no other addition counts, and who adds later reads more.
//!
//! What the lock protects are other words. On x86 an addition is a full barrier. On arm64 it orders nothing, so
//! [`fence`] stands behind each lock that was taken, and before each release and [`publish`]. `pping-common` proves it
//! (`memory_order.rs`).

use core::arch::asm;

use pping_common::pool::BinTag;

use super::fence::fence;
use crate::shared::prelude::*;

/// Whether [`replace`] is one instruction.
pub(crate) const HAS_REPLACE: bool = false;

/// Attempts to take the lock of a flow before giving up. Each takes twice as long as with a single instruction, and
/// costs the verifier more.
pub(super) const ATTEMPTS: u32 = 12;

/// Attempts to take a lock that is held for a moment only, and seldom.
pub(super) const FEW_ATTEMPTS: u32 = 4;

/// Attempts to take a block of bins. Each tries the next number, so two CPUs do not meet again and again.
const CLAIMS: u32 = 4;

/// Returns `None`: no addition returns the old value, so the agent hands out all indexes itself.
#[inline(always)]
pub(crate) fn fetch_add_1(_: Shared<u32>) -> Option<u32> {
    None
}

/// Replaces a number, but not atomically: what another CPU writes meanwhile is lost.
#[inline(always)]
pub(crate) fn replace(number: Shared<u32>, old: u32, new: u32) -> bool {
    let is_old = number.read() == old;
    if is_old {
        number.write(new);
    }
    is_old
}

/// Takes the next number from a counter, with its block of bins, whose tag becomes [`BinTag::CLAIMED`]. `tag` returns
/// the tag of that block. `None` if there is no such block, or if other CPUs interfere. Several CPUs may read the same
/// number. The CPU that then finds the tag claimed once has the block; while it is claimed, others find more. If all of
/// them find more, the block stays unused in this epoch.
#[inline(always)]
pub(crate) fn claim_next(counter: Shared<u32>, tag: impl Fn(u32) -> Option<Shared<u32>>) -> Option<u32> {
    for _ in 0..CLAIMS {
        counter.add(1);
        barrier(counter);
        let number = counter.read().wrapping_sub(1);
        let tag = tag(number)?;
        tag.add(BinTag::CLAIMED);
        barrier(tag);
        if tag.read() == BinTag::CLAIMED {
            return Some(number);
        }
        tag.add(BinTag::CLAIMED.wrapping_neg());
    }
    None
}

/// Takes the next `numbers` from a counter, whose lock is `busy`. Returns the first. `None` if other CPUs hold the lock.
#[inline(always)]
pub(crate) fn claim(counter: Shared<u32>, busy: Shared<u32>, numbers: u32) -> Option<u32> {
    if !take::<ATTEMPTS>(busy) {
        return None;
    }
    let number = counter.read();
    counter.write(number.wrapping_add(numbers));
    release(busy);
    Some(number)
}

/// Replaces a number, and returns the old one, but not atomically: of what two CPUs write at the same time, one is lost.
#[inline(always)]
pub(crate) fn exchange(number: Shared<u64>, new: u64) -> u64 {
    let old = number.read();
    number.write(new);
    old
}

/// Raises two numbers to at least these values. Fails if another CPU has the lock `busy` and keeps it.
#[inline(always)]
pub(crate) fn raise(busy: Shared<u32>, numbers: [(Shared<u64>, u64); 2]) {
    let is_less = |(number, value): (Shared<u64>, u64)| number.read() < value;
    // Most samples are far from the extremes.
    if !(is_less(numbers[0]) || is_less(numbers[1])) || !take::<FEW_ATTEMPTS>(busy) {
        return;
    }
    for (number, value) in numbers {
        // No other CPU raises it.
        if is_less((number, value)) {
            number.write(value);
        }
    }
    release(busy);
}

/// Sets bits, but not atomically: a bit that another CPU sets meanwhile is lost. Use it only for bits that are set
/// again and again, such as the hosts of a block of bins: the next sample of the host sets a lost bit.
#[inline(always)]
pub(crate) fn set_bits(word: Shared<u64>, bits: u64) {
    word.write(word.read() | bits);
}

/// Releases a lock.
#[inline(always)]
pub(crate) fn unlock(busy: Shared<u32>) {
    release(busy);
}

/// Writes a word that is 0, after all earlier writes.
#[inline(always)]
pub(crate) fn publish(word: Shared<u32>, value: u32) {
    barrier(word);
    fence();
    word.add(value);
}

/// Takes a lock; `false` when another CPU has it and keeps it.
#[inline(always)]
pub(super) fn take<const ATTEMPTS: u32>(busy: Shared<u32>) -> bool {
    let mut is_taken = false;
    for _ in 0..ATTEMPTS {
        busy.add(1);
        barrier(busy);
        if busy.read() == 1 {
            barrier(busy);
            is_taken = true;
            break;
        }
        busy.add(1_u32.wrapping_neg());
    }
    // Behind the loop, which is unrolled.
    if is_taken {
        fence();
    }
    is_taken
}

#[inline(always)]
fn release(busy: Shared<u32>) {
    barrier(busy);
    fence();
    busy.add(1_u32.wrapping_neg());
}

/// A barrier for the compiler: it moves no read or write across.
#[inline(always)]
fn barrier(word: Shared<u32>) {
    // SAFETY: moves a register to itself. (An empty block would give the next instruction two source lines, which the
    // kernel rejects.)
    unsafe { asm!("{0} = {0}", inout(reg) word.as_ptr() => _, options(nostack)) };
}

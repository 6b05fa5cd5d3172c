//! Atomic instructions, and locks.
//!
//! `AtomicU32` lacks `swap` and `fetch_add` on this target, and the intrinsics compile to BPF's own
//! instructions (`xchg`, `lock +=`). Before Linux 5.12 there is only an addition that returns nothing, and the verifier rejects the
//! others even in code that never runs. So functions that need them are here twice, with the feature `add-only` and without.

use pping_common::flow::Adder;

mod add;
#[cfg(feature = "add-only")]
mod add_only;
#[cfg(not(feature = "add-only"))]
mod fetch;

pub(crate) use add::{add, add_32};
#[cfg(feature = "add-only")]
use add_only as with;
#[cfg(not(feature = "add-only"))]
use fetch as with;
pub(crate) use with::{HAS_REPLACE, claim_next, fetch_add_1, publish, raise, replace, unlock};

/// Takes the lock of a flow; `false` when another CPU has it and keeps it.
#[inline(always)]
pub(crate) fn lock(busy: *mut u32) -> bool {
    with::take::<{ with::ATTEMPTS }>(busy)
}

/// Takes a lock that is seldom held.
#[inline(always)]
pub(crate) fn lock_rare(busy: *mut u32) -> bool {
    with::take::<{ with::FEW_ATTEMPTS }>(busy)
}

/// Adds to the counters of a flow, as several CPUs may do at the same time.
pub(crate) struct Atomic;

impl Adder for Atomic {
    #[inline(always)]
    fn add(counter: &mut u64, value: u64) {
        add(counter, value);
    }

    #[inline(always)]
    fn add_32(counter: &mut u32, value: u32) {
        add_32(counter, value);
    }
}

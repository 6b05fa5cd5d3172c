//! Atomic instructions, and locks.
//!
//! `AtomicU32` lacks `swap` and `fetch_add` on this target. The intrinsics compile to BPF's own instructions (`xchg`, `lock
//! +=`). Before Linux 5.12 only an addition that returns nothing exists, and the verifier rejects the other instructions
//! even in code that never runs. So functions that need those are here twice, with the feature `add-only` and without.

#[cfg(feature = "add-only")]
mod add_only;
#[cfg(feature = "add-only")]
mod fence;
#[cfg(not(feature = "add-only"))]
mod fetch;

#[cfg(feature = "add-only")]
use add_only as with;
#[cfg(not(feature = "add-only"))]
use fetch as with;
pub(crate) use with::{
    HAS_REPLACE, claim, claim_next, exchange, fetch_add_1, publish, raise, replace, set_bits, unlock,
};

use crate::shared::prelude::*;

/// Takes the lock of a flow; `false` when another CPU has it and keeps it.
#[inline(always)]
pub(crate) fn lock(busy: Shared<u32>) -> bool {
    with::take::<{ with::ATTEMPTS }>(busy)
}

/// Takes a lock that is held for a moment only, and seldom.
#[inline(always)]
pub(crate) fn lock_briefly(busy: Shared<u32>) -> bool {
    with::take::<{ with::FEW_ATTEMPTS }>(busy)
}

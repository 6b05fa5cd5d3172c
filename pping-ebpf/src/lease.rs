//! The lease of programs that outlive their agent: clsact filters, which the kernel keeps when the process that made them
//! is killed. Each sweep renews it. Once it has run out, the programs let every packet pass at once.
//!
//! It is counted in ticks of the kernel (`jiffies`), which cost no more to read than memory.

use aya_ebpf::helpers::bpf_jiffies64;
use pping_common::abi::Control;

use crate::{config, maps};

/// A lease with less than this part left counts as run out at its renewal, since it might run out meanwhile.
const MARGIN: u64 = 16;

/// Whether the lease is good, or there is none.
#[inline(always)]
pub(crate) fn is_good() -> bool {
    config::lease() == 0
        || maps::control().is_some_and(|control| {
            // SAFETY: a map value, valid for the program's run, and a helper that only reads a clock.
            let (now, end) = unsafe { (bpf_jiffies64(), (&raw const (*control).lease_end).read_volatile()) };
            // Before the first lease the end is 0; minus 1 that is later than any time.
            now <= end.wrapping_sub(1)
        })
}

/// Renews the lease; `false` if it had run out. Packets may have passed unseen since, so pending timestamps must not be matched any
/// more: the agent deletes all flows before it begins another lease.
#[inline(always)]
pub(crate) fn renew(control: *mut Control) -> bool {
    let lease = config::lease();
    if lease == 0 {
        return true;
    }
    // SAFETY: as above. Only the agent's one sweep at a time writes here.
    unsafe {
        let end = &raw mut (*control).lease_end;
        let (now, old) = (bpf_jiffies64(), end.read_volatile());
        let is_good = old == 0 || now + lease / MARGIN <= old;
        if is_good {
            end.write_volatile(now + lease);
        } else {
            (&raw mut (*control).lapsed).write_volatile(1);
        }
        is_good
    }
}

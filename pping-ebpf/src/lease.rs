//! The lease of programs that outlive their agent: clsact filters, which the kernel keeps when the process that made them
//! is killed. Each sweep renews it. Once it has run out, the programs let every packet pass at once.
//!
//! It is counted in ticks of the kernel (`jiffies`), which cost no more to read than memory.

use aya_ebpf::helpers::bpf_jiffies64;
use pping_common::abi::Control;

use crate::{
    config, maps,
    shared::{Shared, field},
};

/// A lease with less than this part left counts as run out at its renewal, since it might run out meanwhile.
const MARGIN: u64 = 16;

/// Whether the lease is good, or there is none.
#[inline(always)]
pub(crate) fn is_good() -> bool {
    config::lease() == 0
        || maps::control().is_some_and(|control| {
            let end = control.at(field!(Control, lease_end)).read();
            // Before the first lease the end is 0; minus 1 that is later than any time.
            now() <= end.wrapping_sub(1)
        })
}

/// Renews the lease; `false` if it had run out. Packets may have passed unseen since, so pending timestamps must not be matched any
/// more: the agent deletes all flows before it begins another lease. Only the agent's one sweep at a time does this.
#[inline(always)]
pub(crate) fn renew(control: Shared<Control>) -> bool {
    let lease = config::lease();
    if lease == 0 {
        return true;
    }
    let end = control.at(field!(Control, lease_end));
    let (now, old) = (now(), end.read());
    let is_good = old == 0 || now + lease / MARGIN <= old;
    if is_good {
        end.write(now + lease);
    } else {
        control.at(field!(Control, lapsed)).write(1);
    }
    is_good
}

#[inline(always)]
fn now() -> u64 {
    // SAFETY: this helper only reads a clock.
    unsafe { bpf_jiffies64() }
}

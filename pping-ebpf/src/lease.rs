//! The lease of programs that outlive their agent: clsact filters, which the kernel keeps when the process that made them
//! is killed. Each sweep renews it, and so does a thread of the agent that does nothing else. Once it has run
//! out, the programs let every packet pass at once.
//!
//! It is counted in ticks of the kernel (`jiffies`), which cost no more to read than memory.

use aya_ebpf::helpers::bpf_jiffies64;
use pping_common::abi::{Control, Interface};

use crate::{config, shared::prelude::*};

/// A lease counts as run out if less than 1/`MARGIN` of it is left at its renewal, because it might run out meanwhile.
const MARGIN: u64 = 16;

/// True if the lease is good, or if the programs need none.
#[inline(always)]
pub(crate) fn is_good(interface: Shared<Interface>) -> bool {
    config::lease() == 0 || now() < interface.at(field!(Interface, lease_end)).read()
}

/// Renews the lease; `false` if it had run out. Packets may have passed unseen since then, so pending timestamps must
/// no longer be matched. The agent deletes all flows before it begins another lease, and the sweep then copies that
/// lease to the interfaces.
#[inline(always)]
pub(crate) fn renew(control: Shared<Control>) -> bool {
    let lease = config::lease();
    if lease == 0 {
        return true;
    }
    let (now, end) = (now(), control.at(field!(Control, lease_end)));
    let is_good = end.read() == 0 || now + lease / MARGIN <= end.read();
    if is_good {
        end.write(now + lease);
    } else {
        // The rest of the lease ends now. If it ran out while the agent deletes flows, flows that begin meanwhile would stay.
        end.write(Control::LAPSED);
        control.at(field!(Control, lapsed)).write(1);
    }
    is_good
}

#[inline(always)]
fn now() -> u64 {
    // SAFETY: this helper only reads a clock.
    unsafe { bpf_jiffies64() }
}

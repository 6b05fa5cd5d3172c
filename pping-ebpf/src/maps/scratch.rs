//! The packet that a CPU is busy with.

use aya_ebpf::{macros::map, maps::PerCpuArray};
use pping_common::{
    abi::FlowState,
    flow::{Changes, Endpoint, Noted},
    parse::{Frame, Untracked},
    rtt::{Effect, MatchPlan, Measured},
    table::Slot,
};

use super::{flows::Occupant, series::Target};

#[map]
static SCRATCH: PerCpuArray<Scratch> = PerCpuArray::with_max_entries(1, 0);

/// The packet that a CPU is busy with. In a map for the verifier's sake: see [`mod@crate::launder`].
pub(crate) struct Scratch {
    /// The packet, taken apart.
    pub(crate) frame: Frame,
    /// Whether it could be.
    pub(crate) parsed: Result<(), Untracked>,
    /// What it changed in the life of its flow.
    pub(crate) changes: Changes,
    /// What it is beside that: a retransmission, reordered, marked.
    pub(crate) noted: Noted,
    /// What it may change.
    pub(crate) effect: Effect,
    /// What it matches and records, and how.
    pub(crate) plan: MatchPlan,
    /// What it matched and recorded.
    pub(crate) measured: Measured,
    /// And by its sequence numbers, where it was measured by timestamps before.
    pub(crate) second: Measured,
    /// The state of its flow then.
    pub(crate) state: FlowState,
    /// The series of its sample.
    pub(crate) target: Target,
    /// Who sent it.
    pub(crate) from: Endpoint,
    /// Where its flow is.
    pub(crate) slot: Slot,
    /// What is there.
    pub(crate) occupant: Occupant,
    /// Where the last new flow was noted, by family.
    pub(crate) recent: [u32; 2],
}

/// Room for the packet that this CPU is busy with.
#[inline(always)]
pub(crate) fn scratch() -> Option<&'static mut Scratch> {
    // SAFETY: this CPU's own, and softirqs are off while a packet is handled, so there is one user.
    SCRATCH.get_ptr_mut(0).map(|scratch| unsafe { &mut *scratch })
}

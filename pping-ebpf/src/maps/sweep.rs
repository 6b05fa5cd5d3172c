//! The maps of the sweep.

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    macros::map,
    maps::{Array, PerCpuArray},
};
use pping_common::{
    abi::{Candidate, SeriesSelector, SweepRequest, Volume},
    flow::{Hot, Locked},
    limits::MAX_DUE,
    series::Traffic,
};

use super::series::SeriesTarget;
use crate::shared::prelude::*;

/// The scratch space of the sweep. Packets have their own, because a packet may interrupt the sweep.
#[map]
static SWEEP_SCRATCH: PerCpuArray<SweepScratch> = PerCpuArray::with_max_entries(1, 0);

/// The flow that the sweep visits.
pub(crate) struct SweepScratch {
    /// A copy of the flow's hot part.
    pub(crate) hot: Hot,
    /// A copy of what changes only under the lock.
    pub(crate) locked: Locked,
    /// All that the low and the high endpoint sent.
    pub(crate) volumes: [Volume; 2],
    /// What the low endpoint sent since the last flush.
    pub(crate) low: Traffic,
    /// What the high endpoint sent since then.
    pub(crate) high: Traffic,
    /// The series selector of one flow direction.
    pub(crate) selector: SeriesSelector,
    /// The series that it selects.
    pub(crate) target: SeriesTarget,
}

/// The key of the flow or query that the sweep visits, as words.
#[map]
static SWEEP_KEY: PerCpuArray<[u64; 5]> = PerCpuArray::with_max_entries(1, 0);

/// The present run.
#[map]
static SWEEP_RUN: Array<SweepRun> = Array::with_max_entries(1, 0);

/// The agent's request for the next run of the sweep.
#[map]
static SWEEP_REQUEST: Array<SweepRequest> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The slots of the flows that the next run visits. In a run that begins a sweep, the entries of watched interfaces, for which the
/// agent makes room.
#[map]
pub(crate) static DUE: Array<u64> = Array::with_max_entries(MAX_DUE, BPF_F_MMAPABLE);

/// The candidates that a run found.
#[map]
static CANDIDATES: Array<Candidate> = Array::with_max_entries(2 * MAX_DUE, BPF_F_MMAPABLE);

/// A run of the sweep: its values for the callbacks. They are not on the stack, where the verifier would carry what it knows of a
/// value from one callback to the next, and verify that one once more.
#[repr(C)]
pub(crate) struct SweepRun {
    /// The number of the sweep.
    pub(crate) number: u32,
    pub(crate) cut_off: u32,
    pub(crate) now: u64,
    /// How many flows to visit, or the slot of one.
    pub(crate) due: u32,
    /// Not 0 once a flow was found that the second walk has to visit.
    pub(crate) needs_second_walk: u32,
}

/// The scratch space of the sweep.
///
/// # Safety
/// No other reference to it may be used for as long as this one.
#[inline(always)]
pub(crate) unsafe fn sweep_scratch() -> Option<&'static mut SweepScratch> {
    // SAFETY: this CPU's own. Only the sweep uses it, and the agent runs one at a time, so there is one user: the caller.
    SWEEP_SCRATCH.get_ptr_mut(0).map(|scratch| unsafe { &mut *scratch })
}

/// The memory for the key of the flow or query that the sweep visits.
///
/// # Safety
/// No other reference to it may be used for as long as this one.
#[inline(always)]
pub(crate) unsafe fn sweep_key<K>() -> Option<&'static mut K> {
    const { assert!(size_of::<K>() <= size_of::<[u64; 5]>() && align_of::<K>() <= 8) };
    // SAFETY: this CPU's own, and any bytes are a key. Only the sweep uses it, and the agent runs one at a time, so there is
    // one user: the caller.
    SWEEP_KEY.get_ptr_mut(0).map(|key| unsafe { &mut *key.cast::<K>() })
}

/// The present run.
#[inline(always)]
pub(crate) fn sweep_run() -> Option<Shared<SweepRun>> {
    SWEEP_RUN.shared(0)
}

/// The entry for a candidate.
#[inline(always)]
pub(crate) fn candidate(index: u32) -> Option<Shared<Candidate>> {
    CANDIDATES.shared(index)
}

/// The agent's request for the next run of the sweep.
#[inline(always)]
pub(crate) fn request() -> Option<Shared<SweepRequest>> {
    SWEEP_REQUEST.shared(0)
}

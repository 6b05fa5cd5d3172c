//! The maps of the sweep.

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    macros::map,
    maps::{Array, PerCpuArray},
};
use pping_common::{
    abi::{Contender, SeriesSelector, SweepRequest, Traffic, Volume},
    flow::{FlowKey, Hot, Locked},
    limits::MAX_DUE,
};

use super::series::Target;

/// The scratch space of the sweep: a packet may interrupt it, and has its own.
#[map]
static SWEEP_SCRATCH: PerCpuArray<SweepScratch> = PerCpuArray::with_max_entries(1, 0);

/// The flow that the sweep visits.
pub(crate) struct SweepScratch {
    /// What most packets look at of it.
    pub(crate) hot: Hot,
    /// What changes with the lock only.
    pub(crate) locked: Locked,
    /// All that the low endpoint and the high one sent.
    pub(crate) volumes: [Volume; 2],
    /// Sent by the low endpoint since the last sweep.
    pub(crate) low: Traffic,
    /// Sent by the high endpoint.
    pub(crate) high: Traffic,
    /// The series selector of one of them.
    pub(crate) selector: SeriesSelector,
    /// That series.
    pub(crate) target: Target,
}

/// The key of the flow that the sweep visits, as words.
#[map]
static SWEEP_KEY: PerCpuArray<[u64; 5]> = PerCpuArray::with_max_entries(1, 0);

/// The present sweep.
#[map]
static SWEEP: Array<Sweep> = Array::with_max_entries(1, 0);

/// What the next run of the sweep is for.
#[map]
static SWEEP_REQUEST: Array<SweepRequest> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The slots of the flows that it visits.
#[map]
pub(crate) static DUE: Array<u64> = Array::with_max_entries(MAX_DUE, BPF_F_MMAPABLE);

/// The flow directions of a run that may be among the worst.
#[map]
static CONTENDERS: Array<Contender> = Array::with_max_entries(2 * MAX_DUE, BPF_F_MMAPABLE);

/// The sweep's values for its callbacks. Not on the stack, where the verifier would carry what it knows of a value from one callback
/// to the next, and verify that once more.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Sweep {
    pub(crate) number: u32,
    pub(crate) cut_off: u32,
    pub(crate) now: u64,
    /// How many flows to visit, or the slot of one.
    pub(crate) due: u32,
    /// Not 0 once a flow was found that is to be removed.
    pub(crate) ends: u32,
}

/// The scratch space of the sweep.
#[inline(always)]
pub(crate) fn sweep_scratch() -> Option<&'static mut SweepScratch> {
    // SAFETY: this CPU's own, and only the agent's one sweep at a time uses it.
    SWEEP_SCRATCH.get_ptr_mut(0).map(|scratch| unsafe { &mut *scratch })
}

/// Where the sweep has the key of the flow that it visits.
#[inline(always)]
pub(crate) fn sweep_key<A>() -> Option<&'static mut FlowKey<A>> {
    const { assert!(size_of::<FlowKey<A>>() <= size_of::<[u64; 5]>() && align_of::<FlowKey<A>>() <= 8) };
    // SAFETY: this CPU's own, only the agent's one sweep at a time uses it, and it is written before it is read.
    SWEEP_KEY.get_ptr_mut(0).map(|key| unsafe { &mut *key.cast::<FlowKey<A>>() })
}

/// The present sweep.
#[inline(always)]
pub(crate) fn sweep() -> Option<*mut Sweep> {
    SWEEP.get_ptr_mut(0)
}

/// Where a contender has its place.
#[inline(always)]
pub(crate) fn contender(index: u32) -> Option<*mut Contender> {
    CONTENDERS.get_ptr_mut(index)
}

/// What the next run of the sweep is for.
#[inline(always)]
pub(crate) fn request() -> Option<*mut SweepRequest> {
    SWEEP_REQUEST.get_ptr_mut(0)
}

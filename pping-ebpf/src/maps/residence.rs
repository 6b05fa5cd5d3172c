//! Residence times, and the packets that are followed for them. With `--residence` the agent makes the maps large enough.

use aya_ebpf::{
    macros::map,
    maps::{Array, PerCpuArray},
};
use pping_common::abi::{Followed, Passing, Residence};

use super::series::SeriesTarget;
use crate::shared::prelude::*;

/// The times, by [`pping_common::abi::Part::index`].
#[map]
static RESIDENCES: Array<Residence> = Array::with_max_entries(1, 0);

/// Packets that are followed through queues, in pairs, by a hash of the address of their `sk_buff`.
#[map]
static FOLLOWED: Array<[Followed; 2]> = Array::with_max_entries(1, 0);

/// Packets that came in, by a hash of what they carry.
#[map]
static PASSING: Array<Passing> = Array::with_max_entries(1, 0);

/// Packets until the next one that this CPU follows.
#[map]
static UNTIL_FOLLOWED: PerCpuArray<u32> = PerCpuArray::with_max_entries(1, 0);

/// The series of a packet that enters or leaves a queue. The one in a packet's own scratch space may be in use when a queue is run.
#[map]
static QUEUE_TARGET: PerCpuArray<SeriesTarget> = PerCpuArray::with_max_entries(1, 0);

/// The times at an index.
#[inline(always)]
pub(crate) fn residence(index: u32) -> Option<Shared<Residence>> {
    RESIDENCES.shared(index)
}

/// A pair of entries for packets that are followed.
#[inline(always)]
pub(crate) fn followed(index: u32) -> Option<Shared<[Followed; 2]>> {
    FOLLOWED.shared(index)
}

/// The entry of a packet that may be on its way through this host.
#[inline(always)]
pub(crate) fn passing(index: u32) -> Option<Shared<Passing>> {
    PASSING.shared(index)
}

/// Packets until the next one that this CPU follows.
#[inline(always)]
pub(crate) fn until_followed() -> Option<Shared<u32>> {
    UNTIL_FOLLOWED.shared(0)
}

/// The memory for the series of a queued packet.
///
/// # Safety
/// No other reference to it may be used for as long as this one.
#[inline(always)]
pub(crate) unsafe fn queue_target() -> Option<&'static mut SeriesTarget> {
    // SAFETY: this CPU's own, and queues are filled and emptied one packet at a time there: neither interrupts the other, so
    // there is one user: the caller.
    QUEUE_TARGET.get_ptr_mut(0).map(|target| unsafe { &mut *target })
}

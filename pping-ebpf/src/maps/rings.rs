//! The rings of [`pping_common::rings`].

use aya_ebpf::{macros::map, maps::Array};
use pping_common::{parse::Family, rings::RINGS};

use crate::shared::prelude::*;

/// What a ring has places for.
#[derive(Clone, Copy)]
pub(crate) enum Newcomers {
    Flows,
    Queries,
}

/// Where a ring goes on. It has its own cache line: many CPUs write to it.
#[repr(C, align(64))]
pub(crate) struct Ring {
    /// The number of the next newcomer.
    pub(crate) next: u32,
    /// Not 0 while a CPU takes a place, on kernels where that takes a lock (before Linux 5.12).
    pub(crate) busy: u32,
}

/// The rings of flows and of queries, of both families.
#[map]
static RINGS_NEXT: Array<Ring> = Array::with_max_entries(2 * 2 * RINGS, 0);

/// A ring of a family.
#[inline(always)]
pub(crate) fn ring(newcomers: Newcomers, family: Family, number: u32) -> Option<Shared<Ring>> {
    RINGS_NEXT.shared((newcomers as u32 * 2 + family as u32) * RINGS + number)
}

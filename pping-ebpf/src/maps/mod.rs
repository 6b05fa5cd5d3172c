//! The maps. Nothing here knows what the programs do with them.

mod copies;
mod flows;
mod interfaces;
mod residence;
mod rings;
mod scratch;
mod series;
mod sweep;

pub(crate) use copies::copies;
pub(crate) use flows::{Flows, Occupant, QUERIES_V4, QUERIES_V6, RecentFlow, table};
pub(crate) use interfaces::{counters, interface, interface_at, is_excluded, is_local};
pub(crate) use residence::{followed, passing, queue_target, residence, until_followed};
pub(crate) use rings::{Newcomers, Ring, ring};
pub(crate) use scratch::{Copies, Scratch, began, scratch};
pub(crate) use series::{
    Admitted, SeriesTarget, bin_block, bin_pool, control, give_free_series, groups, insert_series,
    is_listed_inside, label, network, networks, series, series_index, take_free_series,
};
pub(crate) use sweep::{
    DUE, SweepRun, SweepScratch, candidate, request, sweep_key, sweep_run, sweep_scratch,
};

use aya_ebpf::{macros::map, maps::RingBuf};
use pping_common::limits::RING_BYTES;

/// The events for the agent.
#[map]
pub(crate) static EVENTS: RingBuf = RingBuf::with_byte_size(RING_BYTES, 0);

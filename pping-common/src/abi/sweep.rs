//! Requests to the sweep program.

use super::Threshold;
use crate::{
    dns::QueryKey,
    parse::{Ipv4, Ipv6},
};

/// A request to the next run of the sweep program. The agent writes it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SweepRequest {
    /// [`SweepRequest::BEGIN`], [`SweepRequest::RENEW`], or the table to visit.
    pub kind: u32,
    /// How many interfaces or flows to visit. If the kernel cannot walk a map, the slot of the one flow to visit.
    pub due: u32,
    /// The number of the sweep; the program writes it.
    pub sweep: u32,
    /// How many candidates for the worst flows were found; the program counts them.
    pub found: u32,
    /// The threshold for candidates.
    pub threshold: Threshold,
    /// The IPv4 query to visit, if the kernel cannot walk a map.
    pub query_v4: QueryKey<Ipv4>,
    /// The IPv6 query to visit.
    pub query_v6: QueryKey<Ipv6>,
}

impl SweepRequest {
    /// Begins a sweep.
    pub const BEGIN: u32 = 0;

    /// Renews the lease, as the beginning of a sweep does, and begins none.
    pub const RENEW: u32 = 1;

    /// Visits IPv4 flows.
    pub const V4: u32 = 4;

    /// Visits IPv6 flows.
    pub const V6: u32 = 6;

    /// Visits IPv4 queries.
    pub const QUERY_V4: u32 = 14;

    /// Visits IPv6 queries.
    pub const QUERY_V6: u32 = 16;
}

const _: () = assert!(size_of::<SweepRequest>() == 112);

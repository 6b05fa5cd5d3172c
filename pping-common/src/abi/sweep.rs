//! What the agent has a sweep come to.

use crate::{
    dns::QueryKey,
    parse::{Ipv4, Ipv6},
};

/// What the next run of the sweep is for. The agent writes it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SweepRequest {
    /// [`SweepRequest::BEGIN`], or what the sweep comes to.
    pub kind: u32,
    /// The flows to look at: how many, or, where the program cannot go through them by itself, the number of one.
    pub due: u32,
    /// The number of the sweep, by the program.
    pub sweep: u32,
    /// Fills up to a multiple of 8.
    pub reserved: u32,
    /// The query over IPv4 to look at, where the program cannot go through them by itself.
    pub query_v4: QueryKey<Ipv4>,
    /// The query over IPv6.
    pub query_v6: QueryKey<Ipv6>,
}

impl SweepRequest {
    /// A sweep begins.
    pub const BEGIN: u32 = 0;

    /// It comes to flows of IPv4.
    pub const V4: u32 = 4;

    /// It comes to flows of IPv6.
    pub const V6: u32 = 6;

    /// It comes to queries over IPv4.
    pub const QUERY_V4: u32 = 14;

    /// It comes to queries over IPv6.
    pub const QUERY_V6: u32 = 16;
}

const _: () = assert!(size_of::<SweepRequest>() == 72);

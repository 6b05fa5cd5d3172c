//! Requests to the sweep program.

use super::Bar;
use crate::{
    dns::QueryKey,
    parse::{Ipv4, Ipv6},
};

/// The request for the next run of the sweep, written by the agent.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SweepRequest {
    /// [`SweepRequest::BEGIN`], or which table to look at.
    pub kind: u32,
    /// The flows to look at: how many, or, where the program cannot go through them by itself, the number of one.
    pub due: u32,
    /// The number of the sweep, by the program.
    pub sweep: u32,
    /// The contenders for the worst flows, by the program.
    pub found: u32,
    /// What a contender has to exceed.
    pub bar: Bar,
    /// The query over IPv4 to look at, where the program cannot go through them by itself.
    pub query_v4: QueryKey<Ipv4>,
    /// The query over IPv6.
    pub query_v6: QueryKey<Ipv6>,
}

impl SweepRequest {
    /// Begin a sweep.
    pub const BEGIN: u32 = 0;

    /// Look at flows over IPv4.
    pub const V4: u32 = 4;

    /// Look at flows over IPv6.
    pub const V6: u32 = 6;

    /// Look at queries over IPv4.
    pub const QUERY_V4: u32 = 14;

    /// Look at queries over IPv6.
    pub const QUERY_V6: u32 = 16;
}

const _: () = assert!(size_of::<SweepRequest>() == 112);

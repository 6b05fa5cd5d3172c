//! A sweep of one map after the other, or of one flow, and one DNS query, where the kernel cannot walk by itself.

use crate::{
    dns::QueryKey,
    flow::{FlowKey, Ipv4, Ipv6},
};

/// What the next run of the sweep is for. The agent writes it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Errand {
    /// [`Errand::BEGIN`], or what the sweep comes to.
    pub kind: u32,
    /// Fills up to a multiple of 8.
    pub reserved: u32,
    /// The flow of IPv4 to look at.
    pub v4: FlowKey<Ipv4>,
    /// The flow of IPv6 to look at.
    pub v6: FlowKey<Ipv6>,
    /// The query over IPv4 to look at.
    pub query_v4: QueryKey<Ipv4>,
    /// The query over IPv6 to look at.
    pub query_v6: QueryKey<Ipv6>,
}

impl Errand {
    /// A sweep begins.
    pub const BEGIN: u32 = 0;

    /// It comes to the flows of IPv4, or to one of them.
    pub const V4: u32 = 4;

    /// It comes to the flows of IPv6, or to one of them.
    pub const V6: u32 = 6;

    /// It comes to the queries over IPv4, or to one of them.
    pub const QUERY_V4: u32 = 14;

    /// It comes to the queries over IPv6, or to one of them.
    pub const QUERY_V6: u32 = 16;
}

const _: () = assert!(size_of::<Errand>() == 120);

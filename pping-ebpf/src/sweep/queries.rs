//! Removes DNS queries that were not answered in time.

use core::ffi::c_void;

use pping_common::{
    abi::Counters,
    dns::{PendingQuery, QueryKey, is_unanswered},
    parse::{Ipv4, Ipv6},
};

use super::walk::{CONTINUE, walk};
use crate::{
    maps::{self, Flows, QUERIES_V4, QUERIES_V6, SweepRun},
    shared::prelude::*,
};

#[inline(always)]
pub(super) fn visit_query<A: Flows>(asked_for: Shared<QueryKey<A>>) {
    // SAFETY: the only reference to it in this visit.
    let Some(key) = (unsafe { maps::sweep_key::<QueryKey<A>>() }) else { return };
    asked_for.load_to(key);
    if let Some(pending) = A::queries().shared(key) {
        expire_query(key, pending);
    }
}

#[inline(never)]
pub(super) fn walk_through_v4() {
    // SAFETY: the callback is for the keys and values of this map.
    unsafe { walk((&raw const QUERIES_V4).cast(), expire_query_v4) };
}

#[inline(never)]
pub(super) fn walk_through_v6() {
    // SAFETY: the callback is for the keys and values of this map.
    unsafe { walk((&raw const QUERIES_V6).cast(), expire_query_v6) };
}

/// # Safety
/// The kernel calls it with an element of the map.
unsafe extern "C" fn expire_query_v4(
    _: *mut c_void,
    key: *const QueryKey<Ipv4>,
    pending: *mut PendingQuery,
    _: *mut c_void,
) -> i64 {
    // SAFETY: an element of the map.
    expire_query(&unsafe { Shared::new(key.cast_mut()) }.load(), unsafe { Shared::new(pending) });
    CONTINUE
}

/// # Safety
/// The kernel calls it with an element of the map.
unsafe extern "C" fn expire_query_v6(
    _: *mut c_void,
    key: *const QueryKey<Ipv6>,
    pending: *mut PendingQuery,
    _: *mut c_void,
) -> i64 {
    // SAFETY: an element of the map.
    expire_query(&unsafe { Shared::new(key.cast_mut()) }.load(), unsafe { Shared::new(pending) });
    CONTINUE
}

/// Removes a query if it has waited too long, or if the agent cuts off all flows.
#[inline(always)]
fn expire_query<A: Flows>(key: &QueryKey<A>, pending: Shared<PendingQuery>) {
    let Some(run) = maps::sweep_run() else { return };
    let query = pending.at(field!(PendingQuery, query)).read();
    let cut_off = run.at(field!(SweepRun, cut_off)).read();
    if cut_off == 0 && !is_unanswered(query.since(), run.at(field!(SweepRun, now)).read()) {
        return;
    }
    let Some(counters) = maps::counters(key.arm.interface_id()) else { return };
    // The entry may belong to another query by now, which then gives no sample.
    if A::queries().remove(key).is_ok() && cut_off == 0 {
        counters.at(field!(Counters, dns_unanswered)).add(1);
    }
}

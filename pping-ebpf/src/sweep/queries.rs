//! Removes DNS queries that were not answered in time.

use core::ffi::c_void;

use pping_common::{
    abi::Counters,
    dns::{PendingQuery, QueryKey, is_unanswered},
    flow::{Ipv4, Ipv6},
};

use super::walk::{CONTINUE, walk};
use crate::{
    maps::{self, Flows, QUERIES_V4, QUERIES_V6},
    shared::field,
    sync,
};

#[inline(always)]
pub(super) fn visit_query<A: Flows>(key: &QueryKey<A>) {
    if let Some(pending) = A::queries().get_ptr_mut(key) {
        expire_query(key, pending);
    }
}

#[inline(never)]
pub(super) fn walk_through_v4() {
    walk((&raw const QUERIES_V4).cast(), expire_query_v4);
}

#[inline(never)]
pub(super) fn walk_through_v6() {
    walk((&raw const QUERIES_V6).cast(), expire_query_v6);
}

extern "C" fn expire_query_v4(
    _: *mut c_void,
    key: *const QueryKey<Ipv4>,
    pending: *mut PendingQuery,
    _: *mut c_void,
) -> i64 {
    expire_query(key, pending);
    CONTINUE
}

extern "C" fn expire_query_v6(
    _: *mut c_void,
    key: *const QueryKey<Ipv6>,
    pending: *mut PendingQuery,
    _: *mut c_void,
) -> i64 {
    expire_query(key, pending);
    CONTINUE
}

/// Removes a query if it has waited too long, or if the agent cuts off all flows.
#[inline(always)]
fn expire_query<A: Flows>(key: *const QueryKey<A>, pending: *const PendingQuery) {
    let Some(sweep) = maps::sweep() else { return };
    // SAFETY: an element of the map, and the sweep has been written. A query is one number, so it is never read half-written.
    let (interface, query, sweep) =
        unsafe { ((*key).interface, (&raw const (*pending).query).read_volatile(), sweep.read_volatile()) };
    if sweep.cut_off == 0 && !is_unanswered(query.since(), sweep.now) {
        return;
    }
    let Some(counters) = maps::counters(interface) else { return };
    // SAFETY: an element of the map. It may belong to another query by now, which then gives no sample.
    if A::queries().remove(unsafe { &*key }).is_ok() && sweep.cut_off == 0 {
        sync::add(counters.at(field!(Counters, dns_unanswered)).as_ptr(), 1);
    }
}

//! Matches DNS responses to queries.
//!
//! Another CPU may handle a message with the same key at the same time, and the kernel reuses a removed entry of this
//! kind of map for another query at once. So a CPU trusts what it read from an entry only if it then removes the key
//! itself. The only write in place makes a query void, which does no harm if the entry belongs to another query by then.

use aya_ebpf::{bindings::BPF_NOEXIST, helpers::bpf_ktime_get_ns};
use pping_common::{
    abi::{Counters, Direction, FlowState, SeriesSelector},
    dns::{Query, QueryKey, is_unanswered},
    parse::Untracked,
    rtt::{Method, Sample},
};

use crate::{
    aggregate, config,
    emit::{self, Context},
    launder::launder,
    maps::{self, Flows, Scratch},
    shared::{Shared, field},
};

/// Counts a message, and records a query or matches a response. An error says why it is not measured.
#[inline(always)]
pub(crate) fn message<A: Flows>(
    direction: Direction,
    interface_id: u16,
    counters: Shared<Counters>,
    scratch: &mut Scratch,
) -> Result<(), Untracked> {
    let frame = &scratch.frame;
    if config::excludes() && (maps::is_excluded(frame.source) || maps::is_excluded(frame.destination)) {
        return Err(Untracked::Excluded);
    }
    let key = QueryKey::<A>::new(interface_id, frame);
    // SAFETY: this helper only reads a clock.
    let now = unsafe { bpf_ktime_get_ns() };
    if frame.transport.datagram.dns.is_response {
        if let Some(query) = take_query(counters, &key, now) {
            report::<A>(direction, interface_id, counters, scratch, query, now);
        }
    } else {
        counters.at(field!(Counters, dns_queries)).element(direction as usize).count(1);
        if config::rules().include_local || !maps::is_local(frame.destination) {
            record_query(counters, &key, now);
        } else {
            counters.at(field!(Counters, to_this_host)).count(1);
        }
    }
    Ok(())
}

/// Records a query. If the same query is already pending, that one becomes void.
#[inline(always)]
fn record_query<A: Flows>(counters: Shared<Counters>, key: &QueryKey<A>, now: u64) {
    if let Some(entry) = A::queries().get_ptr_mut(key) {
        // SAFETY: a map value, valid for the program's run. A query is one number, so it is never read half-written.
        let query = unsafe { entry.read_volatile() };
        if !is_unanswered(query.since(), now) {
            // SAFETY: as above.
            unsafe { entry.write_volatile(Query::repeated(now)) };
            return;
        }
        let is_removed = A::queries().remove(key).is_ok();
        counters.at(field!(Counters, dns_unanswered)).count(u64::from(is_removed));
    }
    if A::queries().insert(key, &Query::sent(now), u64::from(BPF_NOEXIST)).is_err()
        && let Some(entry) = A::queries().get_ptr_mut(key)
    {
        // Another CPU recorded the same query first.
        // SAFETY: as above.
        unsafe { entry.write_volatile(Query::repeated(now)) };
    }
}

/// Removes and returns the query that a response answers, if one is pending.
#[inline(always)]
fn take_query<A: Flows>(counters: Shared<Counters>, key: &QueryKey<A>, now: u64) -> Option<Query> {
    let entry = A::queries().get_ptr_mut(key)?;
    // SAFETY: a map value, valid for the program's run. A query is one number, so it is never read half-written.
    let query = unsafe { entry.read_volatile() };
    // Only one of several CPUs succeeds.
    A::queries().remove(key).ok()?;
    if is_unanswered(query.since(), now) {
        counters.at(field!(Counters, dns_unanswered)).count(1);
        return None;
    }
    Some(query)
}

/// Counts a response. If it gives a sample, counts that too, adds it to its series and emits it.
#[inline(always)]
fn report<A: Flows>(
    direction: Direction,
    interface_id: u16,
    counters: Shared<Counters>,
    scratch: &mut Scratch,
    query: Query,
    now: u64,
) {
    let dns = scratch.frame.transport.datagram.dns;
    counters.at(field!(Counters, dns_responses)).element(usize::from(dns.rcode)).count(1);
    let Some(rtt) = query.rtt(now) else { return };
    let samples = counters.at(field!(Counters, samples)).element(direction as usize);
    samples.element(Method::Dns as usize).count(1);
    scratch.measured.sample = Sample { method: Method::Dns, identifier: u32::from(dns.id), rtt, side_rtt: 0 };
    scratch.state = FlowState::without_flow(rtt);
    launder(scratch);
    let selector = SeriesSelector::of_sample(interface_id, Method::Dns, direction as u8, &scratch.frame);
    aggregate::sample_without_flow(&selector, counters, &mut scratch.target, rtt);
    launder(scratch);
    let context = Context { direction, interface_id, frame: &scratch.frame };
    let sample = &scratch.measured.sample;
    emit::rtt::<A>(&context, counters, sample, &scratch.state, now, scratch.target.index);
}

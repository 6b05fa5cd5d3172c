//! Matches DNS responses to queries.
//!
//! Another CPU may handle a message with the same key at the same time, and the kernel reuses a removed entry of this
//! kind of map for another query at once. So a CPU trusts what it read from an entry only if it then removes the key
//! itself. The only write in place makes a query void, which does no harm if the entry belongs to another query by then.

use aya_ebpf::{bindings::BPF_NOEXIST, helpers::bpf_ktime_get_ns};
use pping_common::{
    abi::{Counters, FlowState, SeriesSelector},
    dns::{PendingQuery, Query, QueryKey, is_unanswered},
    method::Method,
    parse::{Direction, Untracked},
    rtt::Sample,
};

use crate::{
    aggregate,
    barrier::barrier_var,
    config,
    emit::{self, Context},
    maps::{self, Flows, Newcomers, Scratch},
    rings::SourceRing,
    shared::prelude::*,
};

/// Counts a message, and records a query or matches a response. Returns whether there is a sample, which [`report`] has to follow. An
/// error says why the message is not measured.
#[inline(always)]
pub(crate) fn message<A: Flows>(direction: Direction, scratch: &mut Scratch) -> Result<bool, Untracked> {
    let Some(counters) = maps::counters(scratch.packet.joined_id) else { return Ok(false) };
    let frame = &scratch.packet.frame;
    if config::excludes() && (maps::is_excluded(frame.source) || maps::is_excluded(frame.destination)) {
        return Err(Untracked::Excluded);
    }
    let key = QueryKey::<A>::new(scratch.arm(), frame);
    // SAFETY: this helper only reads a clock.
    let now = unsafe { bpf_ktime_get_ns() };
    if frame.transport.datagram.dns.is_response {
        // Queries that wait while an interface shows how many arms it has are under the key of before.
        let query = take_query(counters, &key, now).or_else(|| {
            take_query(counters, &QueryKey::<A>::new(scratch.former_arm(), &scratch.packet.frame), now)
        });
        if let Some(query) = query {
            return Ok(count_response(counters, scratch, query, now));
        } else if scratch.packet.has_two_arms != 0 && pending(&key.opposite()).is_some() {
            return Err(Untracked::SameHook);
        }
    } else {
        counters.at(field!(Counters, dns_queries)).element(direction as usize).count(1);
        if config::rules().include_local || !maps::is_local(frame.destination) {
            record_query(counters, &key, scratch, now);
        } else {
            counters.at(field!(Counters, to_this_host)).count(1);
        }
    }
    Ok(false)
}

/// Records a query. If the same query is already pending, that one becomes void, unless this is a copy of it.
#[inline(always)]
fn record_query<A: Flows>(counters: Shared<Counters>, key: &QueryKey<A>, scratch: &mut Scratch, now: u64) {
    if let Some(entry) = query(key) {
        let pending = entry.read();
        if !is_unanswered(pending.since(), now) {
            if !pending.is_copied(now, config::rules().copy_within) {
                entry.write(Query::repeated(now));
            }
            return;
        }
        let is_removed = A::queries().remove(key).is_ok();
        counters.at(field!(Counters, dns_unanswered)).count(u64::from(is_removed));
    }
    let given_up = counters.at(field!(Counters, dns_given_up));
    let Some(ring) = SourceRing::of::<A>(Newcomers::Queries, &scratch.packet.frame, scratch.arm()) else {
        return;
    };
    let Some(place) = ring.take() else {
        given_up.count(1);
        return;
    };
    scratch.newcomer.place = place;
    barrier_var(scratch);
    if !make_room(ring, key, scratch) {
        given_up.count(1);
    }
    barrier_var(scratch);
    let pending = PendingQuery::sent(now, scratch.newcomer.place);
    if A::queries().insert(key, &pending, u64::from(BPF_NOEXIST)).is_ok() {
        return;
    }
    match query(key) {
        // Another CPU recorded the same query first.
        Some(entry) => entry.write(Query::repeated(now)),
        None => given_up.count(1),
    }
}

/// Puts the key of a query into its place. The query that had the place is removed if it is still pending, and finds no other
/// place: then this returns `false`.
///
/// Two CPUs have the same place at the same time only if all other places of the ring were taken in between. Then a query
/// may lose its place, and stays until it has waited too long.
#[inline(always)]
fn make_room<A: Flows>(ring: SourceRing, key: &QueryKey<A>, scratch: &mut Scratch) -> bool {
    let Some(taken) = A::query_key(scratch.newcomer.place) else { return true };
    // The first key in a place is all zeros, and no query's.
    let old = taken.load();
    taken.store(key);
    let Some(pending) = pending_at(&old, scratch.newcomer.place) else { return true };
    scratch.newcomer.ahead = ring.ahead_of(scratch.newcomer.place, |place| {
        A::query_key(place).is_some_and(|other| pending_at::<A>(&other.load(), place).is_none())
    });
    barrier_var(scratch);
    if scratch.newcomer.ahead != 0
        && let Some(place) = ring.take_ahead(scratch.newcomer.ahead)
        && let Some(free) = A::query_key(place)
    {
        free.store(&old);
        pending.at(field!(PendingQuery, place)).write(place);
        return true;
    }
    A::queries().remove(&old).is_err()
}

/// The pending query with this key, if it has this place.
#[inline(always)]
fn pending_at<A: Flows>(key: &QueryKey<A>, place: u32) -> Option<Shared<PendingQuery>> {
    let pending = pending(key)?;
    (pending.at(field!(PendingQuery, place)).read() == place).then_some(pending)
}

/// The pending query with this key.
#[inline(always)]
fn query<A: Flows>(key: &QueryKey<A>) -> Option<Shared<Query>> {
    Some(pending(key)?.at(field!(PendingQuery, query)))
}

/// The same, with its place.
#[inline(always)]
fn pending<A: Flows>(key: &QueryKey<A>) -> Option<Shared<PendingQuery>> {
    A::queries().shared(key)
}

/// Removes and returns the query that a response answers, if one is pending.
#[inline(always)]
fn take_query<A: Flows>(counters: Shared<Counters>, key: &QueryKey<A>, now: u64) -> Option<Query> {
    let query = query(key)?.read();
    // Only one of several CPUs succeeds.
    A::queries().remove(key).ok()?;
    if is_unanswered(query.since(), now) {
        counters.at(field!(Counters, dns_unanswered)).count(1);
        return None;
    }
    Some(query)
}

/// Counts a response, and returns whether it gives a sample.
#[inline(always)]
fn count_response(counters: Shared<Counters>, scratch: &mut Scratch, query: Query, now: u64) -> bool {
    let dns = scratch.packet.frame.transport.datagram.dns;
    counters.at(field!(Counters, dns_responses)).element(usize::from(dns.rcode)).count(1);
    let Some(rtt) = query.rtt(now) else { return false };
    scratch.packet.now = now;
    scratch.outcome.measured.sample =
        Sample { method: Method::Dns, identifier: u32::from(dns.id), rtt, side_rtt: 0 };
    scratch.flow.state = FlowState::without_flow(rtt);
    true
}

/// Counts the sample of a response, adds it to its series and emits it.
#[inline(always)]
pub(crate) fn report<A: Flows>(direction: Direction, counters: Shared<Counters>, scratch: &mut Scratch) {
    let samples = counters.at(field!(Counters, samples)).element(direction as usize);
    samples.element(Method::Dns as usize).count(1);
    let rtt = scratch.outcome.measured.sample.rtt;
    let interface_id = scratch.packet.joined_id;
    let selector = selector(direction, scratch);
    aggregate::sample_without_flow(&selector, counters, &mut scratch.outcome.target, rtt);
    barrier_var(scratch);
    let context = Context { direction, interface_id, frame: &scratch.packet.frame };
    let sample = &scratch.outcome.measured.sample;
    let (state, now) = (&scratch.flow.state, scratch.packet.now);
    emit::rtt::<A>(&context, counters, sample, state, now, scratch.outcome.target.index);
}

/// Adds the sample of a response to the series of the network at its other end.
#[inline(always)]
pub(crate) fn count_for_network(direction: Direction, counters: Shared<Counters>, scratch: &mut Scratch) {
    let rtt = scratch.outcome.measured.sample.rtt;
    let selector = selector(direction, scratch);
    aggregate::network_sample(None, &selector, counters, &mut scratch.outcome.target, rtt);
}

/// What selects the series of a sample.
#[inline(always)]
fn selector(direction: Direction, scratch: &Scratch) -> SeriesSelector {
    let (interface_id, frame) = (scratch.packet.joined_id, &scratch.packet.frame);
    SeriesSelector::of_sample(interface_id, Method::Dns, direction as u8, frame, true)
}

//! From a DNS message to the query that waits, or that it answers.
//!
//! Another CPU may handle a message of the same key at the same time, and another query may take the place of one that is
//! looked at: entries of this kind of map are used again at once. So what is read of an entry counts only for who then
//! deletes its key, and is written in place only to say that the query is void, which does no harm in a wrong one.

use aya_ebpf::{bindings::BPF_NOEXIST, helpers::bpf_ktime_get_ns};
use pping_common::{
    abi::{Counters, Direction},
    dns::{Query, QueryKey, is_unanswered},
    parse::Untracked,
    rtt::{Method, Sample},
};

use crate::{
    aggregate::{self, Belonging},
    bounds::within,
    config,
    emit::{self, Context, State},
    maps::{self, Flows, Scratch},
};

/// Counts a message, has a query wait and matches a response. An error says why it is not measured.
#[inline(always)]
pub(crate) fn message<A: Flows>(
    direction: Direction,
    interface_id: u16,
    counters: &mut Counters,
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
        if let Some(query) = answered(counters, &key, now) {
            report::<A>(direction, interface_id, counters, scratch, query, now);
        }
    } else {
        counters.dns_queries[direction as usize] += 1;
        if config::rules().include_local || !maps::is_local(frame.destination) {
            ask(counters, &key, now);
        }
    }
    Ok(())
}

/// Has a query wait. One that waits already is void from now on.
#[inline(always)]
fn ask<A: Flows>(counters: &mut Counters, key: &QueryKey<A>, now: u64) {
    if let Some(entry) = A::queries().get_ptr_mut(key) {
        // SAFETY: a map value, valid for the program's run. One number, so never half of one and half of another.
        let query = unsafe { entry.read_volatile() };
        if !is_unanswered(query.since(), now) {
            // SAFETY: as above.
            unsafe { entry.write_volatile(Query::asked_again(now)) };
            return;
        }
        counters.dns_unanswered += u64::from(A::queries().remove(key).is_ok());
    }
    if A::queries().insert(key, &Query::asked(now), u64::from(BPF_NOEXIST)).is_err()
        && let Some(entry) = A::queries().get_ptr_mut(key)
    {
        // Another CPU was faster, with the same query.
        // SAFETY: as above.
        unsafe { entry.write_volatile(Query::asked_again(now)) };
    }
}

/// Takes out the query that a response answers, if it waited.
#[inline(always)]
fn answered<A: Flows>(counters: &mut Counters, key: &QueryKey<A>, now: u64) -> Option<Query> {
    let entry = A::queries().get_ptr_mut(key)?;
    // SAFETY: a map value, valid for the program's run. One number, so never half of one and half of another.
    let query = unsafe { entry.read_volatile() };
    // Of several CPUs one succeeds.
    A::queries().remove(key).ok()?;
    if is_unanswered(query.since(), now) {
        counters.dns_unanswered += 1;
        return None;
    }
    Some(query)
}

/// Counts a response, and its sample if there is one, adds that to its series and tells the agent.
#[inline(always)]
fn report<A: Flows>(
    direction: Direction,
    interface_id: u16,
    counters: &mut Counters,
    scratch: &mut Scratch,
    query: Query,
    now: u64,
) {
    let dns = scratch.frame.transport.datagram.dns;
    counters.dns_responses[within::<16>(usize::from(dns.rcode))] += 1;
    let Some(rtt) = query.rtt(now) else { return };
    counters.samples[direction as usize][Method::Dns as usize] += 1;
    scratch.measured.sample = Sample { method: Method::Dns, identifier: u32::from(dns.id), rtt, side_rtt: 0 };
    // There is no flow that more could be told of.
    scratch.state = State {
        min_rtt: rtt,
        smoothed_rtt: rtt,
        sent_packets: 0,
        sent_bytes: 0,
        rec_packets: 0,
        rec_bytes: 0,
    };
    maps::launder(scratch);
    let frame = &scratch.frame;
    let belonging = Belonging {
        interface_id,
        method: Method::Dns as u8,
        direction: direction as u8,
        dscp: frame.traffic_class >> 2,
        source: frame.source,
        destination: frame.destination,
    };
    aggregate::sample_without_flow(&belonging, counters, &mut scratch.series, rtt);
    maps::launder(scratch);
    let context = Context { direction, interface_id, frame: &scratch.frame };
    let sample = &scratch.measured.sample;
    emit::rtt::<A>(&context, counters, sample, &scratch.state, now, scratch.series.index);
}

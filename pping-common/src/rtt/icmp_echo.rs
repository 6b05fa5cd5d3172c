//! `icmp-echo`: an echo request, and the reply with the same identifier, sequence number and data.
//!
//! Many requests are never answered: those that `traceroute` sends to hosts on the way, or all of an outage. Replies may
//! also take long, while many requests are under way. So a flow of echoes has two kinds of room, for the requests of both
//! endpoints together:
//! - The **latest** eight requests are always pending. So whatever was lost before them, a reply that comes before eight
//!   more requests gives a sample.
//! - Requests that are pushed out of these are **kept**, up to eight of them, for replies that take longer. A kept request
//!   gives way to a later one if a still later one has given a sample, or after [`crate::limits::PENDING_LIFETIME`]. If
//!   none gives way, the request that was pushed out is given up. So those that have waited longest are kept.
//!
//! Every request takes room, because nobody knows which will be answered. So the limits on recordings are limits on
//! samples here: they apply to the time between the requests of two samples. Requests are also kept in no shorter
//! intervals, as they would give no sample.

use super::{
    pending::{Pending, PendingEntry, PendingRange, has_waited},
    plan::MatchPlan,
    rules::{RttSummary, Rules},
    sample::Measured,
};
use crate::{method::Method, parse::Echo};

/// The position of the sender in an identifier, above the sequence number.
const SENDER_SHIFT: u32 = 16;
/// The position of the digest of the data.
const DATA_SHIFT: u32 = 17;

/// Plans an echo that endpoint number `from` sent. A reply matches the pending request of the other endpoint with its
/// sequence number and data: the next sequence number is easy to guess.
#[inline(always)]
pub(crate) fn plan(from: u32, echo: &Echo, plan: &mut MatchPlan) {
    plan.method = Method::IcmpEcho;
    let number = u32::from(echo.sequence) | u32::from(echo.data) << DATA_SHIFT;
    if echo.is_reply {
        plan.echoed = number | (1 - from) << SENDER_SHIFT;
        plan.freed_below = 1;
        plan.sample_below = 1;
    } else {
        plan.identifier = number | from << SENDER_SHIFT;
        plan.should_record = 1;
    }
}

/// Frees the request that a reply answers, and notes when it was sent.
#[inline(always)]
pub(crate) fn free_answered(entry: &mut PendingEntry, plan: &mut MatchPlan) {
    let [latest, kept] = &mut entry.directions;
    latest.free_echoed(PendingRange::WHOLE, plan);
    kept.free_echoed(PendingRange::WHOLE, plan);
    plan.answers = u8::from(plan.recorded_at != 0);
    // Only the sequence number is reported.
    plan.matched &= u32::from(u16::MAX);
}

/// Takes the sample back if the limits forbid it. `sampled_at` is when the sender's newest request of a sample was sent,
/// ns, and the array has its lowest and its smoothed RTT.
#[inline(always)]
pub(crate) fn limit(
    sampled_at: &mut u64,
    [min, smoothed]: [u64; 2],
    now: u64,
    rules: &Rules,
    plan: &mut MatchPlan,
) {
    // Replies may come in another order than the requests.
    let (before, sent_at) = (*sampled_at, plan.recorded_at);
    let (earlier, later) = if sent_at < before { (sent_at, before) } else { (before, sent_at) };
    let rtt = RttSummary { recorded_at: earlier, min, smoothed };
    if sent_at > now || before != 0 && !rules.allow(&rtt, later) {
        plan.recorded_at = 0;
    } else {
        *sampled_at = later;
    }
}

/// Takes into account that a request with the number and the data of this one may be pending. Then a reply may answer either,
/// so none is awaited any more; but if it was sent a moment ago, this one is its copy.
#[inline(always)]
pub(crate) fn free_repeated(
    entry: &mut PendingEntry,
    now: u64,
    rules: &Rules,
    plan: &mut MatchPlan,
    measured: &mut Measured,
) {
    let [latest, kept] = &mut entry.directions;
    let is_repeated = latest.has(plan.identifier) | kept.has(plan.identifier);
    let before = now.saturating_sub(rules.copy_within);
    let was_latest = latest.free_range(PendingRange::WHOLE, plan.identifier, 1, before);
    let was_kept = kept.free_range(PendingRange::WHOLE, plan.identifier, 1, before);
    measured.not_awaited = was_latest | was_kept;
    plan.should_record &= !is_repeated;
}

/// Records a request at `now`, ns, among the latest, and leaves the one that it pushes out in the plan: its identifier in
/// `matched`, and when it was sent in `recorded_at`.
#[inline(always)]
pub(crate) fn push(entry: &mut PendingEntry, now: u64, plan: &mut MatchPlan, measured: &mut Measured) {
    let [latest, _] = &mut entry.directions;
    let slot = latest.oldest(PendingRange::WHOLE);
    (plan.matched, plan.recorded_at) = (latest.identifiers[slot], latest.times[slot]);
    latest.put(slot, plan.identifier, now);
    measured.asked = true;
}

/// Keeps the request that [`push`] has pushed out, if there is room for it. The array has the lowest and the smoothed RTT.
#[inline(always)]
pub(crate) fn keep(
    entry: &mut PendingEntry,
    [min, smoothed]: [u64; 2],
    now: u64,
    rules: &Rules,
    plan: &MatchPlan,
    measured: &mut Measured,
) {
    let PendingEntry { recorded_at: sampled_at, directions: [_, kept] } = entry;
    let (newest, slot) = (kept.newest_time(), kept.oldest(PendingRange::WHOLE));
    let (pushed, since) = (plan.matched, plan.recorded_at);
    if since == 0 {
        return;
    }
    if gives_way(pushed, since, sampled_at, now) {
        measured.gave_way = true;
        return;
    }
    let before = newest.max(sampled_at[sender(pushed)]);
    if !rules.allow(&RttSummary { recorded_at: before, min, smoothed }, since) {
        measured.not_awaited = true;
        return;
    }
    let oldest_since = kept.times[slot];
    if oldest_since != 0 && !gives_way(kept.identifiers[slot], oldest_since, sampled_at, now) {
        measured.pending_full = true;
        measured.not_awaited = true;
        return;
    }
    measured.gave_way = oldest_since != 0;
    kept.put(slot, pushed, since);
}

/// Whether a request that was sent at `since` gives way: a later one has given a sample, or it has waited for long.
#[inline(always)]
fn gives_way(request: u32, since: u64, sampled_at: &[u64; 2], now: u64) -> bool {
    since < sampled_at[sender(request)] || has_waited(since, now)
}

/// The number of the endpoint that sent a request.
#[inline(always)]
fn sender(request: u32) -> usize {
    (request >> SENDER_SHIFT) as usize & 1
}

/// Whether any request is pending.
#[inline(always)]
pub(crate) fn has_pending(entry: &PendingEntry) -> bool {
    entry.directions.iter().fold(false, |any, pending: &Pending| any | pending.has_pending())
}

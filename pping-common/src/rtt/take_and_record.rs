//! The steps that carry out a plan.

use super::{
    pending::{Inserted, Pending, PendingRange},
    plan::MatchPlan,
    rules::{RttSummary, Rules},
    sample::{Measured, Sample},
};

/// Takes the sample, once the identifiers that the packet echoes are free.
#[inline(always)]
pub(crate) fn take_sample(now: u64, plan: &MatchPlan, measured: &mut Measured) {
    let since = plan.recorded_at;
    // In a capture an echo can come before the packet it echoes: that is no RTT.
    measured.has_sample = since != 0 && since <= now;
    (measured.pending_full, measured.gave_way) = (false, false);
    (measured.asked, measured.not_awaited) = (false, false);
    measured.answered = plan.answers != 0;
    measured.to_this_host = plan.to_this_host != 0;
    if measured.has_sample {
        let midpoint_at = plan.midpoint_at;
        measured.sample = Sample {
            method: plan.method,
            identifier: plan.matched,
            rtt: now - since,
            side_rtt: if midpoint_at >= since && midpoint_at <= now { now - midpoint_at } else { 0 },
        };
    }
}

/// Frees the identifiers that the packet makes ambiguous.
#[inline(always)]
pub(crate) fn void(
    pending: &mut Pending,
    rtt: &RttSummary,
    now: u64,
    range: PendingRange,
    rules: &Rules,
    plan: &mut MatchPlan,
) {
    let latest = if plan.may_be_copy == 0 { u64::MAX } else { now.saturating_sub(rules.copy_within(rtt)) };
    let is_renewed = pending.free_range(range, plan.voided_from, plan.voided_span, latest);
    plan.renews = u8::from(is_renewed && plan.voided_span == 1);
}

/// Records the identifier of the packet. Returns true if the recording counts for the rate limit.
#[inline(always)]
pub(crate) fn record(
    pending: &mut Pending,
    rtt: &RttSummary,
    now: u64,
    range: PendingRange,
    rules: &Rules,
    plan: &MatchPlan,
    measured: &mut Measured,
) -> bool {
    if plan.should_record == 0 {
        return false;
    }
    // An identifier that is sent again replaces its pending timestamp, whatever the rate limit says.
    let is_renewal = plan.renews != 0;
    if !is_renewal && !rules.allow(rtt, now) {
        return false;
    }
    let inserted = pending.insert(range, plan.identifier, now);
    measured.pending_full = inserted == Inserted::Full;
    measured.gave_way = inserted == Inserted::Replaced;
    !measured.pending_full && !is_renewal
}

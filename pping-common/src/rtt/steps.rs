//! Carrying out a plan.

use super::{
    pending::{Part, Pending},
    plan::Work,
    rules::{RttSummary, Rules},
    sample::{Measured, Sample},
};

/// Carries out the first half of a plan: frees what the packet echoes, and takes the sample.
#[inline(always)]
pub(crate) fn find(
    pending: &mut Pending,
    rtt: &mut RttSummary,
    now: u64,
    part: Part,
    work: &mut Work,
    measured: &mut Measured,
) {
    if work.reach != 0 {
        pending.take(part, work);
    }
    let since = work.since;
    // In a capture an echo can come before what it echoes, and that is no time to tell.
    measured.has_sample = since != 0 && since <= now;
    measured.pending_full = false;
    if measured.has_sample {
        let turned = work.turned;
        measured.sample = Sample {
            method: work.method,
            identifier: work.found,
            rtt: now - since,
            side_rtt: if turned >= since && turned <= now { now - turned } else { 0 },
        };
        rtt.take_sample(now - since);
    }
}

/// Carries out the second half: frees what the packet makes ambiguous, and has it wait for its echo.
#[inline(always)]
pub(crate) fn record(
    pending: &mut Pending,
    rtt: &mut RttSummary,
    now: u64,
    part: Part,
    rules: &Rules,
    work: &Work,
    measured: &mut Measured,
) {
    let is_renewed = work.span != 0 && pending.free(part, work.pivot, work.span);
    if work.records == 0 {
        return;
    }
    // What is sent again with the same identifier takes the place of what waits: nothing is recorded beside.
    let is_renewal = is_renewed && work.span == 1;
    if !is_renewal && !rules.allow(rtt, now) {
        return;
    }
    if !pending.put(part, work.identifier, now) {
        measured.pending_full = true;
    } else if !is_renewal {
        rtt.recorded_at = now;
    }
}

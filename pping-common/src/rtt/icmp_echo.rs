//! `icmp-echo`: a request, and the reply with the same identifier and sequence number.

use super::plan::MatchPlan;
use crate::{method::Method, parse::Echo};

/// A reply matches the pending request with its number. A request replaces a pending one with the same number, whose reply would be
/// ambiguous.
#[inline(always)]
pub(crate) fn plan(echo: &Echo, plan: &mut MatchPlan) {
    let sequence = u32::from(echo.sequence);
    if echo.is_reply {
        plan.method = Method::IcmpEcho;
        plan.echoed = sequence;
        plan.freed_below = 1;
        plan.sample_below = 1;
    } else {
        plan.voided_from = sequence;
        plan.voided_span = 1;
        plan.identifier = sequence;
        plan.should_record = 1;
    }
}

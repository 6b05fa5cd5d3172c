//! `icmp-echo`: an echo request, and the reply with the same identifier and sequence number.

use super::plan::MatchPlan;
use crate::{method::Method, parse::Echo};

/// Plans an echo. A reply matches the pending request with its sequence number. A request replaces a pending one with the
/// same number, because the reply would be ambiguous.
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

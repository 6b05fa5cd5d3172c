//! `icmp-echo`: a request, and the reply with the same identifier and sequence number.

use super::plan::Work;
use crate::{method::Method, parse::Echo};

/// A reply matches what waits. A request waits, and takes the place of one with the same number that does: the reply to that would be
/// ambiguous.
#[inline(always)]
pub(crate) fn plan(echo: &Echo, work: &mut Work) {
    let sequence = u32::from(echo.sequence);
    if echo.is_reply {
        work.method = Method::IcmpEcho;
        work.echoed = sequence;
        work.reach = 1;
        work.gives = 1;
    } else {
        work.pivot = sequence;
        work.span = 1;
        work.identifier = sequence;
        work.records = 1;
    }
}

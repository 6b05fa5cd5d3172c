//! The part of the summary that only a live run has: echo requests without a reply, and packets to this host. A capture
//! counts its echo requests otherwise, and does not tell which addresses are those of its host.

use std::fmt;

use pping_common::abi::Counters;

use super::{capture::LOOK_FOR_LOSS, count::Count};

/// Writes a line for each.
pub(super) fn write(f: &mut fmt::Formatter<'_>, counters: &Counters) -> fmt::Result {
    let Counters { echo_requests, echo_replies, echo_not_awaited, to_this_host, .. } = *counters;
    let unanswered = echo_requests.saturating_sub(echo_replies.saturating_add(echo_not_awaited));
    if unanswered > 0 {
        // Those of the last moments may have been answered later.
        write!(f, "not answered: {unanswered} of {echo_requests} echo requests when pping ended")?;
        if echo_not_awaited > 0 {
            write!(
                f,
                " ({echo_not_awaited} more were not waited for, as too many were under way or had the same number)"
            )?;
        }
        writeln!(f, "{LOOK_FOR_LOSS}")?;
    }
    if to_this_host > 0 {
        writeln!(
            f,
            "not timed: {} to this host itself; --include-local times them, which shows how soon this host answers",
            Count(to_this_host, "packet")
        )?;
    }
    Ok(())
}

//! `icmp-echo`: a request, and the reply with the same identifier and sequence number.

use crate::{flow::Direction, parse::Echo};

/// Matches a reply against the requests of the other side: the sequence number and the time of its
/// recording.
#[inline(always)]
pub(super) fn match_reply(reverse: &mut Direction, echo: &Echo) -> Option<(u32, u64)> {
    let sequence = u32::from(echo.sequence);
    let recorded_at = if echo.is_reply { reverse.slots.take(sequence) } else { None };
    recorded_at.map(|at| (sequence, at))
}

/// The sequence number of a request, and whether it waits already.
#[inline(always)]
pub(super) fn identifier(forward: &Direction, echo: &Echo) -> Option<(u32, bool)> {
    let sequence = u32::from(echo.sequence);
    (!echo.is_reply).then(|| (sequence, forward.slots.any(|waiting| waiting == sequence)))
}

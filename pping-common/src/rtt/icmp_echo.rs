//! `icmp-echo`: a request, and the reply with the same identifier and sequence number.

use crate::{flow::Direction, parse::Echo};

/// Matches a reply against the requests of the other side: since when that waited, 0 when none did.
#[inline(always)]
pub(super) fn match_reply(reverse: &mut Direction, echo: &Echo) -> u64 {
    if echo.is_reply { reverse.slots.take(u32::from(echo.sequence)) } else { 0 }
}

/// The sequence number of a request that can be timed. One that waits already waits from `now` on: its
/// reply would be ambiguous.
#[inline(always)]
pub(super) fn identifier(forward: &mut Direction, echo: &Echo, now: u64) -> Option<u32> {
    let sequence = u32::from(echo.sequence);
    if echo.is_reply {
        return None;
    }
    if forward.slots.any(|waiting| waiting == sequence) {
        forward.slots.renew(sequence, now);
        return None;
    }
    Some(sequence)
}

//! `tcp-ts`: a `TSval` and the `TSecr` that echoes it (RFC 7323, 3 and 4).

use super::{Effect, Part};
use crate::{flow::FlowDirection, parse::Segment};

/// What is known of a direction's newest `TSval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TsvalState {
    /// No segment with timestamps was seen.
    Unknown,
    /// The newest `TSval` is known: one that is newer is the first of its tick.
    Known,
    /// Segments went by unseen: one that is newer than all known may not be the first of its tick.
    Invalidated,
}

impl TsvalState {
    /// Notes that segments went by unseen.
    #[inline(always)]
    pub(crate) fn invalidate(&mut self) {
        if *self == Self::Known {
            *self = Self::Invalidated;
        }
    }
}

/// Whether `a` is newer than `b`: `0 < a - b < 2^31`, modulo 2^32 (RFC 7323, 5.2).
#[inline(always)]
pub fn is_newer(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).wrapping_sub(1) < (1 << 31) - 1
}

#[inline(always)]
pub(super) fn effect(
    forward: &FlowDirection,
    reverse: &FlowDirection,
    part: Part,
    segment: &Segment,
) -> Effect {
    let Some(timestamps) = segment.timestamps() else { return Effect::Nothing };
    if reverse.pending.any(part, |recorded| !is_newer(recorded, timestamps.tsecr)) {
        return Effect::Anything;
    }
    match forward.tsval_state {
        _ if !is_first_seen(forward, timestamps.tsval) => Effect::Nothing,
        TsvalState::Known => Effect::Tsval,
        TsvalState::Unknown | TsvalState::Invalidated => Effect::Anything,
    }
}

#[inline(always)]
fn is_first_seen(forward: &FlowDirection, tsval: u32) -> bool {
    forward.tsval_state == TsvalState::Unknown || is_newer(tsval, forward.newest_tsval)
}

/// Notes the `TSval` of a segment without RST, and returns it if its echo can be timed: it is the first of its tick, on a segment
/// that must be acknowledged.
#[inline(always)]
pub(super) fn identifier(forward: &mut FlowDirection, segment: &Segment) -> Option<u32> {
    let tsval = segment.timestamps()?.tsval;
    if !is_first_seen(forward, tsval) {
        return None;
    }
    let is_first_of_tick = match forward.tsval_state {
        // In mid-stream, earlier segments may have carried the same.
        TsvalState::Unknown => segment.flags.syn(),
        TsvalState::Known => true,
        TsvalState::Invalidated => false,
    };
    forward.newest_tsval = tsval;
    forward.tsval_state = TsvalState::Known;
    (is_first_of_tick && segment.consumes_sequence_space()).then_some(tsval)
}

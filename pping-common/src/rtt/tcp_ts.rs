//! `tcp-ts`: a `TSval` and the `TSecr` that echoes it (RFC 7323, 3 and 4).

use super::{
    pending::{PendingIdentifiers, PendingRange},
    plan::PossibleChange,
};
use crate::{layout::states, limits::TSVAL_SLACK, parse::Segment};

states! {
    /// What is known of a flow direction's newest `TSval`.
    pub struct TsvalState {
        /// No segment with timestamps was seen.
        UNKNOWN = 0,
        /// The newest `TSval` is known: a newer one is the first of its tick.
        KNOWN = 1,
        /// Segments were missed: a newer `TSval` may not be the first of its tick.
        INVALIDATED = 2,
    }
}

impl TsvalState {
    /// Takes into account that segments were missed.
    #[inline(always)]
    pub(crate) fn invalidate(&mut self) {
        if *self == Self::KNOWN {
            *self = Self::INVALIDATED;
        }
    }
}

/// Whether `a` is newer than `b`: `0 < a - b < 2^31`, modulo 2^32 (RFC 7323, 5.2).
#[inline(always)]
pub fn is_newer(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).wrapping_sub(1) < (1 << 31) - 1
}

#[inline(always)]
pub(crate) fn possible_change(
    newest: u32,
    state: TsvalState,
    reverse: &impl PendingIdentifiers,
    range: PendingRange,
    segment: &Segment,
) -> PossibleChange {
    let Some(timestamps) = segment.timestamps() else { return PossibleChange::Nothing };
    if reverse.any(range, |recorded| !is_newer(recorded, timestamps.tsecr)) {
        return PossibleChange::Anything;
    }
    match state {
        _ if !is_first_seen(newest, state, timestamps.tsval) => PossibleChange::Nothing,
        // A clock that is set to 0 may stand still from then on.
        TsvalState::KNOWN if timestamps.tsval != 0 && !is_far_ahead(newest, timestamps.tsval) => {
            PossibleChange::Tsval
        }
        // The `TSval` may not be the first of its tick, or leap.
        _ => PossibleChange::Anything,
    }
}

/// Whether a newer `TSval` is so far ahead that it may leap: see [`leaps`].
#[inline(always)]
fn is_far_ahead(newest: u32, tsval: u32) -> bool {
    tsval.wrapping_sub(newest) > TSVAL_SLACK
}

/// Whether a newer `TSval` is further ahead than a clock can have advanced in `elapsed`, ns: one tick in 512 ns, and
/// [`TSVAL_SLACK`].
#[inline(always)]
pub(crate) fn leaps(newest: u32, tsval: u32, elapsed: u64) -> bool {
    is_far_ahead(newest, tsval) && u64::from(tsval.wrapping_sub(newest) - TSVAL_SLACK) > elapsed >> 9
}

/// Whether two timestamps of a clock may be of about the same time: at most [`TSVAL_SLACK`] apart.
#[inline(always)]
pub(crate) fn is_about(newest: u32, tsval: u32) -> bool {
    tsval.wrapping_sub(newest).wrapping_add(TSVAL_SLACK) <= 2 * TSVAL_SLACK
}

#[inline(always)]
fn is_first_seen(newest: u32, state: TsvalState, tsval: u32) -> bool {
    state == TsvalState::UNKNOWN || is_newer(tsval, newest)
}

/// Notes the `TSval` of a segment without RST. Returns it if its echo can be timed: it is the first of its tick, and the
/// segment must be acknowledged.
#[inline(always)]
pub(crate) fn identifier(newest: &mut u32, state: &mut TsvalState, segment: &Segment) -> Option<u32> {
    let tsval = segment.timestamps()?.tsval;
    if !is_first_seen(*newest, *state, tsval) {
        return None;
    }
    // In mid-stream, earlier segments may have carried the same `TSval`.
    let is_first_of_tick =
        *state == TsvalState::KNOWN || *state == TsvalState::UNKNOWN && segment.flags.syn();
    *newest = tsval;
    *state = TsvalState::KNOWN;
    (is_first_of_tick && segment.consumes_sequence_space()).then_some(tsval)
}

/// Returns the `TSval` of a segment that did not get the lock, if it is the newest one. It must be stored: otherwise a
/// later segment with the same `TSval` would count as the first of its tick.
#[inline(always)]
pub fn missed(newest: u32, state: TsvalState, segment: &Segment) -> Option<u32> {
    let tsval = segment.timestamps()?.tsval;
    // Another connection may begin with any `TSval`.
    let is_comparable = state != TsvalState::UNKNOWN && !segment.flags.syn() && !segment.flags.rst();
    (is_comparable && is_newer(tsval, newest) && !is_far_ahead(newest, tsval)).then_some(tsval)
}

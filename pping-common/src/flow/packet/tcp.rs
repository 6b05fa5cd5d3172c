//! Which of the TCP methods measure a segment.

use crate::{
    flow::{
        key::Endpoint,
        memory::{
            cold::Locked,
            hot::{FlowSnapshot, Hot, HotDirection},
            lifecycle::Lifecycle,
            locked::{LockedFlow, PendingLookup},
        },
    },
    limits::{MANY_SEGMENTS, SEGMENTS_WITHOUT_TIMESTAMPS},
    method::Method,
    parse::{Segment, Timestamps},
    rtt::{
        MatchPlan, Pass, PendingIdentifiers, PendingRange, PossibleChange, Progress, Rules, TimestampOption,
        TsvalState, is_newer, tcp_handshake, tcp_seq, tcp_ts,
    },
};

impl HotDirection {
    /// Whether a segment repeats something that its direction sent before, or is a keep-alive or a window probe, which may ask
    /// for the same acknowledgement.
    #[inline(always)]
    fn repeats(&self, segment: &Segment, progress: Progress) -> bool {
        match progress {
            Progress::Advance
            | Progress::Replaces
            | Progress::Elsewhere
            | Progress::Refused
            | Progress::SameHook => false,
            Progress::First | Progress::Overlap | Progress::Behind => true,
            Progress::None => is_newer(self.sequence_end, segment.sequence),
        }
    }

    /// Whether a segment without timestamps, in a flow that has them, counts against them. Some hosts send keep-alives and
    /// window probes without.
    #[inline(always)]
    fn lacks_timestamps(&self, segment: &Segment, progress: Progress) -> bool {
        match progress {
            Progress::Behind
            | Progress::Replaces
            | Progress::Elsewhere
            | Progress::Refused
            | Progress::SameHook => false,
            Progress::First | Progress::Advance | Progress::Overlap => true,
            Progress::None => !self.state.has_sequence() || !is_newer(self.sequence_end, segment.sequence),
        }
    }
}

/// Whether this pass times the sequence numbers of a flow.
#[inline(always)]
fn is_by_seq(options: TimestampOption, rules: &Rules, pass: Pass) -> bool {
    let methods = rules.methods;
    if methods.has_both() {
        pass == Pass::Second
    } else if methods.has_seq_always() {
        true
    } else {
        methods.has(Method::TcpSeq) && options.is_without()
    }
}

#[inline(always)]
pub(in crate::flow) fn possible_change<W: PendingIdentifiers>(
    snapshot: &FlowSnapshot,
    from: Endpoint,
    segment: &Segment,
    progress: Progress,
    rules: &Rules,
    pending: impl Fn(Endpoint) -> Option<W>,
) -> PossibleChange {
    let (methods, options) = (rules.methods, snapshot.protocol_state.timestamps());
    let (forward, reverse) = (&snapshot.forward, snapshot.reverse);
    let is_settled = match (segment.has_timestamps, options) {
        (true, TimestampOption::PRESENT) => snapshot.protocol_state.is_settled(from),
        (true, TimestampOption::UNUSABLE) | (false, TimestampOption::ABSENT | TimestampOption::UNUSABLE) => {
            true
        }
        (false, TimestampOption::PRESENT)
            if !methods.has(Method::TcpTs) || !forward.lacks_timestamps(segment, progress) =>
        {
            true
        }
        _ => return PossibleChange::Anything,
    };
    // The first segment of a direction is remembered under the lock.
    if segment.flags.rst() || progress == Progress::First {
        return PossibleChange::Anything;
    }
    if methods.has(Method::TcpHandshake) && tcp_handshake::may_change(reverse.is_leg_pending(), segment) {
        return PossibleChange::Anything;
    }
    // What is sent again may make anything pending ambiguous.
    if forward.state.has_pending() && forward.repeats(segment, progress) {
        return PossibleChange::Anything;
    }
    let reverse_pending = PendingView(if reverse.has_pending() { pending(from.other()) } else { None });
    let pass = if methods.has_both() { Pass::Second } else { Pass::First };
    let is_by_seq = is_by_seq(options, rules, pass);
    let mut possible_change = PossibleChange::Nothing;
    if methods.has(Method::TcpTs) && (methods.has_both() || !is_by_seq) {
        possible_change = tcp_ts::possible_change(
            forward.newest_tsval,
            forward.state.tsval_state(),
            &reverse_pending,
            PendingRange::of(methods, Pass::First),
            segment,
        );
        let is_doubtful = match possible_change {
            PossibleChange::Nothing => {
                progress == Progress::Advance
                    && segment.has_timestamps
                    && (!is_settled || segment.timestamps.tsval != forward.newest_tsval)
            }
            _ => !is_settled,
        };
        if is_doubtful && options == TimestampOption::PRESENT {
            return PossibleChange::Anything;
        }
    }
    if possible_change == PossibleChange::Nothing && is_by_seq {
        let range = PendingRange::of(methods, pass);
        possible_change = tcp_seq::possible_change(&reverse_pending, range, segment, progress);
    }
    // A segment that one method records may be recorded by the other at the same time, whatever the limit.
    if methods.has_both() && possible_change != PossibleChange::Nothing {
        PossibleChange::Anything
    } else {
        possible_change
    }
}

/// The pending timestamps of a direction, if it has any.
struct PendingView<W>(Option<W>);

impl<W: PendingIdentifiers> PendingIdentifiers for PendingView<W> {
    #[inline(always)]
    fn any(&self, range: PendingRange, condition: impl Fn(u32) -> bool) -> bool {
        self.0.as_ref().is_some_and(|pending| pending.any(range, condition))
    }
}

/// Notes whether a flow has timestamps that can be used.
#[inline(always)]
pub(in crate::flow) fn note_options<P: PendingLookup>(
    flow: &mut LockedFlow<'_, P>,
    from: Endpoint,
    segment: &Segment,
    progress: Progress,
    now: u64,
    rules: &Rules,
) {
    // A SYN without progress is a copy: it does not tell what was agreed on.
    if segment.flags.rst() || segment.flags.syn() && progress == Progress::None {
        return;
    }
    let known = flow.hot.protocol_state.timestamps();
    let options = if known == TimestampOption::UNUSABLE {
        return;
    } else if known == TimestampOption::PRESENT && (segment.has_timestamps || !segment.flags.syn()) {
        if !rules.methods.has(Method::TcpTs)
            || !is_unusable(flow, from, segment, progress, now, rules.still_clock)
        {
            return;
        }
        flow.hot.protocol_state.give_up_timestamps(from);
        TimestampOption::UNUSABLE
    } else if segment.has_timestamps {
        TimestampOption::PRESENT
    } else if segment.flags.syn() {
        // An end that does not offer or accept timestamps here must not send them later (RFC 7323, 3.2).
        TimestampOption::ABSENT
    } else if known == TimestampOption::UNKNOWN {
        if flow.hot.protocol_state.count_without_timestamps() < SEGMENTS_WITHOUT_TIMESTAMPS {
            return;
        }
        TimestampOption::ABSENT
    } else {
        return;
    };
    if options == known {
        return;
    }
    if options != TimestampOption::UNUSABLE {
        flow.hot.protocol_state.set_timestamps(options);
    } else if !rules.methods.has(Method::TcpSeq) {
        // The other end is measured by its timestamps still.
        return;
    }
    // The pending identifiers are those of the other method.
    if known != TimestampOption::UNKNOWN && !rules.methods.has_both() {
        flow.clear_pending(Endpoint::Low);
        flow.clear_pending(Endpoint::High);
    }
}

/// Notes a segment of a flow with timestamps, and returns whether those of its sender cannot be used: they stopped, go back or
/// leap, or the clock behind them stands still.
#[inline(always)]
fn is_unusable<P: PendingLookup>(
    flow: &mut LockedFlow<'_, P>,
    from: Endpoint,
    segment: &Segment,
    progress: Progress,
    now: u64,
    still_clock: u64,
) -> bool {
    let opened_at = flow.locked.direction(from).opened_at;
    let recorded_at = flow.pending.entry().map_or(0, |entry| *from.of(&entry.recorded_at));
    let direction = *flow.hot.direction(from);
    // A closed direction has another time in place of the one when it opened.
    let is_open = direction.state.lifecycle() != Lifecycle::CLOSED;
    let state = &mut flow.hot.protocol_state;
    let (newest, tsval) = (direction.newest_tsval, segment.timestamps.tsval);
    let is_unseen = direction.state.tsval_state() == TsvalState::UNKNOWN;
    let is_lacking = if !segment.has_timestamps {
        if !direction.lacks_timestamps(segment, progress) {
            return false;
        }
        true
    } else if is_unseen || is_newer(tsval, newest) {
        // A clock that is set to 0 may stand still from then on. A SYN proxy has another clock than the host behind it,
        // which may stand still.
        let has_moved = !is_unseen && direction.state.is_established();
        // If both ends begin with 0, what they send later is not worth the wait.
        if segment.flags.syn() && segment.flags.ack() && segment.timestamps == Timestamps::ZERO {
            return true;
        }
        let began_at = if is_open { opened_at } else { flow.locked.beginning().1 };
        let elapsed = now.saturating_sub(began_at.max(recorded_at));
        let leaps = has_moved && tcp_ts::leaps(newest, tsval, elapsed);
        if !leaps {
            state.set_moved(from, has_moved && tsval != 0);
        }
        leaps
    } else if progress == Progress::Advance {
        if is_open && !state.has_moved(from) && now.saturating_sub(opened_at) >= still_clock {
            return true;
        }
        tsval != newest
    } else {
        // Segments that were reordered or sent again say nothing.
        return false;
    };
    let lacking = if is_lacking { state.lacking(from) + 1 } else { 0 };
    state.set_lacking(from, lacking);
    lacking >= SEGMENTS_WITHOUT_TIMESTAMPS
}

/// Whether the timestamps of an endpoint of a TCP flow never moved, so that only its part of the handshake was measured,
/// although it sent many segments. `packets` is what each endpoint sent, by [`Endpoint`].
///
/// Their clock stands still, or all of the flow fits into one of its ticks.
#[inline(always)]
pub fn has_still_timestamps(hot: &Hot, locked: &Locked, packets: [u64; 2], rules: &Rules) -> bool {
    let methods = rules.methods;
    let is_still = |endpoint: Endpoint| {
        *endpoint.of(&packets) >= MANY_SEGMENTS
            && locked.is_timed(endpoint, rules.include_local)
            && !hot.protocol_state.has_moved(endpoint)
            && !hot.state(endpoint).has_recorded()
    };
    methods.has(Method::TcpTs)
        && !methods.has_both()
        && hot.protocol_state.timestamps() == TimestampOption::PRESENT
        && hot.is_proved(Segment::NUMBER)
        && (is_still(Endpoint::Low) || is_still(Endpoint::High))
}

#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "as of the caller")]
pub(in crate::flow) fn plan<P: PendingLookup>(
    flow: &mut LockedFlow<'_, P>,
    from: Endpoint,
    segment: &Segment,
    progress: Progress,
    now: u64,
    timed: bool,
    rules: &Rules,
    pass: Pass,
    plan: &mut MatchPlan,
) {
    let (flags, methods) = (segment.flags, rules.methods);
    if flags.rst() {
        flow.give_up_leg(from);
        flow.give_up_leg(from.other());
        return;
    }
    let has_handshake = methods.has(Method::TcpHandshake);
    if has_handshake && pass == Pass::First {
        let mut leg = flow.leg(from.other());
        tcp_handshake::match_reply(&mut leg, segment, plan);
        flow.set_leg(from.other(), leg);
    }
    if pass == Pass::First {
        // A leg that begins takes the place of RTTs, which belong to an earlier connection.
        let mut leg = flow.leg(from);
        tcp_handshake::begin(&mut leg, segment, now, has_handshake && timed, rules.copy_within);
        flow.set_leg(from, leg);
        plan.asks_by_leg = u8::from(has_handshake & flags.syn());
    }
    // A SYN is timed by its leg alone.
    let is_left_to_legs = has_handshake && flags.syn();
    let gives_other = plan.completes_leg == 0;
    let options = flow.hot.protocol_state.timestamps();
    if is_by_seq(options, rules, pass) {
        if flags.ack() {
            plan.echoed = segment.acknowledgement;
            plan.freed_below = tcp_seq::REACH;
            if gives_other {
                plan.method = Method::TcpSeq;
                // Any number is ahead of half of all others, so it must be near what the other end has sent.
                let is_confirmed = flow.hot.state(from).is_confirmed();
                plan.sample_below = if segment.has_sack || !is_confirmed { 0 } else { tcp_seq::REACH };
            }
        }
        if segment.consumes_sequence_space() {
            if matches!(progress, Progress::First | Progress::Behind | Progress::Overlap) {
                // All identifiers: Karn's rule, see tcp_seq.
                plan.voided_span = 1 << 32;
            }
            if tcp_seq::is_first_sent(progress, flags) && !is_left_to_legs {
                plan.identifier = segment.sequence_end();
                plan.should_record = 1;
            }
        }
    } else if methods.has(Method::TcpTs) && pass == Pass::First && segment.has_timestamps {
        if flags.ack() {
            // TSecr does not go back, so an older TSval can never match.
            plan.echoed = segment.timestamps.tsecr;
            plan.freed_below = tcp_seq::REACH;
            if gives_other {
                plan.method = Method::TcpTs;
                plan.sample_below = 1;
            }
        }
        let is_lacking = flow.hot.protocol_state.lacking(from) != 0;
        let direction = flow.hot.direction_mut(from);
        if direction.repeats(segment, progress) {
            // Karn's rule: its echo may answer either of the two.
            plan.voided_from = segment.timestamps.tsval;
            plan.voided_span = 1;
            plan.may_be_copy = 1;
        }
        let mut state = direction.state.tsval_state();
        // A newer `TSval` ends the row of segments without a usable one, unless it leaps.
        if options == TimestampOption::PRESENT && is_lacking {
            return;
        }
        let identifier = tcp_ts::identifier(&mut direction.newest_tsval, &mut state, segment);
        direction.state.set_tsval_state(state);
        if let Some(tsval) = identifier
            && !is_left_to_legs
        {
            // It is the first with its TSval, so nothing that has this one is of its connection.
            plan.voided_span = 0;
            plan.identifier = tsval;
            plan.should_record = 1;
        }
    }
}

//! Which of the methods for TCP a segment is measured by.

use super::{direction::FlowDirection, state::Flow};
use crate::{
    limits::SEGMENTS_WITHOUT_TIMESTAMPS,
    method::Method,
    parse::Segment,
    rtt::{
        Effect, MatchPlan, Pass, PendingRange, Progress, Rules, TimestampOption, tcp_handshake, tcp_seq,
        tcp_ts,
    },
};

/// Whether the sequence numbers of a flow are timed in this pass.
#[inline(always)]
fn is_by_seq(options: TimestampOption, rules: &Rules, pass: Pass) -> bool {
    let methods = rules.methods;
    if methods.has_both() {
        pass == Pass::Second
    } else if methods.has_seq_always() {
        true
    } else {
        methods.has(Method::TcpSeq) && options == TimestampOption::Absent
    }
}

#[inline(always)]
pub(super) fn effect(
    options: TimestampOption,
    forward: &FlowDirection,
    reverse: &FlowDirection,
    segment: &Segment,
    progress: Progress,
    rules: &Rules,
) -> Effect {
    let methods = rules.methods;
    let expected = if segment.has_timestamps { TimestampOption::Present } else { TimestampOption::Absent };
    // Timestamps that are not there now and then, as on a keep-alive of some hosts, change nothing.
    if options != expected && options != TimestampOption::Present || segment.flags.rst() {
        return Effect::Anything;
    }
    if methods.has(Method::TcpHandshake) && tcp_handshake::has_effect(&reverse.leg, segment) {
        return Effect::Anything;
    }
    let pass = if methods.has_both() { Pass::Second } else { Pass::First };
    let mut effect = Effect::Nothing;
    if methods.has(Method::TcpTs) {
        effect = tcp_ts::effect(
            forward.newest_tsval,
            forward.tsval_state,
            &reverse.pending,
            PendingRange::of(methods, Pass::First),
            segment,
        );
    }
    if effect == Effect::Nothing && is_by_seq(options, rules, pass) {
        effect = tcp_seq::effect(
            &forward.pending,
            &reverse.pending,
            PendingRange::of(methods, pass),
            segment,
            progress,
        );
    }
    // A segment recorded by one method may be recorded by the other at the same time, whatever the limit.
    if methods.has_both() && effect != Effect::Nothing { Effect::Anything } else { effect }
}

/// Finds out whether a flow has timestamps.
#[inline(always)]
pub(super) fn note_options(flow: &mut Flow, segment: &Segment, rules: &Rules) {
    if segment.flags.rst() {
        return;
    }
    let options = if segment.has_timestamps {
        TimestampOption::Present
    } else if segment.flags.syn() {
        // An end that does not offer or accept them here must not send them later (RFC 7323, 3.2).
        TimestampOption::Absent
    } else if flow.timestamps == TimestampOption::Unknown {
        flow.without_timestamps += 1;
        if flow.without_timestamps < SEGMENTS_WITHOUT_TIMESTAMPS {
            return;
        }
        TimestampOption::Absent
    } else {
        return;
    };
    if options == flow.timestamps {
        return;
    }
    let is_other = flow.timestamps != TimestampOption::Unknown;
    flow.timestamps = options;
    // The pending identifiers are of the other kind.
    if is_other && !rules.methods.has_both() {
        flow.low.pending.clear();
        flow.high.pending.clear();
    }
}

#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "as of the caller")]
pub(super) fn plan(
    options: TimestampOption,
    forward: &mut FlowDirection,
    reverse: &mut FlowDirection,
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
        forward.leg.give_up();
        reverse.leg.give_up();
        return;
    }
    let has_handshake = methods.has(Method::TcpHandshake);
    if has_handshake && pass == Pass::First {
        tcp_handshake::match_reply(&mut reverse.leg, segment, plan);
        tcp_handshake::begin(&mut forward.leg, segment, now, timed);
    }
    // A SYN is timed by its leg alone.
    let is_left_to_legs = has_handshake && flags.syn();
    let gives_other = plan.completes_leg == 0;
    if is_by_seq(options, rules, pass) {
        if flags.ack() {
            plan.echoed = segment.acknowledgement;
            plan.freed_below = tcp_seq::REACH;
            if gives_other {
                plan.method = Method::TcpSeq;
                plan.sample_below = if segment.has_sack { 0 } else { tcp_seq::REACH };
            }
        }
        if segment.consumes_sequence_space() {
            if matches!(progress, Progress::First | Progress::Behind | Progress::Overlap) {
                // Every identifier: Karn's rule, as tcp_seq has it.
                plan.voided_span = 1 << 32;
            }
            if tcp_seq::is_first_sent(progress, flags) && !is_left_to_legs {
                plan.identifier = segment.sequence_end();
                plan.should_record = 1;
            }
        }
    } else if methods.has(Method::TcpTs) && pass == Pass::First && segment.has_timestamps {
        if flags.ack() {
            // TSecr does not go back, so what is older can never match.
            plan.echoed = segment.timestamps.tsecr;
            plan.freed_below = tcp_seq::REACH;
            if gives_other {
                plan.method = Method::TcpTs;
                plan.sample_below = 1;
            }
        }
        if let Some(tsval) = tcp_ts::identifier(&mut forward.newest_tsval, &mut forward.tsval_state, segment)
            && !is_left_to_legs
        {
            plan.identifier = tsval;
            plan.should_record = 1;
        }
    }
}

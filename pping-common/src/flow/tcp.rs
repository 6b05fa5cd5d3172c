//! Which of the methods for TCP a segment is measured by.

use super::{direction::FlowDirection, state::Flow};
use crate::{
    limits::SEGMENTS_WITHOUT_TIMESTAMPS,
    method::Method,
    parse::Segment,
    rtt::{Effect, Options, Part, Pass, Progress, Rules, Work, tcp_handshake, tcp_seq, tcp_ts},
};

/// Whether the sequence numbers of a flow are timed in this turn.
#[inline(always)]
fn is_by_seq(options: Options, rules: &Rules, pass: Pass) -> bool {
    let methods = rules.methods;
    if methods.has_both() {
        pass == Pass::Second
    } else if methods.has_seq_always() {
        true
    } else {
        methods.has(Method::TcpSeq) && options == Options::Without
    }
}

#[inline(always)]
pub(super) fn effect(
    options: Options,
    forward: &FlowDirection,
    reverse: &FlowDirection,
    segment: &Segment,
    progress: Progress,
    rules: &Rules,
) -> Effect {
    let methods = rules.methods;
    let expected = if segment.has_timestamps { Options::With } else { Options::Without };
    // Timestamps that are not there now and then, as on a keep-alive of some hosts, change nothing.
    if options != expected && options != Options::With || segment.flags.rst() {
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
            Part::of(methods, Pass::First),
            segment,
        );
    }
    if effect == Effect::Nothing && is_by_seq(options, rules, pass) {
        effect =
            tcp_seq::effect(&forward.pending, &reverse.pending, Part::of(methods, pass), segment, progress);
    }
    // What is recorded for the one may be recorded for the other at the same moment, whatever the limit.
    if methods.has_both() && effect != Effect::Nothing { Effect::Anything } else { effect }
}

/// Finds out whether a flow has timestamps.
#[inline(always)]
pub(super) fn note_options(flow: &mut Flow, segment: &Segment, rules: &Rules) {
    if segment.flags.rst() {
        return;
    }
    let options = if segment.has_timestamps {
        Options::With
    } else if segment.flags.syn() {
        // Who does not offer or accept them here must not send them later (RFC 7323, 3.2).
        Options::Without
    } else if flow.options == Options::Unknown {
        flow.without_timestamps += 1;
        if flow.without_timestamps < SEGMENTS_WITHOUT_TIMESTAMPS {
            return;
        }
        Options::Without
    } else {
        return;
    };
    if options == flow.options {
        return;
    }
    let is_other = flow.options != Options::Unknown;
    flow.options = options;
    // What waits has identifiers of the other kind.
    if is_other && !rules.methods.has_both() {
        flow.low.pending.clear();
        flow.high.pending.clear();
    }
}

#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "as of the caller")]
pub(super) fn plan(
    options: Options,
    forward: &mut FlowDirection,
    reverse: &mut FlowDirection,
    segment: &Segment,
    progress: Progress,
    now: u64,
    timed: bool,
    rules: &Rules,
    pass: Pass,
    work: &mut Work,
) {
    let (flags, methods) = (segment.flags, rules.methods);
    if flags.rst() {
        forward.leg.give_up();
        reverse.leg.give_up();
        return;
    }
    let has_handshake = methods.has(Method::TcpHandshake);
    if has_handshake && pass == Pass::First {
        tcp_handshake::match_reply(&mut reverse.leg, segment, work);
        tcp_handshake::begin(&mut forward.leg, segment, now, timed);
    }
    // What the legs time is not timed twice.
    let is_left_to_legs = has_handshake && flags.syn();
    let gives_other = work.replied == 0;
    if is_by_seq(options, rules, pass) {
        if flags.ack() {
            work.echoed = segment.acknowledgement;
            work.reach = tcp_seq::REACH;
            if gives_other {
                work.method = Method::TcpSeq;
                work.gives = if segment.has_sack { 0 } else { tcp_seq::REACH };
            }
        }
        if segment.consumes_sequence_space() {
            if matches!(progress, Progress::First | Progress::Behind | Progress::Overlap) {
                // Every identifier: Karn's rule, as tcp_seq has it.
                work.span = 1 << 32;
            }
            if tcp_seq::is_first_sent(progress, flags) && !is_left_to_legs {
                work.identifier = segment.sequence_end();
                work.records = 1;
            }
        }
    } else if methods.has(Method::TcpTs) && pass == Pass::First && segment.has_timestamps {
        if flags.ack() {
            // TSecr does not go back, so what is older can never match.
            work.echoed = segment.timestamps.tsecr;
            work.reach = tcp_seq::REACH;
            if gives_other {
                work.method = Method::TcpTs;
                work.gives = 1;
            }
        }
        if let Some(tsval) = tcp_ts::identifier(&mut forward.newest_tsval, &mut forward.tsval_state, segment)
            && !is_left_to_legs
        {
            work.identifier = tsval;
            work.records = 1;
        }
    }
}

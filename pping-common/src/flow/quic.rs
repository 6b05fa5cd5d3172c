//! QUIC packets and their flow, by the rules of [`rtt::quic`](crate::rtt).

use super::{key::Endpoint, state::Flow};
use crate::{
    method::Method,
    parse::{Quic, QuicForm},
    rtt::{Connection, LegState, MatchPlan, Rules, Spin, quic},
};

/// Whether a packet could change anything.
#[inline(always)]
pub(super) fn has_effect(flow: &Flow, from: Endpoint, quic: &Quic, rules: &Rules) -> bool {
    let (forward, reverse) = flow.both(from);
    if quic.form == QuicForm::Short {
        return forward.spin.is_changed(u8::from(quic.spin))
            && flow.connection.is_recognised()
            && rules.methods.has(Method::QuicSpin);
    }
    // A leg that was never begun has no number either, but then the direction has not sent anything yet.
    !flow.connection.is_recognised()
        || reverse.leg.is_pending()
        || forward.leg.is_pending()
        || forward.leg.state == LegState::Unseen
        || forward.leg.number != quic.source_id
}

/// Notes a packet that `from` sent, and what it completes.
#[inline(always)]
pub(super) fn plan(
    flow: &mut Flow,
    from: Endpoint,
    quic: &Quic,
    now: u64,
    rules: &Rules,
    plan: &mut MatchPlan,
) {
    if quic.form != QuicForm::Short {
        match_reply(flow, from, quic, plan);
        if quic.form != QuicForm::Negotiation {
            recognise(flow, from, quic);
            note_ids(flow, from, quic, now, rules);
        }
    } else if flow.connection.is_recognised() && rules.methods.has(Method::QuicSpin) {
        note_spin(flow, from, u8::from(quic.spin), now, rules, plan);
    }
}

/// Rule 4.
#[inline(always)]
fn match_reply(flow: &mut Flow, from: Endpoint, quic: &Quic, plan: &mut MatchPlan) {
    let (_, reverse) = flow.both_mut(from);
    let leg = &mut reverse.leg;
    if leg.is_pending() && leg.number == quic.destination_id {
        leg.state = LegState::Done;
        plan.method = Method::QuicHandshake;
        plan.recorded_at = leg.since;
        plan.matched = quic.version;
        plan.completes_leg = 1;
    }
}

/// Rule 1.
#[inline(always)]
fn recognise(flow: &mut Flow, from: Endpoint, quic: &Quic) {
    if flow.connection.is_recognised() {
        return;
    }
    let (_, reverse) = flow.both(from);
    // The side that has sent no long header has no source ID, which is as good as an empty one here.
    let is_answer = quic.destination_id != 0 && quic.destination_id == reverse.leg.number;
    if quic.is_known || is_answer && quic.version == flow.version {
        flow.connection = Connection::RECOGNISED;
    }
    flow.version = quic.version;
}

/// Rules 2, 3, 5 and 14.
#[inline(always)]
fn note_ids(flow: &mut Flow, from: Endpoint, quic: &Quic, now: u64, rules: &Rules) {
    let timed = flow.is_timed(from, rules.include_local);
    let (forward, reverse) = flow.both_mut(from);
    let leg = &mut forward.leg;
    let is_initial = quic.form == QuicForm::Initial;
    if leg.is_pending() {
        if is_initial && now.saturating_sub(leg.since) > quic::FLIGHT {
            leg.state = LegState::Void;
        }
        return;
    }
    let is_first = leg.state == LegState::Unseen;
    if is_first {
        let begins = is_initial && reverse.leg.state == LegState::Unseen;
        let waits = begins && timed && rules.methods.has(Method::QuicHandshake);
        leg.since = now;
        leg.state = if waits { LegState::Asked } else { LegState::Done };
    }
    if leg.number != quic.source_id {
        leg.number = quic.source_id;
        forward.spin.invalidate();
        reverse.spin.invalidate();
    }
}

/// Rules 6 to 13.
#[inline(always)]
fn note_spin(flow: &mut Flow, from: Endpoint, value: u8, now: u64, rules: &Rules, plan: &mut MatchPlan) {
    let timed = flow.is_timed(from.other(), rules.include_local);
    let mut connection = flow.connection;
    let (forward, reverse) = flow.both_mut(from);
    if !forward.spin.is_changed(value) {
        return;
    }
    if !forward.spin.has(Spin::SEEN) {
        forward.spin.state = Spin::SEEN | value;
        return;
    }
    if forward.spin.is_early(now) {
        if reverse.spin.has(Spin::EARLY) {
            forward.spin = Spin::UNSEEN;
            reverse.spin = Spin::UNSEEN;
            connection.lose(1);
        } else if !forward.spin.has(Spin::EARLY) {
            forward.spin.state |= Spin::EARLY;
            connection.lose(1);
        }
    } else if forward.spin.has(Spin::LATEST) {
        quic::breach(&mut forward.spin, &mut reverse.spin, &mut connection);
    } else {
        if reverse.spin.has(Spin::LATEST) {
            connection.gain();
        }
        quic::take_edge(&mut forward.spin, &mut reverse.spin, value, now, connection.is_believed(), plan);
        if timed && rules.allow(&reverse.rtt, now) {
            reverse.rtt.recorded_at = now;
            forward.spin.state |= Spin::RECORDED;
        }
    }
    flow.connection = connection;
}

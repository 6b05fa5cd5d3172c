//! Applies QUIC packets to their flow, by the rules of [`rtt::quic`](crate::rtt).

use crate::{
    flow::{
        key::Endpoint,
        memory::{
            hot::FlowSnapshot,
            locked::{LockedFlow, PendingLookup},
        },
    },
    method::Method,
    parse::{Quic, QuicForm},
    rtt::{Leg, LegState, MatchPlan, Rules, Spin, SpinTrust, quic},
};

/// Whether a packet could change anything. Long headers are few and most of them do, so all of them count.
#[inline(always)]
pub(in crate::flow) fn may_change(snapshot: &FlowSnapshot, quic: &Quic, rules: &Rules) -> bool {
    if quic.form != QuicForm::Short {
        return true;
    }
    Spin::would_change(snapshot.forward.state.spin(), u8::from(quic.spin))
        && snapshot.protocol_state.spin_trust().is_recognised()
        && rules.methods.has(Method::QuicSpin)
}

/// Notes a packet that `from` sent, and plans the sample that it completes.
#[inline(always)]
pub(in crate::flow) fn plan<P: PendingLookup>(
    flow: &mut LockedFlow<'_, P>,
    from: Endpoint,
    quic: &Quic,
    now: u64,
    rules: &Rules,
    plan: &mut MatchPlan,
) {
    let is_recognised = flow.hot.protocol_state.spin_trust().is_recognised();
    // Rule 1. Nothing says that such a packet is QUIC.
    if quic.is_greased && !is_recognised {
        return;
    }
    if quic.form != QuicForm::Short {
        match_reply(flow, from, quic, plan);
        if quic.form != QuicForm::Negotiation {
            recognise(flow, from, quic);
            note_ids(flow, from, quic, now, rules, plan);
        }
    } else if is_recognised && rules.methods.has(Method::QuicSpin) {
        note_spin(flow, from, u8::from(quic.spin), now, rules, plan);
    }
}

/// Applies rule 4.
#[inline(always)]
fn match_reply<P: PendingLookup>(
    flow: &mut LockedFlow<'_, P>,
    from: Endpoint,
    quic: &Quic,
    plan: &mut MatchPlan,
) {
    let mut leg = flow.leg(from.other());
    // In an unknown version, an empty ID says nothing.
    let is_to_source = leg.identifier == quic.destination_id
        && (leg.identifier != 0 || flow.hot.protocol_state.spin_trust().is_recognised());
    if leg.is_pending() && is_to_source {
        leg.state = LegState::DONE;
        // A reply begins with an Initial or a Retry. If it was missed, nothing says when it came.
        if quic.form != QuicForm::Long {
            plan.method = Method::QuicHandshake;
            plan.recorded_at = leg.since;
            plan.matched = quic.version;
            plan.completes_leg = 1;
        }
        flow.set_leg(from.other(), leg);
    }
}

/// Applies rule 1.
#[inline(always)]
fn recognise<P: PendingLookup>(flow: &mut LockedFlow<'_, P>, from: Endpoint, quic: &Quic) {
    if flow.hot.protocol_state.spin_trust().is_recognised() {
        return;
    }
    let [low, _] = &mut *flow.spin;
    let version = &mut low.interval;
    // An end that has sent no long header has no source ID, which counts as an empty one here.
    let is_answer =
        quic.destination_id != 0 && quic.destination_id == flow.locked.leg(from.other()).identifier;
    if quic.is_known || is_answer && quic.version == *version {
        // From now on the field has the measure of an interval.
        *version = 0;
        flow.hot.protocol_state.set_spin_trust(SpinTrust::RECOGNISED);
    } else {
        *version = quic.version;
    }
}

/// Applies rules 2, 3, 5, 5a and 14.
#[inline(always)]
fn note_ids<P: PendingLookup>(
    flow: &mut LockedFlow<'_, P>,
    from: Endpoint,
    quic: &Quic,
    now: u64,
    rules: &Rules,
    plan: &mut MatchPlan,
) {
    let timed = flow.is_timed(from, rules.include_local);
    let mut leg = flow.leg(from);
    let is_initial = quic.form == QuicForm::Initial;
    // While the leg is pending, it has a digest of the destination ID in place of TCP's payload.
    let destination = quic.destination_id as u16;
    let has_other_ids = leg.identifier != quic.source_id || leg.is_pending() && leg.payload != destination;
    let begins_anew = quic.begins.is_ok()
        && leg.state != LegState::UNSEEN
        && has_other_ids
        && flow.locked.beginning().0 == from;
    if begins_anew {
        leg.state = LegState::UNSEEN;
        flow.set_leg(from.other(), Leg::UNSEEN);
    }
    if leg.is_pending() {
        if is_initial && now.saturating_sub(leg.since) > quic::FLIGHT {
            leg.state = LegState::AMBIGUOUS;
            flow.set_leg(from, leg);
        }
        return;
    }
    if leg.state == LegState::UNSEEN {
        let begins = quic.begins.is_ok() && flow.leg(from.other()).state == LegState::UNSEEN;
        let asks = begins && rules.methods.has(Method::QuicHandshake);
        let waits = asks && timed;
        plan.asks_by_leg = u8::from(asks);
        leg.since = now;
        leg.payload = destination;
        leg.state = if waits { LegState::FIRST_PENDING } else { LegState::DONE };
    }
    if leg.identifier != quic.source_id {
        leg.identifier = quic.source_id;
        Endpoint::each(|endpoint| {
            let mut spin = flow.spin(endpoint);
            spin.invalidate();
            flow.set_spin(endpoint, spin);
        });
    }
    flow.set_leg(from, leg);
}

/// Applies rules 6 to 13.
#[inline(always)]
fn note_spin<P: PendingLookup>(
    flow: &mut LockedFlow<'_, P>,
    from: Endpoint,
    value: u8,
    now: u64,
    rules: &Rules,
    plan: &mut MatchPlan,
) {
    let timed = flow.is_timed(from.other(), rules.include_local);
    let mut trust = flow.hot.protocol_state.spin_trust();
    let (mut forward, mut reverse) = (flow.spin(from), flow.spin(from.other()));
    if !forward.is_changed(value) {
        return;
    }
    if !forward.has(Spin::SEEN) {
        forward.state = Spin::SEEN | value;
        flow.set_spin(from, forward);
        return;
    }
    if forward.is_early(now) {
        if reverse.has(Spin::EARLY) {
            forward = Spin::UNSEEN;
            reverse = Spin::UNSEEN;
            trust.lose(1);
        } else if !forward.has(Spin::EARLY) {
            forward.state |= Spin::EARLY;
            trust.lose(1);
        }
    } else if forward.has(Spin::LATEST) {
        quic::reject_out_of_turn(&mut forward, &mut reverse, &mut trust);
    } else {
        quic::judge_edge(&forward, &reverse, now, &mut trust);
        quic::take_edge(&mut forward, &mut reverse, value, now, trust.is_believed(), plan);
        if !timed {
            plan.to_this_host = u8::from(trust.is_believed());
        } else if rules.allow(&flow.quic_rtt(from.other()), now) {
            flow.set_quic_recorded_at(from.other(), now);
            forward.state |= Spin::RECORDED;
        }
    }
    flow.set_spin(from, forward);
    flow.set_spin(from.other(), reverse);
    flow.hot.protocol_state.set_spin_trust(trust);
}

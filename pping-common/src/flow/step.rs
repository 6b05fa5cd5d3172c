//! The steps of a packet in its flow: effect, follow, plan, find, record.

use super::{key::Endpoint, latest::Noted, lifecycle::Changes, quic, state::Flow, tcp, transitions};
use crate::{
    parse::{Kind, Transport},
    rtt::{self, Effect, MatchPlan, Measured, Pass, PendingRange, Rules, icmp_echo},
};

/// The outcome of a packet in its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The matches and recordings of the first pass.
    pub measured: Measured,
    /// The same of the second pass, by sequence numbers.
    pub second: Measured,
    /// The directions that it opened and closed.
    pub changes: Changes,
}

impl Flow {
    /// The possible effect of [`Flow::step`]. Most packets have none and end here, before a lock is taken or a clock is read.
    #[inline(always)]
    pub fn effect(&self, from: Endpoint, transport: &Transport, noted: &Noted, rules: &Rules) -> Effect {
        let (forward, reverse) = self.both(from);
        if transitions::has_effect(forward, reverse, transport) {
            return Effect::Anything;
        }
        let is_any = match transport.kind {
            Kind::Tcp => {
                let segment = &transport.segment;
                return tcp::effect(self.timestamps, forward, reverse, segment, noted.progress, rules);
            }
            // Echoes are so few that looking twice costs more than it saves.
            Kind::Echo => true,
            Kind::Quic => quic::has_effect(self, from, &transport.datagram.quic, rules),
            Kind::Dns => false,
        };
        if is_any { Effect::Anything } else { Effect::Nothing }
    }

    /// Whether a segment of [`Effect::Tsval`] or [`Effect::Sequence`] that `from` sent before `end` (ns) cannot be recorded:
    /// there is nothing in it to acknowledge, or the last recording is not long enough ago. Then [`Flow::step`] would
    /// change nothing but the newest `TSval`. `false` if a packet was missed, which [`Flow::step`] takes into account.
    #[inline(always)]
    pub fn is_rate_limited(&self, from: Endpoint, transport: &Transport, end: u64, rules: &Rules) -> bool {
        self.contended == 0
            && (!transport.segment.consumes_sequence_space() || rules.forbid(&self.direction(from).rtt, end))
    }

    /// Takes one packet that `from` sent at `now` (ns of a monotonic clock, not 0), after [`FlowDirection::note`]: follows the
    /// flow's life, matches what the packet echoes and records what will be echoed. A pure function but for the flow itself.
    #[inline(always)]
    pub fn step(
        &mut self,
        from: Endpoint,
        transport: &Transport,
        noted: &Noted,
        now: u64,
        rules: &Rules,
    ) -> Outcome {
        let changes = self.follow(from, transport, now);
        let mut outcome = Outcome { changes, measured: Measured::NOTHING, second: Measured::NOTHING };
        let mut plan = MatchPlan::NOTHING;
        for (pass, measured) in [(Pass::First, &mut outcome.measured), (Pass::Second, &mut outcome.second)] {
            if pass == Pass::First || rules.methods.has_both() && transport.kind == Kind::Tcp {
                self.plan(from, transport, noted, now, rules, pass, &mut plan);
                self.find(from, now, rules, pass, &mut plan, measured);
                self.record(from, now, rules, pass, &plan, measured);
            }
        }
        outcome
    }

    /// The first part of [`Flow::step`]: what the packet opens and closes.
    #[inline(always)]
    pub fn follow(&mut self, from: Endpoint, transport: &Transport, now: u64) -> Changes {
        if self.contended != 0 {
            self.contended = 0;
            self.invalidate();
        }
        let (forward, reverse) = self.both_mut(from);
        let changes = transitions::step(forward, reverse, transport, now);
        if changes.opened {
            self.closed_at = 0;
        }
        if changes.closed_last {
            self.closed_at = now;
            self.closed_by = changes.closed_by;
        }
        changes
    }

    /// Invalidates what packets that were missed may have changed: each may have been the echo of any pending identifier, or the first
    /// of its tick.
    #[inline(always)]
    fn invalidate(&mut self) {
        for direction in [&mut self.low, &mut self.high] {
            direction.pending.clear();
            direction.tsval_state.invalidate();
            direction.leg.give_up();
            direction.spin.invalidate();
        }
    }

    /// Invalidates every time, since the clock was set back.
    pub fn set_clock_back(&mut self) {
        self.invalidate();
        self.low.rtt.recorded_at = 0;
        self.high.rtt.recorded_at = 0;
    }

    /// The second part of [`Flow::step`]: what is to be done to measure, in a pass.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "they are what a packet is measured by")]
    pub fn plan(
        &mut self,
        from: Endpoint,
        transport: &Transport,
        noted: &Noted,
        now: u64,
        rules: &Rules,
        pass: Pass,
        plan: &mut MatchPlan,
    ) {
        plan.begin(pass);
        let timed = self.is_timed(from, rules.include_local);
        match transport.kind {
            Kind::Tcp => {
                let segment = &transport.segment;
                if pass == Pass::First {
                    tcp::note_options(self, segment, rules);
                }
                let options = self.timestamps;
                let (forward, reverse) = self.both_mut(from);
                tcp::plan(options, forward, reverse, segment, noted.progress, now, timed, rules, pass, plan);
            }
            Kind::Echo => icmp_echo::plan(&transport.echo, plan),
            Kind::Quic => quic::plan(self, from, &transport.datagram.quic, now, rules, plan),
            Kind::Dns => {}
        }
        if !timed {
            plan.should_record = 0;
        }
    }

    /// The third part of [`Flow::step`]: what the packet echoes.
    #[inline(always)]
    pub fn find(
        &mut self,
        from: Endpoint,
        now: u64,
        rules: &Rules,
        pass: Pass,
        plan: &mut MatchPlan,
        measured: &mut Measured,
    ) {
        let (_, reverse) = self.both_mut(from);
        rtt::find(
            &mut reverse.pending,
            &mut reverse.rtt,
            now,
            PendingRange::of(rules.methods, pass),
            plan,
            measured,
        );
    }

    /// The last part of [`Flow::step`]: what is to be echoed.
    #[inline(always)]
    pub fn record(
        &mut self,
        from: Endpoint,
        now: u64,
        rules: &Rules,
        pass: Pass,
        plan: &MatchPlan,
        measured: &mut Measured,
    ) {
        let (forward, _) = self.both_mut(from);
        rtt::record(
            &mut forward.pending,
            &mut forward.rtt,
            now,
            PendingRange::of(rules.methods, pass),
            rules,
            plan,
            measured,
        );
    }
}

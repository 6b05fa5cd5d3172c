//! The steps of a packet in its flow: effect, follow, plan, find, record.

use super::{
    hot::Glance,
    key::Endpoint,
    lifecycle::Changes,
    locked::{LockedFlow, PendingLookup},
    quic,
    state::Flow,
    tcp, transitions,
};
use crate::{
    parse::{Datagram, Kind, Transport},
    rtt::{
        self, Effect, MatchPlan, Measured, Pass, PendingRange, Progress, RttSummary, Rules, Waiting,
        icmp_echo,
    },
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

impl Glance {
    /// The possible effect of [`LockedFlow::step`] on a packet that `from` sent. Most packets have none and end here, before a lock is
    /// taken or a clock is read. `waiting` gives what is pending of a direction whose state says that something is.
    #[inline(always)]
    pub fn effect<W: Waiting>(
        &self,
        from: Endpoint,
        transport: &Transport,
        progress: Progress,
        rules: &Rules,
        waiting: impl Fn(Endpoint) -> Option<W>,
    ) -> Effect {
        if transitions::has_effect(self.forward.state, self.reverse, transport) {
            return Effect::Anything;
        }
        let is_any = match transport.kind {
            Kind::Tcp => return tcp::effect(self, from, &transport.segment, progress, rules, waiting),
            // Echoes are so few that looking twice costs more than it saves.
            Kind::Echo => true,
            Kind::Quic => quic::has_effect(self, &transport.datagram.quic, rules),
            Kind::Dns => false,
        };
        if is_any { Effect::Anything } else { Effect::Nothing }
    }

    /// Whether a segment of [`Effect::Tsval`] or [`Effect::Sequence`] cannot be recorded: there is nothing in it to
    /// acknowledge, or the last recording is not long enough before `end` (ns), where the time is at most that. Then
    /// [`LockedFlow::step`] would change nothing but the newest `TSval`. `false` if a packet was missed, which the step takes into
    /// account.
    #[inline(always)]
    pub fn is_rate_limited(&self, transport: &Transport, end: Option<u64>, rules: &Rules) -> bool {
        self.contended == 0
            && (!transport.segment.consumes_sequence_space()
                || end.is_some_and(|end| self.forward.state.has_recorded_within(rules.rate_limit, end)))
    }
}

impl Flow {
    /// The possible effect of [`Flow::step`].
    #[inline]
    pub fn effect(&self, from: Endpoint, transport: &Transport, progress: Progress, rules: &Rules) -> Effect {
        self.hot
            .glance(from)
            .effect(from, transport, progress, rules, |endpoint| Some(self.pending(endpoint)))
    }

    /// [`LockedFlow::step`] of this flow.
    #[inline]
    pub fn step(
        &mut self,
        from: Endpoint,
        transport: &Transport,
        progress: Progress,
        now: u64,
        rules: &Rules,
    ) -> Outcome {
        self.lock().step(from, transport, progress, now, rules)
    }

    /// Invalidates every time, since the clock was set back. `number` is the flow's IP protocol number.
    pub fn set_clock_back(&mut self, number: u8) {
        let is_udp = number == Datagram::NUMBER;
        let mut locked = self.lock();
        locked.invalidate(is_udp);
        for endpoint in [Endpoint::Low, Endpoint::High] {
            if is_udp {
                locked.set_quic_recorded_at(endpoint, 0);
            } else {
                locked.set_recorded_at(endpoint, 0);
            }
        }
    }
}

impl<P: PendingLookup> LockedFlow<'_, P> {
    /// Takes one packet that `from` sent at `now` (ns of a monotonic clock, not 0), after it was counted, which gave its `progress`: follows the
    /// flow's life, matches what the packet echoes and records what will be echoed. A pure function but for the flow itself.
    #[inline(always)]
    pub fn step(
        &mut self,
        from: Endpoint,
        transport: &Transport,
        progress: Progress,
        now: u64,
        rules: &Rules,
    ) -> Outcome {
        self.settle(transport.number() == Datagram::NUMBER);
        let changes = self.follow(from, transport, now);
        let mut outcome = Outcome { changes, measured: Measured::NOTHING, second: Measured::NOTHING };
        let mut plan = MatchPlan::NOTHING;
        for (pass, measured) in [(Pass::First, &mut outcome.measured), (Pass::Second, &mut outcome.second)] {
            if pass == Pass::First || rules.methods.has_both() && transport.kind == Kind::Tcp {
                self.plan(from, transport, progress, now, rules, pass, &mut plan);
                self.find(from, now, rules, pass, &mut plan, measured);
                self.record(from, now, rules, pass, &plan, measured);
            }
        }
        outcome
    }

    /// The first part of [`LockedFlow::step`]: takes into account that packets were missed, if some were.
    #[inline(always)]
    pub fn settle(&mut self, is_udp: bool) {
        if self.hot.contended != 0 {
            self.hot.contended = 0;
            self.invalidate(is_udp);
        }
    }

    /// The second part of [`LockedFlow::step`]: what the packet opens and closes.
    #[inline(always)]
    pub fn follow(&mut self, from: Endpoint, transport: &Transport, now: u64) -> Changes {
        transitions::step(self, from, transport, now)
    }

    /// Invalidates what packets that were missed may have changed: each may have been the echo of any pending identifier, or the first
    /// of its tick.
    #[inline(always)]
    fn invalidate(&mut self, is_udp: bool) {
        Endpoint::each(|endpoint| {
            self.give_up_leg(endpoint);
            // A flow of UDP has its spin bit in place of what others have.
            if is_udp {
                let mut spin = self.spin(endpoint);
                spin.invalidate();
                self.set_spin(endpoint, spin);
            } else {
                self.clear_pending(endpoint);
                let state = &mut self.hot.direction_mut(endpoint).state;
                let mut tsval = state.tsval_state();
                tsval.invalidate();
                state.set_tsval_state(tsval);
            }
        });
    }

    /// The third part of [`LockedFlow::step`]: what is to be done to measure, in a pass.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "they are what a packet is measured by")]
    pub fn plan(
        &mut self,
        from: Endpoint,
        transport: &Transport,
        progress: Progress,
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
                    if progress == Progress::First {
                        self.hot.direction_mut(from).state.set_has_sequence();
                    }
                }
                tcp::plan(self, from, segment, progress, now, timed, rules, pass, plan);
            }
            Kind::Echo => icmp_echo::plan(&transport.echo, plan),
            Kind::Quic => quic::plan(self, from, &transport.datagram.quic, now, rules, plan),
            Kind::Dns => {}
        }
        if !timed {
            plan.should_record = 0;
        }
    }

    /// The fourth part of [`LockedFlow::step`]: what the packet echoes.
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
        let reverse = from.other();
        // In this order: a flow of QUIC has its spin bit where others note that something waits.
        if plan.freed_below != 0
            && self.hot.state(reverse).is_waiting()
            && let Some(entry) = self.pending.entry()
        {
            let pending = reverse.of_mut(&mut entry.directions);
            pending.free_echoed(PendingRange::of(rules.methods, pass), plan);
            let is_waiting = pending.is_waiting();
            self.hot.direction_mut(reverse).state.set_waiting(is_waiting);
        }
        rtt::take_sample(now, plan, measured);
        if measured.has_sample {
            let (min, smoothed) = self.locked.rtts(reverse);
            // If other packets are echoed, the reply to the handshake was missed.
            if self.hot.state(reverse).is_leg_pending() {
                self.give_up_leg(reverse);
            }
            let mut rtt = RttSummary { recorded_at: 0, min, smoothed };
            rtt.take_sample(measured.sample.rtt);
            self.locked.set_rtts(reverse, (rtt.min, rtt.smoothed));
        }
    }

    /// The last part of [`LockedFlow::step`]: what is to be echoed.
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
        if plan.voided_span == 0 && plan.should_record == 0 {
            return;
        }
        let (min, smoothed) = self.locked.rtts(from);
        let Some(entry) = self.pending.entry() else { return };
        let recorded_at = *from.of(&entry.recorded_at);
        let rtt = RttSummary { recorded_at, min, smoothed };
        let pending = from.of_mut(&mut entry.directions);
        let range = PendingRange::of(rules.methods, pass);
        let is_recorded = rtt::record(pending, &rtt, now, range, rules, plan, measured);
        let is_waiting = pending.is_waiting();
        let state = &mut self.hot.direction_mut(from).state;
        state.set_waiting(is_waiting);
        if is_recorded {
            *from.of_mut(&mut entry.recorded_at) = now;
            state.set_recorded_at(now);
        }
    }
}

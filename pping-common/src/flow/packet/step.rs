//! The steps of a packet in its flow: possible change, lifecycle, plan, find, record.

use crate::{
    flow::{
        key::Endpoint,
        memory::{
            hot::FlowSnapshot,
            lifecycle::Changes,
            locked::{LockedFlow, PendingLookup},
            protocol_state::ProtocolState,
        },
        packet::{quic, tcp, transitions, window},
    },
    method::Method,
    parse::{Datagram, Kind, Transport},
    rtt::{
        self, MatchPlan, Measured, Pass, PendingIdentifiers, PendingRange, PossibleChange, Progress,
        RttSummary, Rules, TsvalState, icmp_echo,
    },
};

/// The outcome of a packet in its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The matches and recordings of the first pass.
    pub measured: Measured,
    /// The same for the second pass, by sequence numbers.
    pub second: Measured,
    /// The directions that the packet opened and closed.
    pub changes: Changes,
    /// Whether the other end would not take the packet, so that it changes nothing.
    pub is_refused: bool,
}

impl Outcome {
    pub(in crate::flow) const NOTHING: Self = Self {
        measured: Measured::NOTHING,
        second: Measured::NOTHING,
        changes: Changes::NONE,
        is_refused: false,
    };
}

impl FlowSnapshot {
    /// Returns what [`LockedFlow::step`] could change for a packet that `from` sent. Most packets have no effect and end
    /// here, before a lock is taken or a clock is read. `pending` returns the pending timestamps of a direction. It is
    /// called only if the direction's state says that it has some. `outside_end` returns [`crate::flow::Events::outside_end`] of the other
    /// direction. `is_expected` is as in [`crate::flow::count`].
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "they are what a packet is measured by")]
    pub fn possible_change<W: PendingIdentifiers>(
        &self,
        from: Endpoint,
        transport: &Transport,
        progress: Progress,
        rules: &Rules,
        pending: impl Fn(Endpoint) -> Option<W>,
        outside_end: impl FnOnce() -> u32,
        is_expected: bool,
    ) -> PossibleChange {
        if progress.untracked().is_some() {
            // That there are copies is written under the lock.
            let is_first_copy = progress == Progress::Elsewhere && !self.forward.state.is_forwarded();
            return if is_first_copy { PossibleChange::Anything } else { PossibleChange::Nothing };
        }
        if transitions::may_change(self.forward.state, self.reverse, transport)
            || transport.kind == Kind::Tcp
                && !is_expected
                && (progress == Progress::Replaces
                    || self.may_confirm(&transport.segment)
                    || self.confirms_outside(&transport.segment, outside_end))
        {
            return PossibleChange::Anything;
        }
        let is_any = match transport.kind {
            Kind::Tcp => {
                return tcp::possible_change(self, from, &transport.segment, progress, rules, pending);
            }
            // Echoes are so few that a check costs more than it saves.
            Kind::Echo => true,
            Kind::Quic => quic::may_change(self, &transport.datagram.quic, rules),
            Kind::Dns => false,
        };
        if is_any { PossibleChange::Anything } else { PossibleChange::Nothing }
    }

    /// Whether no method measures a segment because the timestamps of its sender cannot be used. Segments without timestamps
    /// are counted as such.
    #[inline(always)]
    pub fn is_without_method(&self, from: Endpoint, transport: &Transport, rules: &Rules) -> bool {
        transport.kind == Kind::Tcp
            && !rules.methods.has(Method::TcpSeq)
            && self.protocol_state.has_unusable(from)
            && transport.segment.has_timestamps
            && transport.segment.consumes_sequence_space()
    }

    /// True if a segment of [`PossibleChange::Tsval`] or [`PossibleChange::Sequence`] cannot be recorded: it has nothing to acknowledge,
    /// or the rate limit still forbids it at `end`, ns, a time not before the segment's. Then [`LockedFlow::step`] would
    /// change nothing but the newest `TSval`. False if a packet was missed, because the step has to take that into
    /// account.
    #[inline(always)]
    pub fn is_rate_limited(&self, transport: &Transport, end: Option<u64>, rules: &Rules) -> bool {
        self.contended == 0
            && (!transport.segment.consumes_sequence_space()
                || end.is_some_and(|end| self.forward.state.has_recorded_within(rules.rate_limit, end)))
    }
}

impl<P: PendingLookup> LockedFlow<'_, P> {
    /// Applies a packet that `from` sent at `now` (ns of a monotonic clock, not 0). `progress` comes from counting the
    /// packet, and `outside_end` is [`crate::flow::Events::outside_end`] of the other direction. The step follows the flow's life, matches
    /// what the packet echoes, and records what will be echoed. It changes nothing but the flow.
    #[inline(always)]
    pub fn step(
        &mut self,
        from: Endpoint,
        transport: &Transport,
        mut progress: Progress,
        outside_end: u32,
        now: u64,
        rules: &Rules,
    ) -> Outcome {
        self.confirm(from, transport, outside_end);
        self.invalidate_if_missed(transport.number() == Datagram::NUMBER);
        self.settle(from, transport, &mut progress, now);
        let mut outcome = Outcome {
            measured: Measured::NOTHING,
            second: Measured::NOTHING,
            changes: Changes::NONE,
            is_refused: progress == Progress::Refused,
        };
        if outcome.is_refused {
            return outcome;
        }
        outcome.changes = self.update_lifecycle(from, transport, now);
        let mut plan = MatchPlan::NOTHING;
        for (pass, measured) in [(Pass::First, &mut outcome.measured), (Pass::Second, &mut outcome.second)] {
            if pass == Pass::First || rules.methods.has_both() && transport.kind == Kind::Tcp {
                if pass == Pass::First && transport.kind == Kind::Tcp {
                    self.note_segment(from, transport, progress, now, rules);
                }
                self.plan(from, transport, progress, now, rules, pass, &mut plan);
                if transport.kind == Kind::Echo {
                    self.free_answered_echo(from, &mut plan);
                    self.limit_echo(from, now, rules, &mut plan);
                }
                self.find(from, now, rules, pass, &mut plan, measured);
                if transport.kind == Kind::Echo {
                    self.free_repeated_echo(now, rules, &mut plan, measured);
                    self.push_echo(now, &mut plan, measured);
                    self.keep_echo(from, now, rules, &plan, measured);
                    self.note_pending_echoes();
                } else {
                    self.void(from, now, rules, pass, &mut plan);
                    self.record(from, now, rules, pass, &plan, measured);
                }
            }
        }
        outcome
    }

    /// Runs the first part of [`LockedFlow::step`]: lets the other direction continue outside of its window, if the packet
    /// confirms it.
    #[inline(always)]
    pub fn confirm(&mut self, from: Endpoint, transport: &Transport, outside_end: u32) {
        if transport.kind == Kind::Tcp {
            window::confirm(self.hot, from, &transport.segment, outside_end);
        }
    }

    /// Whether [`LockedFlow::confirm`] asks where the latest segment of the other direction ended that lies outside of the
    /// window.
    #[inline(always)]
    pub fn needs_outside_end(&self, from: Endpoint, transport: &Transport) -> bool {
        transport.kind == Kind::Tcp && self.hot.snapshot(from).may_confirm_outside(&transport.segment)
    }

    /// Runs the second part of [`LockedFlow::step`]: takes into account that packets were missed, if any were.
    #[inline(always)]
    pub fn invalidate_if_missed(&mut self, is_udp: bool) {
        if self.hot.contended != 0 {
            self.hot.contended = 0;
            self.invalidate(is_udp);
        }
    }

    /// Runs the third part of [`LockedFlow::step`]: begins another connection, corrects the progress of a SYN, or says that
    /// the other end would not take the packet. Then none of the other parts follows.
    #[inline(always)]
    pub fn settle(&mut self, from: Endpoint, transport: &Transport, progress: &mut Progress, now: u64) {
        transitions::settle(self, from, transport, progress, now);
    }

    /// Runs the fourth part of [`LockedFlow::step`]: opens and closes directions.
    #[inline(always)]
    pub fn update_lifecycle(&mut self, from: Endpoint, transport: &Transport, now: u64) -> Changes {
        transitions::step(self, from, transport, now)
    }

    /// Invalidates the state that missed packets may have changed: each may have been the echo of any pending identifier,
    /// or the first of its tick.
    #[inline(always)]
    pub(in crate::flow) fn invalidate(&mut self, is_udp: bool) {
        Endpoint::each(|endpoint| {
            self.give_up_leg(endpoint);
            // A UDP flow has the spin bit in place of pending timestamps and TSval state.
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

    /// Forgets what was learned of a TCP flow that is not confirmed: it may be forged.
    #[inline(always)]
    pub(in crate::flow) fn forget_unconfirmed(&mut self) {
        Endpoint::each(|endpoint| {
            self.give_up_leg(endpoint);
            self.set_recorded_at(endpoint, 0);
            self.hot.direction_mut(endpoint).state.set_window_scale(0);
        });
        self.forget_timestamps();
    }

    /// Forgets what was learned of the timestamps of a TCP flow, and what is pending.
    #[inline(always)]
    pub(in crate::flow) fn forget_timestamps(&mut self) {
        Endpoint::each(|endpoint| {
            self.clear_pending(endpoint);
            self.hot.direction_mut(endpoint).state.set_tsval_state(TsvalState::UNKNOWN);
        });
        self.hot.protocol_state = ProtocolState::UNKNOWN;
    }

    /// Runs the fifth part of [`LockedFlow::step`]: notes what a segment says of the timestamps of its flow, and that its
    /// direction has sent it.
    #[inline(always)]
    pub fn note_segment(
        &mut self,
        from: Endpoint,
        transport: &Transport,
        progress: Progress,
        now: u64,
        rules: &Rules,
    ) {
        window::note_knowledge(self, from, &transport.segment);
        tcp::note_options(self, from, &transport.segment, progress, now, rules);
        let state = &mut self.hot.direction_mut(from).state;
        if progress == Progress::First {
            state.set_has_sequence();
        }
        if transport.segment.flags.syn() && progress != Progress::None {
            state.set_window_scale(transport.segment.window_scale);
        }
        if !transport.segment.flags.syn() {
            state.set_established();
        }
    }

    /// Runs the sixth part of [`LockedFlow::step`]: plans the measuring of a pass.
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
                tcp::plan(self, from, &transport.segment, progress, now, timed, rules, pass, plan);
            }
            Kind::Echo if pass == Pass::First => icmp_echo::plan(from as u32, &transport.echo, plan),
            Kind::Quic if pass == Pass::First => {
                quic::plan(self, from, &transport.datagram.quic, now, rules, plan);
            }
            Kind::Echo | Kind::Quic | Kind::Dns => {}
        }
        if !timed {
            plan.to_this_host |= plan.should_record as u8 | plan.asks_by_leg;
            plan.should_record = 0;
        }
    }

    /// Runs the seventh part of [`LockedFlow::step`]: finds what the packet echoes, and takes the sample.
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
        // `freed_below` is checked first: a QUIC flow has its spin bit where other flows have the flag for pending
        // timestamps.
        if plan.freed_below != 0
            && self.hot.state(reverse).has_pending()
            && let Some(entry) = self.pending.entry()
        {
            let pending = reverse.of_mut(&mut entry.directions);
            pending.free_echoed(PendingRange::of(rules.methods, pass), plan);
            let has_pending = pending.has_pending();
            self.hot.direction_mut(reverse).state.set_has_pending(has_pending);
        }
        rtt::take_sample(now, plan, measured);
        if measured.has_sample {
            let (min, smoothed) = self.locked.rtts(reverse);
            // If other packets are echoed, the reply to the handshake was missed, or a SYN is not what the other end answers.
            self.give_up_leg(reverse);
            let mut rtt = RttSummary { recorded_at: 0, min, smoothed };
            rtt.take_sample(measured.sample.rtt);
            self.locked.set_rtts(reverse, (rtt.min, rtt.smoothed));
        }
    }

    /// Runs the eighth part of [`LockedFlow::step`]: frees what the packet makes ambiguous.
    #[inline(always)]
    pub fn void(&mut self, from: Endpoint, now: u64, rules: &Rules, pass: Pass, plan: &mut MatchPlan) {
        if plan.voided_span == 0 || !self.hot.state(from).has_pending() {
            return;
        }
        let (min, smoothed) = self.locked.rtts(from);
        let Some(entry) = self.pending.entry() else { return };
        let rtt = RttSummary { recorded_at: 0, min, smoothed };
        let pending = from.of_mut(&mut entry.directions);
        rtt::void(pending, &rtt, now, PendingRange::of(rules.methods, pass), rules, plan);
    }

    /// Runs the last part of [`LockedFlow::step`]: records what will be echoed.
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
        let has_pending = is_recorded || pending.has_pending();
        let state = &mut self.hot.direction_mut(from).state;
        state.set_has_pending(has_pending);
        if is_recorded {
            *from.of_mut(&mut entry.recorded_at) = now;
            state.set_recorded_at(now);
        }
    }

    /// For an echo reply, frees the request that it answers. The steps of echoes are apart from each other for the
    /// verifier, which follows each of them once.
    #[inline(always)]
    pub fn free_answered_echo(&mut self, from: Endpoint, plan: &mut MatchPlan) {
        if plan.freed_below != 0
            && self.hot.state(from.other()).has_pending()
            && let Some(entry) = self.pending.entry()
        {
            icmp_echo::free_answered(entry, plan);
        }
        // The step that finds the echoes of other methods has nothing to free.
        plan.freed_below = 0;
    }

    /// For an echo reply, applies the limits.
    #[inline(always)]
    pub fn limit_echo(&mut self, from: Endpoint, now: u64, rules: &Rules, plan: &mut MatchPlan) {
        let reverse = from.other();
        let (min, smoothed) = self.locked.rtts(reverse);
        if let Some(entry) = self.pending.entry() {
            icmp_echo::limit(reverse.of_mut(&mut entry.recorded_at), [min, smoothed], now, rules, plan);
        }
    }

    /// For an echo request, takes into account that a request with its number may be pending.
    #[inline(always)]
    pub fn free_repeated_echo(
        &mut self,
        now: u64,
        rules: &Rules,
        plan: &mut MatchPlan,
        measured: &mut Measured,
    ) {
        if plan.should_record != 0
            && let Some(entry) = self.pending.entry()
        {
            icmp_echo::free_repeated(entry, now, rules, plan, measured);
        }
    }

    /// Records an echo request among the latest. Apart from [`LockedFlow::free_repeated_echo`]: there the verifier follows
    /// every combination of slots that are freed or not.
    #[inline(always)]
    pub fn push_echo(&mut self, now: u64, plan: &mut MatchPlan, measured: &mut Measured) {
        // It is 0 if nothing is pushed out.
        plan.recorded_at = 0;
        if plan.should_record != 0
            && let Some(entry) = self.pending.entry()
        {
            icmp_echo::push(entry, now, plan, measured);
        }
    }

    /// Keeps the echo request that was pushed out of the latest, if there is room for it.
    #[inline(always)]
    pub fn keep_echo(
        &mut self,
        from: Endpoint,
        now: u64,
        rules: &Rules,
        plan: &MatchPlan,
        measured: &mut Measured,
    ) {
        let (min, smoothed) = self.locked.rtts(from);
        if let Some(entry) = self.pending.entry() {
            icmp_echo::keep(entry, [min, smoothed], now, rules, plan, measured);
        }
    }

    /// Notes whether any echo request is pending. Both directions have them in one place.
    #[inline(always)]
    pub fn note_pending_echoes(&mut self) {
        let has_pending = self.pending.entry().is_some_and(|entry| icmp_echo::has_pending(entry));
        Endpoint::each(|endpoint| self.hot.direction_mut(endpoint).state.set_has_pending(has_pending));
    }
}

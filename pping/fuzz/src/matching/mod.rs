//! Any packets of a few flows, at any times, through the matching state machine.

mod input;

use pping_common::{
    flow::{Changes, Counted, Endpoint, Facts, Flow, Lifecycle, Locked, Outcome},
    limits::{CLOSED_IDLE_SECONDS, IDLE_SECONDS, PENDING_PER_DIRECTION},
    model::{Found, Model, State},
    parse::Transport,
    rtt::{Measured, PossibleChange, Rules},
};

use self::input::{Event, Input};

pub use self::input::{FLOWS, HEADER, RECORD};

/// A recording is never taken for a recent one before it is this old, ns.
const LONG_AGO: u64 = 1 << 38;

/// Sends packets through the flows.
///
/// # Panics
/// If a flow differs from [`pping_common::model`], if a sample is below the flow's lowest RTT, if more timestamps are
/// pending than there is room for, if a packet without effect changes a flow, or if openings and closings of a flow do
/// not alternate.
pub fn check(input: &[u8]) {
    let Some(input) = Input::decode(input) else { return };
    let rules = input.rules;
    let mut flows: [FlowUnderTest; FLOWS] =
        input.local.map(|local| FlowUnderTest::new(local, rules, input.sweeps));
    let mut sweeps = input.sweeps;
    for event in input.events() {
        match event {
            Event::Packet { flow, from, now, transport } => {
                flows[flow].last_seen = sweeps;
                flows[flow].packet(from, now, &transport);
            }
            Event::Contention { flow } => flows[flow].miss_packet(),
            Event::ClockSetBack => flows.iter_mut().for_each(FlowUnderTest::set_clock_back),
            Event::Sweep { seconds } => {
                sweeps = sweeps.wrapping_add(seconds);
                for flow in &mut flows {
                    flow.sweep(sweeps);
                }
            }
        }
    }
}

/// A flow, and its expected state.
struct FlowUnderTest {
    flow: Flow,
    /// Bit 0 says that the low endpoint is an address of this host, bit 1 the high one.
    local: u32,
    /// The sweep number at its latest packet.
    last_seen: u32,
    rules: Rules,
    model: Model,
    /// How many openings of flows and of flow directions were reported without a closing so far.
    open_flows: i32,
    open_directions: i32,
    /// Its protocol number, once it has a packet. All packets of a flow have the same.
    number: Option<u8>,
}

impl FlowUnderTest {
    fn new(local: u32, rules: Rules, last_seen: u32) -> Self {
        Self {
            flow: Flow::new(Facts::of_ends(local & 1 != 0, local & 2 != 0)),
            local,
            last_seen,
            rules,
            model: Model::new(rules, local),
            open_flows: 0,
            open_directions: 0,
            number: None,
        }
    }

    fn packet(&mut self, from: Endpoint, now: u64, transport: &Transport) {
        if *self.number.get_or_insert(transport.number()) != transport.number() {
            return;
        }
        // The kernel programs skip the step too if a packet has no effect.
        let counted = self.flow.count(from, transport, 0, 0);
        let outcome = match self.flow.possible_change(from, transport, counted, &self.rules) {
            PossibleChange::Nothing => {
                self.assert_without_effect(from, now, transport, counted);
                NOTHING
            }
            possible_change @ (PossibleChange::Tsval | PossibleChange::Sequence)
                if self.is_rate_limited(from, now, transport) =>
            {
                if possible_change == PossibleChange::Tsval {
                    self.flow.hot.direction_mut(from).newest_tsval = transport.segment.timestamps.tsval;
                }
                NOTHING
            }
            _ => self.flow.step(from, transport, counted.progress, now, &self.rules),
        };
        let replaced = self.model.replaced();
        let expected = self.model.packet(from, transport, now);
        if self.model.replaced() != replaced {
            (self.open_flows, self.open_directions) = (0, 0);
        }
        let found = Found::of(&outcome);
        assert_eq!(found, expected, "{transport:?} at {now}");
        for (_, _, rtt) in found.samples {
            let timed = self.flow.rtt(from.other());
            assert!(timed.min <= rtt, "{rtt} is below {}", timed.min);
        }
        self.assert_as_the_model();
        self.assert_openings_balance(&outcome.changes);
    }

    /// True if the kernel programs skip the step because of the rate limit. Hours later an old recording may look recent
    /// to them, which costs a recording and is no mistake.
    fn is_rate_limited(&self, from: Endpoint, now: u64, transport: &Transport) -> bool {
        now.saturating_sub(self.flow.rtt(from).recorded_at) < LONG_AGO
            && self.flow.hot.snapshot(from).is_rate_limited(transport, Some(now), &self.rules)
    }

    /// Asserts that a packet without effect changes nothing.
    fn assert_without_effect(&self, from: Endpoint, now: u64, transport: &Transport, counted: Counted) {
        // Missed packets show only at the next packet that has an effect.
        if self.flow.hot.contended != 0 {
            return;
        }
        let mut flow = self.flow;
        let outcome = flow.step(from, transport, counted.progress, now, &self.rules);
        assert_eq!(outcome.changes, NOTHING.changes, "{transport:?} at {now}");
        for measured in [outcome.measured, outcome.second] {
            assert_eq!(measured, Measured::NOTHING, "{transport:?} at {now}");
        }
        for endpoint in [Endpoint::Low, Endpoint::High] {
            let (before, after) = (self.flow.hot.state(endpoint), flow.hot.state(endpoint));
            assert_eq!(State::of(&self.flow, endpoint), State::of(&flow, endpoint), "{transport:?} at {now}");
            assert_eq!(before, after, "{transport:?} at {now}");
            let opening =
                |locked: &Locked| (locked.direction(endpoint).opened_at, locked.opened_by(endpoint));
            assert_eq!(opening(&self.flow.locked), opening(&flow.locked), "{transport:?} at {now}");
        }
    }

    fn assert_as_the_model(&self) {
        if self.flow.hot.contended != 0 {
            return;
        }
        for endpoint in [Endpoint::Low, Endpoint::High] {
            assert!(self.flow.pending(endpoint).count() <= PENDING_PER_DIRECTION);
            assert_eq!(State::of(&self.flow, endpoint), self.model.state(endpoint));
        }
    }

    /// Asserts that openings and closings balance: no flow counts twice, and none is missed.
    fn assert_openings_balance(&mut self, changes: &Changes) {
        self.open_flows += i32::from(changes.opened_first) - i32::from(changes.closed_last);
        self.open_directions += i32::from(changes.opened);
        self.open_directions -= i32::from(changes.closed_forward) + i32::from(changes.closed_reverse);
        let is_open = |endpoint| i32::from(self.flow.hot.state(endpoint).lifecycle() == Lifecycle::OPEN);
        let open = is_open(Endpoint::Low) + is_open(Endpoint::High);
        assert_eq!((self.open_directions, self.open_flows), (open, open.min(1)));
    }

    /// A packet passes that only the counters see.
    fn miss_packet(&mut self) {
        self.flow.hot.contended = 1;
        self.model.miss();
    }

    fn set_clock_back(&mut self) {
        self.flow.set_clock_back(self.number.unwrap_or(0));
        self.model.set_clock_back();
        self.assert_as_the_model();
    }

    /// Resets the flow if it has been idle for too long.
    fn sweep(&mut self, now: u32) {
        let idle = now.wrapping_sub(self.last_seen);
        let is_expired = self.flow.hot.is_expired(self.number.unwrap_or(0), idle);
        if is_expired {
            assert!(idle > CLOSED_IDLE_SECONDS);
            *self = Self::new(self.local, self.rules, now);
        } else {
            assert!(idle <= IDLE_SECONDS);
        }
    }
}

/// The outcome of a packet without effect.
const NOTHING: Outcome = Outcome {
    measured: Measured::NOTHING,
    second: Measured::NOTHING,
    changes: Changes::NONE,
    is_refused: false,
};

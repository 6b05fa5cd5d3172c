//! Any packets of a few flows, at any times, through the state machine.

mod input;

use pping_common::{
    flow::{Changes, Endpoint, Flow, Lifecycle, Noted, Outcome},
    limits::{CLOSED_IDLE_SECONDS, IDLE_SECONDS, PENDING_PER_DIRECTION},
    model::{Found, Model, State},
    parse::{Kind, Transport},
    rtt::{Effect, Measured, Rules},
};

use self::input::{Event, Input};

pub use self::input::{FLOWS, HEADER, RECORD};

/// Sends packets past flows.
///
/// # Panics
/// When a flow does anything that [`pping_common::model`] does not, a sample is not above the lowest one, more waits than
/// there are slots, a flow changes by a packet without effect, or it opens and closes out of turn.
pub fn check(input: &[u8]) {
    let Some(input) = Input::decode(input) else { return };
    let rules = input.rules;
    let mut talks: [Talk; FLOWS] = input.local.map(|local| Talk::new(local, rules, input.sweeps));
    let mut sweeps = input.sweeps;
    for event in input.events() {
        match event {
            Event::Packet { flow, from, now, transport } => {
                talks[flow].flow.last_seen = sweeps;
                talks[flow].packet(from, now, &transport);
            }
            Event::Contention { flow } => talks[flow].contend(),
            Event::ClockSetBack => talks.iter_mut().for_each(Talk::set_clock_back),
            Event::Sweep { seconds } => {
                sweeps = sweeps.wrapping_add(seconds);
                for talk in &mut talks {
                    talk.sweep(sweeps);
                }
            }
        }
    }
}

/// A flow, and what is expected of it.
struct Talk {
    flow: Flow,
    rules: Rules,
    model: Model,
    /// How many flows and directions were said to open and not yet to close.
    open_flows: i32,
    open_directions: i32,
    /// The protocol of its last packet, which decides how long it may be idle.
    number: u8,
}

impl Talk {
    fn new(local: u32, rules: Rules, last_seen: u32) -> Self {
        Self {
            flow: Flow { local, last_seen, ..Flow::EMPTY },
            rules,
            model: Model::new(rules, local),
            open_flows: 0,
            open_directions: 0,
            number: 0,
        }
    }

    fn packet(&mut self, from: Endpoint, now: u64, transport: &Transport) {
        self.number = transport.number();
        if self.begins_anew(from, transport) {
            (self.open_flows, self.open_directions) = (0, 0);
        }
        // As the kernel programs do: a flow is left alone by a packet without effect.
        let direction = match from {
            Endpoint::Low => &mut self.flow.low,
            Endpoint::High => &mut self.flow.high,
        };
        let noted = direction.note(transport, 0, 0);
        let outcome = match self.flow.effect(from, transport, &noted, &self.rules) {
            Effect::Nothing => {
                self.assert_without_effect(from, now, transport, noted);
                NOTHING
            }
            effect @ (Effect::Tsval | Effect::Sequence)
                if self.flow.is_rate_limited(from, transport, now, &self.rules) =>
            {
                if effect == Effect::Tsval {
                    let direction = match from {
                        Endpoint::Low => &mut self.flow.low,
                        Endpoint::High => &mut self.flow.high,
                    };
                    direction.newest_tsval = transport.segment.timestamps.tsval;
                }
                NOTHING
            }
            _ => self.flow.step(from, transport, &noted, now, &self.rules),
        };
        let expected = self.model.packet(from, transport, now);
        let found = Found::of(&outcome);
        assert_eq!(found, expected, "{transport:?} at {now}");
        for (_, _, rtt) in found.samples {
            let timed = self.flow.direction(from.other());
            assert!(timed.rtt.min <= rtt, "{rtt} is below {}", timed.rtt.min);
        }
        self.assert_as_the_model();
        self.assert_in_turn(&outcome.changes);
    }

    /// Whether the packet is a SYN on used ports, which ends what was there without a word.
    fn begins_anew(&self, from: Endpoint, transport: &Transport) -> bool {
        let (forward, flags) = (self.flow.direction(from), transport.segment.flags);
        transport.kind == Kind::Tcp
            && (flags.syn() && !flags.ack())
            && (forward.established || forward.lifecycle == Lifecycle::Closed)
    }

    /// A packet without effect changes nothing.
    fn assert_without_effect(&self, from: Endpoint, now: u64, transport: &Transport, noted: Noted) {
        // What it has not seen comes to light at the next packet that has an effect.
        if self.flow.contended != 0 {
            return;
        }
        let mut flow = self.flow;
        let outcome = flow.step(from, transport, &noted, now, &self.rules);
        assert_eq!(outcome.changes, NOTHING.changes, "{transport:?} at {now}");
        for measured in [outcome.measured, outcome.second] {
            assert!(!measured.has_sample && !measured.pending_full, "{transport:?} at {now}");
        }
        for endpoint in [Endpoint::Low, Endpoint::High] {
            let (before, after) = (self.flow.direction(endpoint), flow.direction(endpoint));
            assert_eq!(State::of(before), State::of(after), "{transport:?} at {now}");
            assert_eq!(before.lifecycle, after.lifecycle, "{transport:?} at {now}");
            assert_eq!(
                (before.opened_at, before.opened_by, before.established),
                (after.opened_at, after.opened_by, after.established),
                "{transport:?} at {now}"
            );
        }
    }

    fn assert_as_the_model(&self) {
        if self.flow.contended != 0 {
            return;
        }
        for endpoint in [Endpoint::Low, Endpoint::High] {
            let direction = self.flow.direction(endpoint);
            assert!(direction.pending.waiting() <= PENDING_PER_DIRECTION);
            assert_eq!(State::of(direction), self.model.state(endpoint));
        }
    }

    /// Openings and closings add up: no flow counts twice, and none is missed.
    fn assert_in_turn(&mut self, changes: &Changes) {
        self.open_flows += i32::from(changes.opened_first) - i32::from(changes.closed_last);
        self.open_directions += i32::from(changes.opened);
        self.open_directions -= i32::from(changes.closed_forward) + i32::from(changes.closed_reverse);
        let is_open = |endpoint| i32::from(self.flow.direction(endpoint).lifecycle == Lifecycle::Open);
        let open = is_open(Endpoint::Low) + is_open(Endpoint::High);
        assert_eq!((self.open_directions, self.open_flows), (open, open.min(1)));
    }

    /// A packet went by that only the counters have seen.
    fn contend(&mut self) {
        self.flow.contended = 1;
        self.model.miss();
    }

    fn set_clock_back(&mut self) {
        self.flow.set_clock_back();
        self.model.set_clock_back();
        self.assert_as_the_model();
    }

    /// Forgets the flow if it has been idle too long.
    fn sweep(&mut self, now: u32) {
        let idle = now.wrapping_sub(self.flow.last_seen);
        let is_expired = self.flow.is_expired(self.number, now);
        if is_expired {
            assert!(idle > CLOSED_IDLE_SECONDS);
            *self = Self::new(self.flow.local, self.rules, now);
        } else {
            assert!(idle <= IDLE_SECONDS);
        }
    }
}

/// What a packet without effect brings about.
const NOTHING: Outcome =
    Outcome { measured: Measured::NOTHING, second: Measured::NOTHING, changes: Changes::NONE };

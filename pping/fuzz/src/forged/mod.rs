//! A connection of two honest ends, and between their segments what somebody beside the path sends in their names: he knows
//! addresses and ports, but none of the numbers.

mod honest;
mod input;

use pping_common::{
    flow::{Endpoint, Facts, Flow},
    parse::Transport,
    rtt::{Effect, Method, Rules},
};

use self::input::{Event, Input};

pub use self::input::{HEADER, RECORD};

/// Sends the packets through two flows, of which one sees only those of the honest ends.
///
/// # Panics
/// If a forged packet gives a sample, or if an honest one gives another sample than it gives without them, or none.
pub fn check(input: &[u8]) {
    let Some(input) = Input::decode(input) else { return };
    let mut alone = Watched::new(&input);
    let mut lied_to = Watched::new(&input);
    for Event { packet, is_forged } in input.events() {
        let found = lied_to.packet(&packet);
        let expected = if is_forged { [None; 2] } else { alone.packet(&packet) };
        assert_eq!(found, expected, "{packet:?}");
    }
}

/// A packet, where and when it passes.
#[derive(Debug)]
struct Packet {
    from: Endpoint,
    /// The number of the direction in which it passes.
    hook: u8,
    now: u64,
    transport: Transport,
}

/// Method, identifier that was echoed, and RTT in ns.
type Found = (Method, u32, u64);

/// A flow as the kernel programs treat it.
struct Watched {
    flow: Flow,
    rules: Rules,
}

impl Watched {
    fn new(input: &Input<'_>) -> Self {
        let mut flow = Flow::new(Facts::of_ends(false, false));
        flow.has_two_arms = input.has_two_arms;
        Self { flow, rules: input.rules }
    }

    /// Returns the samples of both passes.
    fn packet(&mut self, Packet { from, hook, now, transport }: &Packet) -> [Option<Found>; 2] {
        let noted = self.flow.count(*from, transport, 0, *hook);
        let effect = self.flow.effect(*from, transport, noted.progress, &self.rules);
        if effect == Effect::Nothing {
            return [None; 2];
        }
        let is_skipped = matches!(effect, Effect::Tsval | Effect::Sequence)
            && self.flow.hot.glance(*from).is_rate_limited(transport, Some(*now), &self.rules);
        if is_skipped {
            if effect == Effect::Tsval {
                self.flow.hot.direction_mut(*from).newest_tsval = transport.segment.timestamps.tsval;
            }
            return [None; 2];
        }
        let outcome = self.flow.step(*from, transport, noted.progress, *now, &self.rules);
        [outcome.measured, outcome.second]
            .map(|measured| measured.sample().map(|sample| (sample.method, sample.identifier, sample.rtt)))
    }
}

//! A connection of two honest ends, and between their segments what somebody beside the path sends in their names: he knows
//! addresses and ports, but none of the numbers.

mod honest;
mod input;

use pping_common::{
    flow::{Counted, Endpoint, Facts, Flow},
    method::Method,
    parse::Transport,
    rtt::{PossibleChange, Progress, Rules},
};

use self::input::{Event, Input};

pub use self::input::{HEADER, RECORD};

/// Sends the packets through two flows, of which one sees only those of the honest ends.
///
/// # Panics
/// If a forged packet gives a sample, if an honest one is refused or counts as retransmitted that does not without them, or if it
/// gives another sample than it gives without them. While no honest packet is missed, it must give that sample; after
/// that, forged ones may look like a place where the connection continues, and cost some.
pub fn check(input: &[u8]) {
    let Some(input) = Input::decode(input) else { return };
    let mut alone = Watched::new(&input);
    let mut lied_to = Watched::new(&input);
    let mut honest = Vec::new();
    let mut is_complete = true;
    for Event { packet, is_forged, is_missed } in input.events() {
        if is_missed {
            is_complete = false;
            continue;
        }
        let (progress, found) = lied_to.packet(&packet);
        if is_forged {
            assert_eq!(found, [None; 2], "{packet:?}");
            continue;
        }
        let (expected_progress, expected) = alone.packet(&packet);
        assert_eq!(progress, expected_progress, "{packet:?}");
        if is_complete {
            assert_eq!(found, expected, "{packet:?}");
        }
        for sample in found.into_iter().flatten() {
            assert!(expected.contains(&Some(sample)) || is_true(sample, &packet, &honest), "{packet:?}");
        }
        honest.push(packet);
    }
}

/// Whether a sample times what the other end sent before, to the packet that echoes it.
fn is_true((method, identifier, rtt): Found, echo: &Packet, before: &[Packet]) -> bool {
    before.iter().any(|sent| {
        let segment = &sent.transport.segment;
        let is_echoed = match method {
            Method::TcpTs => segment.timestamps.tsval == identifier,
            _ => segment.sequence_end() == identifier,
        };
        sent.from != echo.from && is_echoed && sent.now + rtt == echo.now
    })
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

    /// Returns how the packet advances the flow, and the samples of both passes.
    fn packet(&mut self, packet: &Packet) -> (Progress, [Option<Found>; 2]) {
        let counted = self.flow.count(packet.from, &packet.transport, 0, packet.hook);
        (counted.progress, self.step(packet, counted))
    }

    fn step(&mut self, Packet { from, now, transport, .. }: &Packet, counted: Counted) -> [Option<Found>; 2] {
        let possible_change = self.flow.possible_change(*from, transport, counted, &self.rules);
        if possible_change == PossibleChange::Nothing {
            return [None; 2];
        }
        let is_skipped = matches!(possible_change, PossibleChange::Tsval | PossibleChange::Sequence)
            && self.flow.hot.snapshot(*from).is_rate_limited(transport, Some(*now), &self.rules);
        if is_skipped {
            if possible_change == PossibleChange::Tsval {
                self.flow.hot.direction_mut(*from).newest_tsval = transport.segment.timestamps.tsval;
            }
            return [None; 2];
        }
        let outcome = self.flow.step(*from, transport, counted.progress, *now, &self.rules);
        [outcome.measured, outcome.second]
            .map(|measured| measured.sample().map(|sample| (sample.method, sample.identifier, sample.rtt)))
    }
}

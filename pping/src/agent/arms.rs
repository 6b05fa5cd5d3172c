//! Finds out on how many sides of an interface the hosts of a flow are.
//!
//! In the path, a packet and its answer pass an interface in different directions. Somebody beside the path can forge both, but
//! both come in by the interface that leads to him. Where that may be honest, the interface shows it: a router with one arm
//! forwards to the interface that a packet came from, so the packet passes both hooks; at a mirror port nothing goes out.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use pping_common::{
    abi::Counters,
    method::Method,
    parse::{Direction, Untracked},
};

use crate::{
    config::Arms,
    kernel::{counters::Watched, loaded::Kernel},
    snapshot::Place,
};

/// Packets from which on an interface may count as one where nothing goes out, or comes in.
const EVIDENCE: u64 = 64;

/// The share of packets in the rarer direction, of those in the other, below which an interface has only one: one in this many.
const RARE: u64 = 64;

/// The share of packets that pass both hooks from which on an interface has one arm: one in this many.
const FORWARDED: u64 = 8;

/// Samples between two arms that show that an interface is in the path. They cannot be forged from one side.
const SAMPLES: u64 = 64;

/// What the interfaces have shown so far, by their names.
#[derive(Debug, Default)]
pub(super) struct Evidence(HashMap<Arc<str>, Shown>);

/// What an interface has shown.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    /// Whether it counts as one with two arms.
    has_two: bool,
    /// The samples of flows that it had at the last look, and the packets that passed both hooks.
    seen: (u64, u64),
    /// The samples between two arms that it had while it counted as one with two arms.
    between_arms: u64,
    /// Whether these have shown that it is in the path.
    is_in_path: bool,
}

impl Evidence {
    /// Tells the kernel programs of each watched interface how many arms it has.
    pub(super) fn tell(&mut self, kernel: &Kernel, watched: &[Watched], arms: Arms) {
        let Self(shown) = self;
        // Joined interfaces have the arms that all of them together show: a flow may come in by one and go out by another.
        let mut wholes: HashMap<&Arc<str>, Vec<u16>> = HashMap::new();
        for Watched { name, id, place, .. } in watched {
            let whole = if let Place::OneOf(joined) = place { joined } else { name };
            wholes.entry(whole).or_default().push(*id);
        }
        shown.retain(|name, _| wholes.contains_key(name));
        let mut with_two = HashSet::new();
        for (name, ids) in wholes {
            let has_two = match arms {
                Arms::One => false,
                Arms::Two => true,
                Arms::Auto => {
                    let mut counters = Counters::ZERO;
                    for &id in &ids {
                        counters.add(&kernel.counters.sum(id));
                    }
                    shown.entry(Arc::clone(name)).or_default().look(&counters)
                }
            };
            with_two.extend(ids.into_iter().filter(|_| has_two));
        }
        kernel.interface_ids.set_two_arms(|id| with_two.contains(&id));
    }
}

impl Shown {
    /// Looks at the counters of the interface. Returns whether it has two arms. Once it has shown that it is in the path, that
    /// stays so: otherwise a flood from one side could make it look like a mirror port or a router with one arm.
    fn look(&mut self, counters: &Counters) -> bool {
        let seen = (samples_of_flows(counters), copies(counters));
        if self.has_two {
            let (samples, copies) = (seen.0.saturating_sub(self.seen.0), seen.1.saturating_sub(self.seen.1));
            // Flows that a router with one arm forwards give samples, too. For each, two packets passed both hooks.
            self.between_arms += samples.saturating_sub(copies);
        }
        self.seen = seen;
        self.is_in_path |= self.between_arms >= SAMPLES;
        self.has_two = self.is_in_path || has_two_arms(counters);
        self.has_two
    }
}

/// The samples, without those of DNS: copies of its messages are not counted.
fn samples_of_flows(counters: &Counters) -> u64 {
    let methods = Method::ALL.into_iter().filter(|&method| method != Method::Dns);
    methods.flat_map(|method| counters.samples.iter().map(move |samples| samples[method as usize])).sum()
}

/// The packets that passed both hooks.
fn copies(counters: &Counters) -> u64 {
    counters.untracked[Untracked::OtherHook as usize]
}

/// Whether each host of a flow is on another side of an interface with these counters. Before the first packet none is.
fn has_two_arms(counters: &Counters) -> bool {
    let [one, other] = Direction::ALL.map(|direction| counters.packets(direction));
    let (less, more) = (one.min(other), one.max(other));
    let is_one_way = more >= EVIDENCE && less < more / RARE;
    more > 0 && !is_one_way && copies(counters) * FORWARDED < less + more
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(ingress: usize, egress: usize, copies: u64) -> Counters {
        let mut counters = Counters::ZERO;
        for (direction, packets) in [(Direction::Ingress, ingress), (Direction::Egress, egress)] {
            for _ in 0..packets {
                counters.packet(direction, 0, 100, 0);
            }
        }
        counters.untracked[Untracked::OtherHook as usize] = copies;
        counters
    }

    #[test]
    fn an_interface_in_the_path_has_two_arms() {
        for (ingress, egress, copies) in
            [(1, 0, 0), (10, 0, 0), (0, 63, 0), (500, 400, 0), (6_400, 100, 10), (1_000, 1_000, 200)]
        {
            assert!(has_two_arms(&counters(ingress, egress, copies)), "{ingress} {egress} {copies}");
        }
    }

    fn sampled(samples: u64, mut counters: Counters) -> Counters {
        counters.samples[0][0] = samples;
        counters
    }

    #[test]
    fn an_interface_that_has_shown_two_arms_keeps_them_in_a_flood() {
        let mut shown = Shown::default();
        assert!(!shown.look(&counters(0, 0, 0)));
        assert!(shown.look(&sampled(0, counters(50, 40, 0))));
        assert!(shown.look(&sampled(63, counters(100, 90, 1))));
        let flood = counters(100_000, 100, 30_000);
        assert!(!shown.clone().look(&sampled(63, flood)), "too little was seen before");
        assert!(shown.look(&sampled(65, counters(110, 95, 1))));
        assert!(shown.look(&sampled(65, flood)));
    }

    #[test]
    fn samples_with_one_arm_show_nothing() {
        for one_arm in [counters(1_000, 0, 0), counters(500, 500, 480)] {
            let mut shown = Shown::default();
            assert!(!shown.look(&one_arm));
            assert!(!shown.look(&sampled(1_000, one_arm)));
            assert!(!shown.look(&sampled(2_000, one_arm)));
            assert!(shown.look(&sampled(2_000, counters(90_000, 9_000, 500))));
        }
    }

    #[test]
    fn a_flood_to_a_router_with_one_arm_shows_nothing() {
        let mut shown = Shown::default();
        let (mut packets, mut samples) = (1_000, 100);
        assert!(!shown.look(&sampled(samples, counters(packets, packets, packets as u64))));
        let flood = 50 * packets;
        for _ in 0..20 {
            assert!(shown.look(&sampled(samples, counters(packets + flood, packets, packets as u64))));
            (packets, samples) = (packets + 100, samples + 50);
        }
        assert!(!shown.look(&sampled(samples, counters(packets, packets, packets as u64))));
    }

    #[test]
    fn samples_of_dns_show_nothing() {
        let mut shown = Shown::default();
        for asked in 1..10 {
            let mut counters = counters(1_000, 1_000, 0);
            counters.samples[0][Method::Dns as usize] = 1_000 * asked;
            shown.look(&counters);
        }
        assert!(!shown.look(&counters(1_000, 1_000, 1_900)));
    }

    #[test]
    fn mirror_ports_and_routers_with_one_arm_have_one() {
        for (ingress, egress, copies) in [
            (0, 0, 0),
            (64, 0, 0),
            (0, 64, 0),
            (9_000, 100, 0),
            (1, 1, 1),
            (500, 500, 480),
            (1_000, 1_000, 250),
        ] {
            assert!(!has_two_arms(&counters(ingress, egress, copies)), "{ingress} {egress} {copies}");
        }
    }
}

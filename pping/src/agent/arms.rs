//! Finds out on how many sides of an interface the hosts of a flow are.
//!
//! In the path, a packet and its answer pass an interface in different directions. Somebody beside the path can forge both, but
//! both come in by the interface that leads to him. Where that may be honest, the interface shows it: a router with one arm
//! forwards to the interface that a packet came from, so the packet passes both hooks; at a mirror port nothing goes out.

use pping_common::{
    abi::Counters,
    parse::{Direction, Untracked},
};

use super::state::Agent;
use crate::config::Arms;

/// Packets from which on an interface may count as one where nothing goes out, or comes in.
const EVIDENCE: u64 = 64;

/// The share of packets in the rarer direction, of those in the other, below which an interface has only one: one in this many.
const RARE: u64 = 64;

/// The share of packets that pass both hooks from which on an interface has one arm: one in this many.
const FORWARDED: u64 = 8;

impl Agent {
    /// Tells the kernel programs of each interface how many arms it has.
    pub(super) fn find_arms(&self) {
        for watched in &self.interfaces.watched {
            let has_two = match self.config.arms {
                Arms::One => false,
                Arms::Two => true,
                Arms::Auto => has_two_arms(&self.kernel.counters.sum(watched.id)),
            };
            self.kernel.interface_ids.set_two_arms(watched.id, has_two);
        }
    }
}

/// Whether each host of a flow is on another side of an interface with these counters. Before the first packet none is.
fn has_two_arms(counters: &Counters) -> bool {
    let [one, other] = Direction::ALL.map(|direction| counters.packets(direction));
    let (less, more) = (one.min(other), one.max(other));
    let is_one_way = more >= EVIDENCE && less < more / RARE;
    let copies = counters.untracked[Untracked::OtherHook as usize];
    more > 0 && !is_one_way && copies * FORWARDED < less + more
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

//! Counting for an interface, on this CPU.

use pping_common::{
    abi::{Counters, Direction, PacketCounters},
    parse::{Protocol, Untracked},
};

use crate::shared::{Shared, field};

impl Shared<Counters> {
    /// Counts a packet on this CPU, by [`Counters::packet`]'s rules.
    #[inline(always)]
    pub(crate) fn packet(self, direction: Direction, protocol: Protocol, len: usize, traffic_class: u8) {
        let traffic = self.at(field!(Counters, traffic));
        let line = traffic.element(direction as usize).element(protocol as usize);
        let codepoint = PacketCounters::codepoint(traffic_class);
        line.at(field!(PacketCounters, by_ecn)).element(codepoint).count(1);
        line.at(field!(PacketCounters, bytes)).count(len as u64);
    }

    /// Counts why a packet is not measured.
    #[inline(always)]
    pub(crate) fn untracked(self, reason: Untracked) {
        self.at(field!(Counters, untracked)).element(reason as usize).count(1);
    }
}

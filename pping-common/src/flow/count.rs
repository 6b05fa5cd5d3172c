//! Counting a packet for its flow.

use super::{direction::FlowDirection, latest::Noted};
use crate::parse::Transport;

/// A way to add to a counter: the kernel programs use atomic instructions.
pub trait Adder {
    /// Adds to a counter.
    fn add(counter: &mut u64, value: u64);

    /// Adds to a counter of 32 bits.
    fn add_32(counter: &mut u32, value: u32);
}

/// Adds where nothing else does at the same time.
#[derive(Clone, Copy, Debug)]
pub struct Exclusive;

impl Adder for Exclusive {
    #[inline(always)]
    fn add(counter: &mut u64, value: u64) {
        *counter = counter.wrapping_add(value);
    }

    #[inline(always)]
    fn add_32(counter: &mut u32, value: u32) {
        *counter = counter.wrapping_add(value);
    }
}

impl FlowDirection {
    /// Counts a packet that the direction sent, and says what it is beside one more packet. Beside the direction's own counters
    /// it has those of the interface counted: segments sent again, and segments that others overtook.
    // Both within one branch: the verifier would follow what comes between two for each outcome of the first.
    #[inline(always)]
    pub fn count<A: Adder>(
        &mut self,
        transport: &Transport,
        traffic_class: u8,
        direction: u8,
        (retransmitted, reordered): (impl FnOnce(), impl FnOnce()),
    ) -> Noted {
        let noted = self.note(transport, traffic_class, direction);
        A::add(&mut self.packets, 1);
        A::add(&mut self.bytes, u64::from(transport.payload()));
        if noted.is_retransmission {
            A::add_32(&mut self.retransmissions, 1);
            retransmitted();
        }
        if noted.is_reordered {
            A::add_32(&mut self.reordered, 1);
            reordered();
        }
        if noted.is_ce {
            A::add_32(&mut self.ce_packets, 1);
        }
        noted
    }
}

//! What pping itself costs: one packet in [`TIMED_EVERY`] of each program is timed.

use crate::{layout::numbered, limits::TIMED_EVERY, parse::Direction};

numbered! {
    /// An attached program, with the stages that it calls.
    pub enum PacketProgram {
        /// `pping_ingress`, at tc.
        Ingress,
        /// `pping_egress`, at tc.
        Egress,
        /// `pping_xdp`.
        Xdp,
    }
}

impl PacketProgram {
    /// Returns the program of this direction at tc. The numbers are those of [`Direction`].
    #[inline(always)]
    pub const fn at_tc(direction: Direction) -> Self {
        match direction {
            Direction::Ingress => Self::Ingress,
            Direction::Egress => Self::Egress,
        }
    }

    /// The program's name in the kernel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ingress => "pping_ingress",
            Self::Egress => "pping_egress",
            Self::Xdp => "pping_xdp",
        }
    }
}

/// Packets that were timed, and how long they took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timed {
    /// The number of packets.
    pub packets: u64,
    /// The sum of their times, ns.
    pub ns: u64,
}

impl Timed {
    /// Adds two sums.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, ns: self.ns + other.ns }
    }

    /// Whether the packet that brings a counter to `count` has the next one timed.
    #[inline(always)]
    pub const fn is_next(count: u64) -> bool {
        count.is_multiple_of(TIMED_EVERY)
    }
}

const _: () = {
    assert!(TIMED_EVERY.is_power_of_two(), "the remainder is a mask");
    assert!(PacketProgram::Ingress as u8 == Direction::Ingress as u8);
    assert!(PacketProgram::Egress as u8 == Direction::Egress as u8);
};

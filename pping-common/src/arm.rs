//! The arms of an interface.

use crate::{layout::layout, limits::HIGHEST_MAX_INTERFACES};

/// A side of an interface from which packets come. An interface in the path lies between two: what a host at one of them asks is
/// answered from the other. A mirror port has one, as far as anybody can tell.
///
/// It is a number of 16 bits with that of the interface, whose id counts modulo 16,384. Kernel programs have no more
/// interfaces ([`HIGHEST_MAX_INTERFACES`](crate::limits::HIGHEST_MAX_INTERFACES)); a capture that has more may mix up two that are so
/// far apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Arm(u16);

layout!(Arm { 0 });

impl Arm {
    /// The only arm of the first interface.
    pub const FIRST: Self = Self(0);

    const IS_ONE_OF_TWO: u16 = 1 << 15;
    const IS_EGRESS_SHIFT: u32 = 14;
    const ID: u16 = (1 << Self::IS_EGRESS_SHIFT) - 1;

    /// Returns the arm from which a packet comes that passes an interface in `direction` (as a number).
    #[inline(always)]
    pub fn new(interface_id: u16, direction: u8, has_two_arms: bool) -> Self {
        let side = Self::IS_ONE_OF_TWO | u16::from(direction & 1) << Self::IS_EGRESS_SHIFT;
        Self(interface_id & Self::ID | if has_two_arms { side } else { 0 })
    }

    /// Returns the arm from which answers come.
    #[inline(always)]
    #[must_use]
    pub fn opposite(self) -> Self {
        Self(self.0 ^ (self.0 & Self::IS_ONE_OF_TWO) >> (Self::IS_ONE_OF_TWO.ilog2() - Self::IS_EGRESS_SHIFT))
    }

    /// The id of the interface.
    #[inline(always)]
    pub fn interface_id(self) -> u16 {
        self.0 & Self::ID
    }

    /// A number that tells arms apart if their interface has two; else 0.
    #[inline(always)]
    pub(crate) fn number(self) -> u64 {
        u64::from(if self.0 & Self::IS_ONE_OF_TWO == 0 { 0 } else { self.0 })
    }
}

const _: () = assert!(HIGHEST_MAX_INTERFACES == 1 << Arm::IS_EGRESS_SHIFT);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::Direction;

    #[test]
    fn answers_come_from_the_other_of_two_arms() {
        for id in [0, 1, 255] {
            let [ingress, egress] = Direction::ALL.map(|direction| Arm::new(id, direction as u8, true));
            assert_eq!((ingress.opposite(), egress.opposite()), (egress, ingress));
            assert_ne!(ingress, egress);
            let only = Arm::new(id, Direction::Egress as u8, false);
            assert_eq!((only, only.opposite()), (Arm::new(id, Direction::Ingress as u8, false), only));
            assert_eq!([ingress, egress, only].map(Arm::interface_id), [id; 3]);
            assert_eq!(only.number(), 0);
            assert_ne!(ingress.number(), egress.number());
        }
    }

    #[test]
    fn an_id_that_needs_all_bits_makes_no_second_arm() {
        for id in [0x4000, 0x8000, 0xc000, u16::MAX] {
            let only = Arm::new(id, Direction::Ingress as u8, false);
            assert_eq!((only.opposite(), only.number()), (only, 0));
        }
    }
}

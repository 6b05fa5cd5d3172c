//! The table of monitored interfaces.

use crate::{limits::INTERFACE_PLACES, parse::LinkType};

/// A monitored interface. Flows and counters carry its place in the table, which is 16 bits wide and
/// needs no hashing, unlike an ifindex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Interface {
    /// Kernel's number of the interface; 0 in an empty place.
    pub ifindex: u32,
    /// [`LinkType`] as a number.
    pub link_type: u32,
}

impl Interface {
    /// What its frames begin with.
    #[inline(always)]
    pub fn link_type(&self) -> LinkType {
        if self.link_type == LinkType::Ip as u32 { LinkType::Ip } else { LinkType::Ethernet }
    }
}

/// The place in the table that is tried as `probe` (from 0) for an interface.
#[inline(always)]
pub fn place(ifindex: u32, probe: u32) -> u32 {
    ifindex.wrapping_add(probe) % INTERFACE_PLACES
}

const _: () = {
    assert!(size_of::<Interface>() == 8);
    assert!(INTERFACE_PLACES.is_power_of_two() && INTERFACE_PLACES <= u16::MAX as u32 + 1);
};

//! The table of monitored interfaces.

use crate::{
    layout::layout,
    limits::{INTERFACE_TABLE, MAX_INTERFACES},
    parse::LinkType,
};

/// A monitored interface. Flows and counters carry its id, which is 16 bits wide, needs no hashing, and stays the same
/// when an interface of the same name comes back under another ifindex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Interface {
    /// Kernel's number of the interface; 0 in an empty entry.
    pub ifindex: u32,
    /// Its id: what it is known by in flows, counters and series.
    pub id: u16,
    /// [`LinkType`] as a number.
    pub link_type: u16,
}

layout!(Interface { ifindex, id, link_type });

impl Interface {
    /// The link type: the header at the start of a frame.
    #[inline(always)]
    pub fn link_type(&self) -> LinkType {
        if self.link_type == LinkType::Ip as u16 { LinkType::Ip } else { LinkType::Ethernet }
    }
}

/// The entry of the table that is tried as `probe` (from 0) for an interface.
#[inline(always)]
pub fn entry(ifindex: u32, probe: u32) -> u32 {
    ifindex.wrapping_add(probe) % INTERFACE_TABLE
}

/// The name of an interface that has, or had, an id. The agent's notes: the kernel programs do not look at them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct InterfaceName {
    /// Filled up with zeroes; all of them where the id is free.
    pub name: [u8; 16],
}

layout!(InterfaceName { name });

const _: () = {
    assert!(size_of::<Interface>() == 8);
    assert!(core::mem::offset_of!(Interface, id) == 4);
    assert!(size_of::<InterfaceName>() == 16);
    assert!(INTERFACE_TABLE.is_power_of_two() && MAX_INTERFACES <= u16::MAX as u32 + 1);
};

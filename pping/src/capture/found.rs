//! A packet in the bytes that have arrived.

use pping_common::parse::{Direction, LinkType};

/// A packet that has arrived, and its position in the block.
pub(super) struct Found {
    /// The time, ns since 1970.
    pub(super) time: u64,
    pub(super) interface: u16,
    pub(super) link: LinkType,
    pub(super) direction: Option<Direction>,
    /// Bytes of the block before the packet.
    pub(super) header: usize,
    /// Bytes of the packet that were captured.
    pub(super) captured: usize,
    /// Bytes of the whole block.
    pub(super) block: usize,
    /// Bytes that the packet had on the network.
    pub(super) frame_len: usize,
}

impl Found {
    /// The packet in its block.
    #[inline]
    pub(super) fn bytes<'a>(&self, block: &'a [u8]) -> &'a [u8] {
        block.get(self.header..self.header + self.captured).unwrap_or_default()
    }
}

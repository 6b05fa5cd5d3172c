//! Packets as they are handed over.

use crate::{
    bytes::Captured,
    parse::{Direction, LinkType},
    series::SeriesKey,
};

/// A packet, and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The time of the packet, ns. Any epoch will do, 1970 for a capture.
    pub time: u64,
    /// The id of its interface. The packets of a flow have the same one.
    pub interface: u16,
    /// The link type.
    pub link: LinkType,
    /// The direction in which it passed the interface, if that is known.
    pub direction: Option<Direction>,
    /// The bytes that were captured, from the link header on.
    pub bytes: Captured<'a>,
}

/// The facts about a packet beside its bytes.
#[derive(Clone, Copy, Debug)]
pub struct PacketMetadata {
    /// The direction in which it passed its interface, if that is known.
    pub direction: Option<Direction>,
    /// The id of its interface.
    pub interface_id: u16,
    /// Its time plus 1, ns: to a flow, 0 means no time.
    pub now: u64,
    /// The second by which idle time is measured.
    pub second: u64,
}

impl PacketMetadata {
    /// The number of its direction, or [`SeriesKey::NO_DIRECTION`].
    pub fn direction_number(self) -> u8 {
        self.direction.map_or(SeriesKey::NO_DIRECTION, |direction| direction as u8)
    }
}

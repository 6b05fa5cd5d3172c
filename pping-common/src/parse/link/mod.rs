//! The link layer: what a frame begins with, down to the IP header.

mod cooked;
mod ethernet;
mod ethertype;
mod point_to_point;

pub(super) use self::{
    ethernet::{follow, parse as ethernet},
    ethertype::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_MPLS},
};
use super::{direction::Direction, frame::Frame, untracked::Untracked};
use crate::{bytes::Bytes, layout::listed};

listed! {
    /// The link type of an interface or a capture: the header at the start of a frame.
    #[derive(Hash)]
    pub enum LinkType {
        /// An Ethernet header.
        Ethernet,
        /// The IP header: tun, `WireGuard`, ppp, IP tunnels.
        Ip,
        /// The header of a Linux cooked capture (`LINKTYPE_LINUX_SLL`).
        Cooked,
        /// The header of its second version (`LINKTYPE_LINUX_SLL2`).
        CookedV2,
        /// An address family of 32 bits in either byte order (`LINKTYPE_NULL`, `LINKTYPE_LOOP`).
        Loopback,
        /// A PPP frame (RFC 1661), with or without HDLC's address and control (RFC 1662).
        Ppp,
    }
}

impl LinkType {
    /// Returns whether a frame came in or went out, if its header says so.
    pub fn direction<O: Bytes + ?Sized>(self, bytes: &O) -> Option<Direction> {
        match self {
            Self::Cooked => cooked::direction(bytes),
            Self::CookedV2 => cooked::direction_v2(bytes),
            Self::Ethernet | Self::Ip | Self::Loopback | Self::Ppp => None,
        }
    }

    /// Returns the number of the interface that a frame passed, if its header says so.
    pub fn interface<O: Bytes + ?Sized>(self, bytes: &O) -> Option<u32> {
        match self {
            Self::CookedV2 => cooked::interface_v2(bytes),
            Self::Ethernet | Self::Ip | Self::Cooked | Self::Loopback | Self::Ppp => None,
        }
    }
}

/// Finds the IP header, and notes its version and its offset.
#[inline(always)]
pub(super) fn parse<O: Bytes + ?Sized>(
    bytes: &O,
    link: LinkType,
    frame: &mut Frame,
) -> Result<(), Untracked> {
    match link {
        LinkType::Ethernet => ethernet(bytes, 0, frame),
        LinkType::Ip => frame.set_network_header_by_version(bytes, 0),
        LinkType::Cooked => cooked::parse(bytes, frame),
        LinkType::CookedV2 => cooked::parse_v2(bytes, frame),
        LinkType::Loopback => point_to_point::parse_loopback(bytes, frame),
        LinkType::Ppp => point_to_point::parse_ppp(bytes, frame),
    }
}

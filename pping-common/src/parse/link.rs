//! Link layer: Ethernet with VLAN tags, and interfaces that carry IP without a header.

use super::Untracked;
use crate::{limits::MAX_VLAN_TAGS, octets::Octets};

const ETHERNET_HEADER: usize = 14;
const VLAN_TAG: usize = 4;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// IEEE 802.1Q.
const ETHERTYPE_VLAN: u16 = 0x8100;
/// IEEE 802.1ad, the outer tag of `QinQ`.
const ETHERTYPE_SERVICE_VLAN: u16 = 0x88a8;
/// The outer tag of `QinQ` before it was a standard, still met.
const ETHERTYPE_OLD_SERVICE_VLAN: u16 = 0x9100;

/// What the frames of an interface begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LinkType {
    /// An Ethernet header.
    Ethernet,
    /// The IP header: tun, `WireGuard`, ppp, IP tunnels.
    Ip,
}

/// The VLAN identifiers of a frame, outermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vlan {
    /// Identifiers (12 bits); those past `count` are 0.
    pub tags: [u16; MAX_VLAN_TAGS],
    /// How many tags there are.
    pub count: u8,
}

impl Vlan {
    /// Appends the identifier of a tag control word, unless the stack is full.
    #[inline(always)]
    pub(super) fn push(&mut self, tag_control: u16) {
        if let Some(tag) = self.tags.get_mut(usize::from(self.count)) {
            *tag = tag_control & 0x0fff;
            self.count += 1;
        }
    }
}

/// The network layer that a link header announces.
pub(super) enum Network {
    Ipv4,
    Ipv6,
}

/// Finds the network header: its version and offset.
#[inline(always)]
pub(super) fn parse<O: Octets + ?Sized>(
    octets: &O,
    link: LinkType,
    vlan: &mut Vlan,
) -> Result<(Network, usize), Untracked> {
    match link {
        LinkType::Ethernet => ethernet(octets, vlan),
        LinkType::Ip => {
            let [first, _] = octets.read(0).ok_or(Untracked::Truncated)?;
            match first >> 4 {
                4 => Ok((Network::Ipv4, 0)),
                6 => Ok((Network::Ipv6, 0)),
                _ => Err(Untracked::NonIp),
            }
        }
    }
}

#[inline(always)]
fn ethernet<O: Octets + ?Sized>(octets: &O, vlan: &mut Vlan) -> Result<(Network, usize), Untracked> {
    let mut ethertype = octets.read(ETHERNET_HEADER - 2).ok_or(Untracked::Truncated)?;
    let mut offset = ETHERNET_HEADER;
    // One round more than there may be tags, to look at what the last one announces.
    for _ in 0..=MAX_VLAN_TAGS {
        match u16::from_be_bytes(ethertype) {
            ETHERTYPE_IPV4 => return Ok((Network::Ipv4, offset)),
            ETHERTYPE_IPV6 => return Ok((Network::Ipv6, offset)),
            ETHERTYPE_VLAN | ETHERTYPE_SERVICE_VLAN | ETHERTYPE_OLD_SERVICE_VLAN => {
                let [control, next, ..] = split(octets.read(offset).ok_or(Untracked::Truncated)?);
                vlan.push(u16::from_be_bytes(control));
                ethertype = next;
                offset += VLAN_TAG;
            }
            _ => return Err(Untracked::NonIp),
        }
    }
    Err(Untracked::Unsupported)
}

#[inline(always)]
fn split([a, b, c, d]: [u8; VLAN_TAG]) -> [[u8; 2]; 2] {
    [[a, b], [c, d]]
}

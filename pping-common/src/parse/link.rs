//! Link layer: Ethernet with VLAN tags, and interfaces that carry IP without a header.

use super::{Family, Frame, Untracked};
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

/// The VLAN tags of a frame. One number rather than a list: the verifier likes no computed index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Vlan(u64);

impl Vlan {
    /// No tags.
    pub const NONE: Self = Self(0);

    /// Set in each tag, so that the identifier 0 (a priority tag) is told from none.
    const PRESENT: u64 = 0x8000;

    /// Appends the identifier of a tag control word; from the fifth on, the outermost is forgotten.
    #[inline(always)]
    pub fn push(&mut self, tag_control: u16) {
        self.0 = self.0 << 16 | Self::PRESENT | u64::from(tag_control & 0x0fff);
    }

    /// The VLAN identifiers, outermost first.
    pub fn identifiers(self) -> impl Iterator<Item = u16> {
        (0..MAX_VLAN_TAGS)
            .rev()
            .map(move |position| self.0 >> (16 * position))
            .filter(|tag| tag & Self::PRESENT != 0)
            .map(|tag| tag as u16 & 0x0fff)
    }
}

const _: () = assert!(MAX_VLAN_TAGS * 16 == 64);

/// Finds the network header: its family, which is put down, and its offset.
#[inline(always)]
pub(super) fn parse<O: Octets + ?Sized>(
    octets: &O,
    link: LinkType,
    frame: &mut Frame,
) -> Result<usize, Untracked> {
    match link {
        LinkType::Ethernet => ethernet(octets, frame),
        LinkType::Ip => {
            let [first, _] = octets.read(0).ok_or(Untracked::Truncated)?;
            frame.family = match first >> 4 {
                4 => Family::V4,
                6 => Family::V6,
                _ => return Err(Untracked::NonIp),
            };
            Ok(0)
        }
    }
}

#[inline(always)]
fn ethernet<O: Octets + ?Sized>(octets: &O, frame: &mut Frame) -> Result<usize, Untracked> {
    let mut ethertype = u16::from_be_bytes(octets.read(ETHERNET_HEADER - 2).ok_or(Untracked::Truncated)?);
    let mut offset = ETHERNET_HEADER;
    // One round more than there may be tags, to look at what the last one announces.
    for _ in 0..=MAX_VLAN_TAGS {
        match ethertype {
            ETHERTYPE_IPV4 => {
                frame.family = Family::V4;
                return Ok(offset);
            }
            ETHERTYPE_IPV6 => {
                frame.family = Family::V6;
                return Ok(offset);
            }
            ETHERTYPE_VLAN | ETHERTYPE_SERVICE_VLAN | ETHERTYPE_OLD_SERVICE_VLAN => {
                let tag = u32::from_be_bytes(octets.read(offset).ok_or(Untracked::Truncated)?);
                frame.vlan.push((tag >> 16) as u16);
                ethertype = tag as u16;
                offset += VLAN_TAG;
            }
            _ => return Err(Untracked::NonIp),
        }
    }
    Err(Untracked::Unsupported)
}

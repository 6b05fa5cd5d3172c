//! Interfaces, with more details than measuring needs.

use rtnetlink::{
    packet_core::{Emitable as _, NLM_F_ACK, parse_u32},
    packet_route::{
        RouteNetlinkMessage,
        link::{LinkHeader, LinkMessage},
    },
};

use crate::kernel::{
    Error,
    attach_point::AttachPoint,
    interfaces::Link,
    netlink::{self, LinkAnswer},
    rtnetlink::{Rtnetlink, attribute},
};

// Of linux/if_link.h.
const IFLA_LINK: u16 = 5;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;
const IFLA_PROMISCUITY: u16 = 30;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_ATTACHED: u16 = 2;
const IFLA_XDP_PROG_ID: u16 = 4;
const IFLA_XDP_DRV_PROG_ID: u16 = 5;
const IFLA_XDP_SKB_PROG_ID: u16 = 6;
const IFLA_XDP_HW_PROG_ID: u16 = 7;
/// `XDP_ATTACHED_SKB`.
const ATTACHED_SKB: u8 = 2;

/// An interface.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Debug, Default)]
pub(crate) struct Interface {
    /// The interface as measuring knows it.
    pub(crate) link: Link,
    /// Whether it is switched on.
    pub(crate) is_up: bool,
    /// Whether it has a carrier: the cable is plugged in, or whatever takes its place.
    pub(crate) has_carrier: bool,
    /// The ifindex of the interface whose VLAN it is, if it is one.
    pub(crate) vlan_of: Option<u32>,
    /// Whether it is a bridge.
    pub(crate) is_bridge: bool,
    /// The ifindex of the bridge or bond whose port it is, if it is one.
    pub(crate) port_of: Option<u32>,
    /// Whether it takes frames to all addresses, at the wish of an administrator or of a program.
    pub(crate) is_promiscuous: bool,
    /// The packets that came in and went out since it was made, as its driver counts them.
    pub(crate) packets: [u64; 2],
    /// The attach points of XDP programs, with the programs' ids. (Offloaded to the card counts as native.)
    pub(crate) xdp: Vec<(AttachPoint, u32)>,
}

/// Returns all interfaces.
///
/// # Errors
/// If the kernel does not list them.
pub(crate) async fn links() -> Result<Vec<Interface>, Error> {
    let all = || RouteNetlinkMessage::GetLink(LinkMessage::default());
    Ok(netlink::map_links(all, interface).await?.found)
}

/// Returns the id of the XDP program of an interface, or of one of them.
pub(crate) fn xdp_program(ifindex: u32) -> Option<u32> {
    let mut message = LinkMessage::default();
    message.header.index = ifindex;
    let mut id = None;
    Rtnetlink::connect()
        .and_then(|mut rtnetlink| {
            rtnetlink.request(RouteNetlinkMessage::GetLink(message), NLM_F_ACK, |answer| {
                let attributes = answer.get(LinkHeader::default().buffer_len()..).unwrap_or_default();
                let found = attribute(attributes, IFLA_XDP).and_then(|xdp| attribute(xdp, IFLA_XDP_PROG_ID));
                id = found.and_then(|found| parse_u32(found).ok()).or(id);
            })
        })
        .ok()?;
    id
}

fn interface(answer: &LinkAnswer<'_>) -> Option<Interface> {
    let has = |flag: libc::c_int| answer.flags & flag.cast_unsigned() != 0;
    Some(Interface {
        link: answer.link()?,
        is_up: has(libc::IFF_UP),
        has_carrier: has(libc::IFF_LOWER_UP),
        vlan_of: vlan_of(answer),
        is_bridge: kind(answer).is_some_and(|kind| kind == b"bridge\0"),
        port_of: answer.attribute(IFLA_MASTER).and_then(|master| parse_u32(master).ok()),
        // The flag would leave out what programs ask for.
        is_promiscuous: answer.attribute(IFLA_PROMISCUITY).and_then(|it| parse_u32(it).ok()).unwrap_or(0) > 0,
        packets: answer.attribute(IFLA_STATS64).map(packets).unwrap_or_default(),
        xdp: answer.attribute(IFLA_XDP).map(attached).unwrap_or_default(),
    })
}

/// Reads whose VLAN an interface is.
fn vlan_of(answer: &LinkAnswer<'_>) -> Option<u32> {
    (kind(answer)? == b"vlan\0").then(|| parse_u32(answer.attribute(IFLA_LINK)?).ok()).flatten()
}

/// Reads the kind of a virtual interface: a string that ends with a zero.
fn kind<'a>(answer: &'a LinkAnswer<'_>) -> Option<&'a [u8]> {
    attribute(answer.attribute(IFLA_LINKINFO)?, IFLA_INFO_KIND)
}

/// Reads the packets that came in and went out: the first two numbers of `struct rtnl_link_stats64`.
fn packets(statistics: &[u8]) -> [u64; 2] {
    let (numbers, _) = statistics.as_chunks();
    match *numbers {
        [received, sent, ..] => [received, sent].map(u64::from_ne_bytes),
        _ => [0; 2],
    }
}

/// Reads which XDP programs are attached, and where.
fn attached(xdp: &[u8]) -> Vec<(AttachPoint, u32)> {
    let id = |kind, attach_point| {
        let id = attribute(xdp, kind).and_then(|id| parse_u32(id).ok())?;
        // The id is 0 if there is no program.
        (id != 0).then_some((attach_point, id))
    };
    let several = [
        id(IFLA_XDP_DRV_PROG_ID, AttachPoint::XdpNative),
        id(IFLA_XDP_HW_PROG_ID, AttachPoint::XdpNative),
        id(IFLA_XDP_SKB_PROG_ID, AttachPoint::XdpGeneric),
    ];
    let mut found: Vec<(AttachPoint, u32)> = several.into_iter().flatten().collect();
    if found.is_empty() {
        let is_generic = attribute(xdp, IFLA_XDP_ATTACHED) == Some(&[ATTACHED_SKB]);
        let attach_point = if is_generic { AttachPoint::XdpGeneric } else { AttachPoint::XdpNative };
        found.extend(id(IFLA_XDP_PROG_ID, attach_point));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(attributes: &[(u16, u32)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for &(kind, value) in attributes {
            let len = if kind == IFLA_XDP_ATTACHED { 1 } else { 4 };
            bytes.extend((len + 4_u16).to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(value.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn programs_are_found_where_they_are_attached() {
        let (driver, several) = (1, 4);
        for (attributes, expected) in [
            (&[(IFLA_XDP_ATTACHED, 0)][..], &[][..]),
            (
                &[(IFLA_XDP_ATTACHED, driver), (IFLA_XDP_PROG_ID, 7), (IFLA_XDP_DRV_PROG_ID, 7)],
                &[(AttachPoint::XdpNative, 7)],
            ),
            (
                &[(IFLA_XDP_ATTACHED, ATTACHED_SKB.into()), (IFLA_XDP_PROG_ID, 7)],
                &[(AttachPoint::XdpGeneric, 7)],
            ),
            (
                &[(IFLA_XDP_ATTACHED, several), (IFLA_XDP_DRV_PROG_ID, 7), (IFLA_XDP_SKB_PROG_ID, 8)],
                &[(AttachPoint::XdpNative, 7), (AttachPoint::XdpGeneric, 8)],
            ),
        ] {
            assert_eq!(attached(&nested(attributes)), expected);
        }
    }
}

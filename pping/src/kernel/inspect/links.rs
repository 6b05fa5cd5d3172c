//! Interfaces, with more details than measuring needs.

use rtnetlink::{
    packet_core::{Emitable as _, NLM_F_ACK, parse_u32},
    packet_route::{
        RouteNetlinkMessage,
        link::{LinkAttribute, LinkFlags, LinkHeader, LinkMessage, LinkXdp, XdpAttached},
    },
};

use crate::kernel::{
    Error,
    attach::AttachPoint,
    interfaces::{self, Link, Netlink},
    rtnetlink::{Rtnetlink, attribute},
};

/// An interface.
#[derive(Clone, Debug)]
pub(crate) struct Interface {
    /// The interface as measuring knows it.
    pub(crate) link: Link,
    /// Whether it is switched on.
    pub(crate) is_up: bool,
    /// Whether it has a carrier: the cable is plugged in, or whatever takes its place.
    pub(crate) has_carrier: bool,
    /// The attach points of XDP programs, with the programs' ids. (Offloaded to the card counts as native.)
    pub(crate) xdp: Vec<(AttachPoint, u32)>,
}

/// Returns all interfaces.
///
/// # Errors
/// If the kernel does not list them.
pub(crate) async fn links(netlink: &Netlink) -> Result<Vec<Interface>, Error> {
    netlink.map_links(interface).await
}

/// Returns the id of the XDP program of an interface, or of one of them.
pub(crate) fn xdp_program(ifindex: u32) -> Option<u32> {
    // Of linux/if_link.h.
    const IFLA_XDP: u16 = 43;
    const IFLA_XDP_PROG_ID: u16 = 4;
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

fn interface(message: &LinkMessage) -> Option<Interface> {
    let flags = message.header.flags;
    let xdp = message.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::Xdp(xdp) => Some(attached(xdp)),
        _ => None,
    });
    Some(Interface {
        link: interfaces::link(message)?,
        is_up: flags.contains(LinkFlags::Up),
        has_carrier: flags.contains(LinkFlags::LowerUp),
        xdp: xdp.unwrap_or_default(),
    })
}

fn attached(xdp: &[LinkXdp]) -> Vec<(AttachPoint, u32)> {
    let is_generic = xdp.contains(&LinkXdp::Attached(XdpAttached::SocketBuffer));
    let several = xdp.iter().filter_map(|attribute| match attribute {
        LinkXdp::DrvProgId(id) | LinkXdp::HwProgId(id) => Some((AttachPoint::XdpNative, *id)),
        LinkXdp::SkbProgId(id) => Some((AttachPoint::XdpGeneric, *id)),
        _ => None,
    });
    let mut found: Vec<(AttachPoint, u32)> = several.collect();
    if found.is_empty() {
        let attach_point = if is_generic { AttachPoint::XdpGeneric } else { AttachPoint::XdpNative };
        // The id is 0 if there is no program.
        found.extend(xdp.iter().filter_map(|attribute| match attribute {
            LinkXdp::ProgId(id) if *id != 0 => Some((attach_point, *id)),
            _ => None,
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_where_they_are_attached() {
        let none = [LinkXdp::Attached(XdpAttached::None)];
        assert_eq!(attached(&none), []);
        let driver = [LinkXdp::Attached(XdpAttached::Driver), LinkXdp::ProgId(7), LinkXdp::DrvProgId(7)];
        assert_eq!(attached(&driver), [(AttachPoint::XdpNative, 7)]);
        let old = [LinkXdp::Attached(XdpAttached::SocketBuffer), LinkXdp::ProgId(7)];
        assert_eq!(attached(&old), [(AttachPoint::XdpGeneric, 7)]);
        let both = [LinkXdp::Attached(XdpAttached::Multiple), LinkXdp::DrvProgId(7), LinkXdp::SkbProgId(8)];
        assert_eq!(attached(&both), [(AttachPoint::XdpNative, 7), (AttachPoint::XdpGeneric, 8)]);
    }
}

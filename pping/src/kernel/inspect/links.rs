//! Interfaces, with more than measuring needs to know of them.

use futures_util::TryStreamExt as _;
use rtnetlink::{
    Handle,
    packet_route::link::{LinkAttribute, LinkFlags, LinkMessage, LinkXdp, XdpAttached},
};

use super::super::interfaces::{self, Link};
use crate::kernel::{Error, attach::AttachPoint};

/// An interface.
#[derive(Clone, Debug)]
pub(crate) struct Interface {
    /// What is known of every interface.
    pub(crate) link: Link,
    /// Whether it is switched on.
    pub(crate) is_up: bool,
    /// Whether the cable is plugged in, or what there is in its place.
    pub(crate) has_carrier: bool,
    /// Where XDP programs are attached, and their ids. (In the card itself counts as native.)
    pub(crate) xdp: Vec<(AttachPoint, u32)>,
}

/// The interfaces there are.
///
/// # Errors
/// When the kernel does not say.
pub(crate) async fn links(handle: &Handle) -> Result<Vec<Interface>, Error> {
    let links = handle.link().get().execute();
    Ok(links.try_filter_map(|message| async move { Ok(interface(&message)) }).try_collect().await?)
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
        // Zero where there is none.
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

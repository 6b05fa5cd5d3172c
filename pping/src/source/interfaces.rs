//! The kernel's interfaces and addresses, by rtnetlink.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv6Addr},
};

use futures_util::{StreamExt as _, TryStreamExt as _};
use pping_common::{
    abi::{Interface, place},
    limits::INTERFACE_PROBES,
    parse::LinkType,
};
use rtnetlink::{
    Handle, MulticastGroup, new_multicast_connection,
    packet_core::NetlinkPayload,
    packet_route::{
        RouteNetlinkMessage,
        address::AddressAttribute,
        link::{LinkAttribute, LinkMessage},
    },
};

use super::load::Kernel;
use crate::Error;

/// Names that are like enough to what was typed to be what was meant.
const LIKENESS: f64 = 0.6;

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// The kernel's number of it.
    pub ifindex: u32,
    /// The kernel's number of its type (`ARPHRD_*`).
    pub hardware_type: u16,
}

/// What changed in the kernel.
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    /// An interface was deleted, or has this name now.
    Link {
        /// Its number.
        ifindex: u32,
        /// Its name; `None` when it is gone.
        name: Option<String>,
    },
    /// The addresses of this host changed.
    Addresses,
}

/// A connection to the kernel's routing socket.
pub struct Netlink {
    handle: Handle,
    changes: std::pin::Pin<Box<dyn futures_util::Stream<Item = Change> + Send>>,
}

impl Netlink {
    /// Connects, and listens for changes from then on.
    ///
    /// # Errors
    /// When the socket cannot be had.
    pub fn connect() -> Result<Self, Error> {
        let (connection, handle, messages) = new_multicast_connection(&[
            MulticastGroup::Link,
            MulticastGroup::Ipv4Ifaddr,
            MulticastGroup::Ipv6Ifaddr,
        ])?;
        tokio::spawn(connection);
        let changes = messages.filter_map(|(message, _)| async move {
            match message.payload {
                NetlinkPayload::InnerMessage(message) => change(message),
                _ => None,
            }
        });
        Ok(Self { handle, changes: Box::pin(changes) })
    }

    /// The next change. Never resolves once the socket is gone.
    pub async fn changed(&mut self) -> Change {
        match self.changes.next().await {
            Some(change) => change,
            None => std::future::pending().await,
        }
    }

    /// The interfaces with these names.
    ///
    /// # Errors
    /// [`Error::UnknownInterface`] with the nearest names where there is none.
    pub async fn find(&self, names: &[String]) -> Result<Vec<Link>, Error> {
        let links: Vec<Link> = self
            .handle
            .link()
            .get()
            .execute()
            .try_filter_map(|message| async move { Ok(link(&message)) })
            .try_collect()
            .await?;
        names
            .iter()
            .map(|name| {
                links.iter().find(|link| link.name == *name).cloned().ok_or_else(|| Error::UnknownInterface {
                    name: name.clone(),
                    hint: nearest(name, links.iter().map(|link| link.name.as_str())),
                })
            })
            .collect()
    }

    /// The addresses of this host, IPv4 mapped into IPv6.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub async fn addresses(&self) -> Result<BTreeSet<[u8; 16]>, Error> {
        let addresses = self.handle.address().get().execute();
        Ok(addresses
            .try_fold(BTreeSet::new(), |mut addresses, message| async move {
                for attribute in &message.attributes {
                    if let AddressAttribute::Local(address) | AddressAttribute::Address(address) = attribute {
                        // On a point-to-point interface `Address` is the other end's.
                        let is_peer = matches!(attribute, AddressAttribute::Address(_))
                            && message.attributes.iter().any(
                                |other| matches!(other, AddressAttribute::Local(local) if local != address),
                            );
                        if !is_peer {
                            addresses.insert(mapped(*address));
                        }
                    }
                }
                Ok(addresses)
            })
            .await?)
    }
}

impl Link {
    /// Puts the interface into the table of those that the kernel programs watch, and returns its place.
    ///
    /// # Errors
    /// When its type is not supported, or the table has no room.
    pub fn register(&self, kernel: &mut Kernel) -> Result<u16, Error> {
        let entry = Interface { ifindex: self.ifindex, link_type: self.link_type()? as u32 };
        for probe in 0..INTERFACE_PROBES {
            let place = place(self.ifindex, probe);
            if kernel.interfaces.get(&place, 0)?.ifindex == 0 {
                kernel.series.keep(place as u16)?;
                kernel.interfaces.set(place, entry, 0)?;
                return Ok(place as u16);
            }
        }
        Err(Error::TooManyInterfaces { name: self.name.clone() })
    }

    fn link_type(&self) -> Result<LinkType, Error> {
        // Of linux/if_arp.h; `libc` lacks them.
        const ARPHRD_RAWIP: u16 = 519;
        const ARPHRD_IP6GRE: u16 = 823;
        match self.hardware_type {
            libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Ok(LinkType::Ethernet),
            libc::ARPHRD_NONE
            | libc::ARPHRD_PPP
            | libc::ARPHRD_TUNNEL
            | libc::ARPHRD_TUNNEL6
            | libc::ARPHRD_SIT
            | libc::ARPHRD_IPGRE
            | ARPHRD_IP6GRE
            | ARPHRD_RAWIP => Ok(LinkType::Ip),
            number => Err(Error::UnsupportedLinkType { name: self.name.clone(), number }),
        }
    }
}

/// Makes the kernel programs' idea of this host's addresses `addresses`, known so far as `known`.
///
/// # Errors
/// When the map cannot be written.
pub fn set_local_addresses(
    kernel: &mut Kernel,
    known: &mut BTreeSet<[u8; 16]>,
    addresses: BTreeSet<[u8; 16]>,
) -> Result<(), Error> {
    for address in known.difference(&addresses) {
        kernel.local_addresses.remove(address)?;
    }
    for address in addresses.difference(known) {
        kernel.local_addresses.insert(address, 1, 0)?;
    }
    *known = addresses;
    Ok(())
}

fn change(message: RouteNetlinkMessage) -> Option<Change> {
    match message {
        RouteNetlinkMessage::NewLink(message) => {
            link(&message).map(|link| Change::Link { ifindex: link.ifindex, name: Some(link.name) })
        }
        RouteNetlinkMessage::DelLink(message) => {
            Some(Change::Link { ifindex: message.header.index, name: None })
        }
        RouteNetlinkMessage::NewAddress(_) | RouteNetlinkMessage::DelAddress(_) => Some(Change::Addresses),
        _ => None,
    }
}

fn link(message: &LinkMessage) -> Option<Link> {
    let name = message.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name.clone()),
        _ => None,
    })?;
    Some(Link { name, ifindex: message.header.index, hardware_type: message.header.link_layer_type.into() })
}

fn mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
    .octets()
}

fn nearest<'a>(name: &'a str, names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<(f64, &str)> =
        names.map(|other| (strsim::normalized_damerau_levenshtein(name, other), other)).collect();
    names.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let like: Vec<&str> =
        names.iter().take_while(|(likeness, _)| *likeness >= LIKENESS).map(|(_, name)| *name).collect();
    if like.is_empty() {
        let all: Vec<&str> = names.iter().take(8).map(|(_, name)| *name).collect();
        format!("there are {}", all.join(", "))
    } else {
        format!("did you mean {}?", like.join(" or "))
    }
}

const _: () = assert!(size_of::<Ipv6Addr>() == 16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_are_offered_and_else_those_there_are() {
        let names = ["lo", "eth0", "eth1", "wlan0"];
        assert_eq!(nearest("eht0", names.into_iter()), "did you mean eth0?");
        assert_eq!(nearest("ppp7", names.into_iter()).matches(", ").count(), 3);
    }

    #[test]
    fn interfaces_of_an_unknown_type_are_refused_by_number() {
        let link = Link { name: "ib0".into(), ifindex: 3, hardware_type: libc::ARPHRD_INFINIBAND };
        assert!(link.link_type().unwrap_err().to_string().contains("32"));
        let link = Link { hardware_type: libc::ARPHRD_PPP, ..link };
        assert_eq!(link.link_type().unwrap(), LinkType::Ip);
    }
}

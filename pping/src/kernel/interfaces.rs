//! The kernel's interfaces and addresses, by rtnetlink.

use std::{
    collections::BTreeSet,
    future::ready,
    net::{IpAddr, Ipv6Addr},
    time::Duration,
};

use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use pping_common::{abi::Interface, parse::LinkType};
use rtnetlink::{
    Handle, MulticastGroup, new_multicast_connection,
    packet_core::NetlinkPayload,
    packet_route::{
        RouteNetlinkMessage,
        address::AddressAttribute,
        link::{LinkAttribute, LinkMessage},
    },
};

use tokio::time::{Instant, sleep_until};

use super::{interface_ids::Taken, load::Kernel};
use crate::kernel::Error;

/// The time to wait before connecting again, should the socket fail.
const RECONNECT_INTERVAL: Duration = Duration::from_secs(1);

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

/// A change of interfaces or addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Whether interfaces came, went or were renamed.
    pub links: bool,
    /// Whether the addresses of this host changed.
    pub addresses: bool,
}

impl Change {
    /// Anything may have changed.
    const EVERYTHING: Self = Self { links: true, addresses: true };

    fn and(self, other: Self) -> Self {
        Self { links: self.links || other.links, addresses: self.addresses || other.addresses }
    }
}

/// A connection to the kernel's routing socket.
pub struct Netlink {
    handle: Handle,
    changes: Changes,
    /// When to connect again, after the socket failed.
    reconnect_at: Option<Instant>,
}

type Changes = std::pin::Pin<Box<dyn futures_util::Stream<Item = Change> + Send>>;

impl Netlink {
    /// Connects, and listens for changes from then on.
    ///
    /// # Errors
    /// If the socket cannot be opened.
    pub fn connect() -> Result<Self, Error> {
        let (connection, handle, messages) = new_multicast_connection(&[
            MulticastGroup::Link,
            MulticastGroup::Ipv4Ifaddr,
            MulticastGroup::Ipv6Ifaddr,
        ])?;
        tokio::spawn(connection);
        let changes = messages.filter_map(|(message, _)| ready(change(&message.payload)));
        Ok(Self { handle, changes: Box::pin(changes), reconnect_at: None })
    }

    /// Waits for the next changes, and merges them: the caller reads the present state once for all of them.
    pub async fn changed(&mut self) -> Change {
        // The caller may drop this future at any await, and call again.
        loop {
            if let Some(reconnect_at) = self.reconnect_at {
                sleep_until(reconnect_at).await;
                match Self::connect() {
                    Ok(netlink) => {
                        *self = netlink;
                        // Messages may have been lost.
                        return Change::EVERYTHING;
                    }
                    Err(error) => tracing::error!("{error}"),
                }
            } else if let Some(change) = self.changes.next().await {
                return self.merge_arrived(change);
            } else {
                tracing::warn!("the kernel's routing socket failed; connecting again");
            }
            self.reconnect_at = Some(Instant::now() + RECONNECT_INTERVAL);
        }
    }

    /// Merges a change with those that have arrived already.
    fn merge_arrived(&mut self, mut change: Change) -> Change {
        while let Some(Some(more)) = self.changes.next().now_or_never() {
            change = change.and(more);
        }
        change
    }

    /// Returns all interfaces.
    ///
    /// # Errors
    /// If the kernel does not list them.
    pub async fn links(&self) -> Result<Vec<Link>, Error> {
        self.map_links(link).await
    }

    /// Returns the interfaces for which `make` returns something, made from the kernel's messages.
    pub(super) async fn map_links<T>(&self, make: fn(&LinkMessage) -> Option<T>) -> Result<Vec<T>, Error> {
        let links = self.handle.link().get().execute();
        Ok(links.try_filter_map(|message| ready(Ok(make(&message)))).try_collect().await?)
    }

    /// Returns the addresses of this host, IPv4 mapped into IPv6.
    ///
    /// # Errors
    /// If the kernel does not list them.
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
    /// Adds the interface to those that the kernel programs watch, and returns its id.
    ///
    /// # Errors
    /// If its type is not supported, or the table has no room.
    pub fn register(&self, kernel: &mut Kernel) -> Result<u16, Error> {
        let link_type = self.link_type()?;
        let full = || Error::TooManyInterfaces { name: self.name.clone() };
        let Taken { id, is_reused } = kernel.interface_ids.choose(&self.name).ok_or_else(full)?;
        if is_reused {
            kernel.series.remove_interface(id)?;
            kernel.counters.clear(id);
            if let Some(residence) = &mut kernel.residence {
                residence.clear(id)?;
            }
        }
        kernel.series.add_interface(id, kernel.options.has_queues_of_groups())?;
        let interface = Interface {
            ifindex: self.ifindex,
            id,
            link_type: link_type as u16,
            sweep: kernel.series.sweep(),
            ..Interface::EMPTY
        };
        if !kernel.interface_ids.insert(interface, &self.name)? {
            return Err(full());
        }
        kernel.sweeper.watch(&kernel.interface_ids)?;
        Ok(id)
    }

    /// The link type: the header at the start of its frames.
    ///
    /// # Errors
    /// If its type is not supported.
    pub fn link_type(&self) -> Result<LinkType, Error> {
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

/// Updates the kernel programs' map of this host's addresses, which contains `known`, to contain `addresses`. Addresses
/// for which the map has no room are left out, and logged.
///
/// # Errors
/// If an address cannot be removed from the map.
pub fn set_local_addresses(
    kernel: &mut Kernel,
    known: &mut BTreeSet<[u8; 16]>,
    addresses: BTreeSet<[u8; 16]>,
) -> Result<(), Error> {
    for address in known.difference(&addresses) {
        kernel.local_addresses.remove(address)?;
    }
    known.retain(|address| addresses.contains(address));
    let mut left_out = 0;
    for address in addresses {
        if known.contains(&address) {
            continue;
        }
        match kernel.local_addresses.insert(address, 1, 0) {
            Ok(()) => {
                known.insert(address);
            }
            Err(_) => left_out += 1,
        }
    }
    if left_out > 0 {
        tracing::warn!(
            "{left_out} addresses of this host have no room: packets to them are measured as if forwarded"
        );
    }
    Ok(())
}

fn change(payload: &NetlinkPayload<RouteNetlinkMessage>) -> Option<Change> {
    match payload {
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(_) | RouteNetlinkMessage::DelLink(_)) => {
            Some(Change { links: true, addresses: false })
        }
        NetlinkPayload::InnerMessage(
            RouteNetlinkMessage::NewAddress(_) | RouteNetlinkMessage::DelAddress(_),
        ) => Some(Change { links: false, addresses: true }),
        // The socket's buffer overflowed: any change may have been lost.
        NetlinkPayload::Overrun(_) => Some(Change::EVERYTHING),
        _ => None,
    }
}

pub(super) fn link(message: &LinkMessage) -> Option<Link> {
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

const _: () = assert!(size_of::<Ipv6Addr>() == 16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_of_an_unknown_type_are_refused_by_number() {
        let link = Link { name: "ib0".into(), ifindex: 3, hardware_type: libc::ARPHRD_INFINIBAND };
        assert!(link.link_type().unwrap_err().to_string().contains("32"));
        let link = Link { hardware_type: libc::ARPHRD_PPP, ..link };
        assert_eq!(link.link_type().unwrap(), LinkType::Ip);
    }

    #[test]
    fn changes_add_up() {
        let (links, addresses) =
            (Change { links: true, addresses: false }, Change { links: false, addresses: true });
        assert_eq!(links.and(addresses), Change::EVERYTHING);
        assert_eq!(links.and(Change::default()), links);
    }
}

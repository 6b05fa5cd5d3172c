//! The interfaces and addresses that the kernel programs know.

use std::collections::BTreeSet;

use pping_common::{
    abi::{Interface, Later},
    parse::LinkType,
};

use super::{interface_ids::Taken, loaded::Kernel};
use crate::kernel::Error;

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Its name, escaped where it is no text.
    pub name: String,
    /// Its alternative names (`ip link property add`).
    pub alternative_names: Vec<String>,
    /// The kernel's number of it.
    pub ifindex: u32,
    /// The kernel's number of its type (`ARPHRD_*`).
    pub hardware_type: u16,
    /// The length of the longest packet that it carries.
    pub mtu: u32,
}

impl Link {
    /// All its names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.name).chain(&self.alternative_names).map(String::as_str)
    }

    /// Adds the interface to those that the kernel programs watch, and returns its id.
    ///
    /// # Errors
    /// If its type is not supported, or the table has no room.
    pub fn register(&self, kernel: &mut Kernel) -> Result<u16, Error> {
        self.register_as(kernel, None)
    }

    /// Like [`Self::register`]. Its flows and series have the id of the interfaces that it is joined with, if it is.
    ///
    /// # Errors
    /// Like [`Self::register`].
    pub fn register_as(&self, kernel: &mut Kernel, joined_id: Option<u16>) -> Result<u16, Error> {
        let link_type = self.link_type()?;
        let id = take_id(kernel, &self.name)?;
        let joined = joined_id.map_or(0, |joined_id| Interface::joined(id, joined_id));
        let interface = Interface {
            ifindex: self.ifindex,
            id,
            link_type: link_type as u16,
            sweep: kernel.series.sweep(),
            later: Later { joined, ..Interface::EMPTY.later },
            ..Interface::EMPTY
        };
        if !kernel.interface_ids.insert(interface, &self.name)? {
            return Err(Error::TooManyInterfaces { name: self.name.clone() });
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

/// Returns the interface id of joined interfaces, by their common name.
///
/// # Errors
/// If all ids are taken.
pub fn register_joined(kernel: &mut Kernel, name: &str) -> Result<u16, Error> {
    let id = take_id(kernel, name)?;
    kernel.interface_ids.own(id, name)?;
    Ok(id)
}

/// Takes the id for a name, and makes its permanent series.
fn take_id(kernel: &mut Kernel, name: &str) -> Result<u16, Error> {
    let full = || Error::TooManyInterfaces { name: name.to_owned() };
    let Taken { id, is_reused } = kernel.interface_ids.choose(name).ok_or_else(full)?;
    if is_reused {
        kernel.series.remove_interface(id)?;
        kernel.counters.clear(id);
        if let Some(residence) = &mut kernel.residence {
            residence.clear(id)?;
        }
    }
    kernel.series.add_interface(id, kernel.options.has_queues_of_groups())?;
    Ok(id)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_of_an_unknown_type_are_refused_by_number() {
        let hardware_type = libc::ARPHRD_INFINIBAND;
        let link = Link { name: "ib0".into(), ifindex: 3, hardware_type, ..Link::default() };
        assert!(link.link_type().unwrap_err().to_string().contains("32"));
        let link = Link { hardware_type: libc::ARPHRD_PPP, ..link };
        assert_eq!(link.link_type().unwrap(), LinkType::Ip);
    }
}

//! The interfaces of a capture, numbered by ids of 16 bits.

use std::{collections::HashMap, sync::Arc};

use crate::foreign_text::sanitized;

/// The length at which the name of an interface is cut, bytes.
const MAX_NAME: usize = 64;

/// The identity of an interface. A file may have several sections, for instance after `cat`, and each describes its interfaces.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    /// Its number in the section.
    number: u32,
    name: Option<Arc<str>>,
    link_type: u32,
}

/// The interfaces seen so far.
#[derive(Debug, Default)]
pub(super) struct InterfaceIds {
    names: Vec<Option<Arc<str>>>,
    described: HashMap<Identity, u16>,
    /// Interfaces of a Linux cooked capture, by the id of the interface that was captured (`any`) and the ifindex.
    cooked: HashMap<(u16, u32), u16, foldhash::fast::RandomState>,
    /// The last interface looked up in `cooked`.
    latest: Option<((u16, u32), u16)>,
}

impl InterfaceIds {
    /// The id of an interface of a pcapng file; `None` if there are too many.
    pub(super) fn of_described(&mut self, number: u32, name: Option<&str>, link_type: u32) -> Option<u16> {
        let identity = Identity { number, name: name.map(harmless), link_type };
        if let Some(&id) = self.described.get(&identity) {
            return Some(id);
        }
        let name = identity.name.clone().unwrap_or_else(|| number.to_string().into());
        let id = self.add(Some(name))?;
        self.described.insert(identity, id);
        Some(id)
    }

    /// The id of the only interface of a pcap file.
    pub(super) fn of_only(&mut self) -> u16 {
        self.add(None).unwrap_or_default()
    }

    /// The id of an interface in a Linux cooked capture; `None` if there are too many.
    #[inline]
    pub(super) fn of_cooked(&mut self, captured_on: u16, ifindex: u32) -> Option<u16> {
        let identity = (captured_on, ifindex);
        if let Some((latest, id)) = self.latest
            && latest == identity
        {
            return Some(id);
        }
        let id = if let Some(&id) = self.cooked.get(&identity) {
            id
        } else {
            let id = self.add(Some(format!("ifindex {ifindex}").into()))?;
            self.cooked.insert(identity, id);
            id
        };
        self.latest = Some((identity, id));
        Some(id)
    }

    /// The name of an interface, if it has one.
    pub(super) fn name(&self, id: u16) -> Option<&Arc<str>> {
        self.names.get(usize::from(id))?.as_ref()
    }

    fn add(&mut self, name: Option<Arc<str>>) -> Option<u16> {
        let id = u16::try_from(self.names.len()).ok()?;
        self.names.push(name);
        Some(id)
    }
}

/// Cuts a name, and replaces what could harm a terminal that prints it.
fn harmless(name: &str) -> Arc<str> {
    let name = name.get(..name.floor_char_boundary(MAX_NAME)).unwrap_or_default();
    sanitized(name).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_interface_in_another_section_has_the_same_id() {
        let mut interface_ids = InterfaceIds::default();
        let eth0 = interface_ids.of_described(0, Some("eth0"), 1);
        assert_ne!(interface_ids.of_described(1, Some("eth1"), 1), eth0);
        assert_eq!(interface_ids.of_described(0, Some("eth0"), 1), eth0);
        assert_ne!(interface_ids.of_described(0, Some("eth0"), 113), eth0);
        assert_ne!(interface_ids.of_described(0, None, 1), eth0);
        assert_eq!(interface_ids.name(eth0.unwrap()).unwrap().as_ref(), "eth0");
        assert_eq!(interface_ids.name(3).unwrap().as_ref(), "0");
    }

    #[test]
    fn names_control_no_terminal() {
        let mut interface_ids = InterfaceIds::default();
        let id = interface_ids.of_described(0, Some("eth0\u{1b}[2J\n\u{9b}ü"), 1).unwrap();
        assert_eq!(interface_ids.name(id).unwrap().as_ref(), "eth0?[2J??ü");
    }

    #[test]
    fn ids_and_names_are_bounded() {
        let mut interface_ids = InterfaceIds::default();
        let name = "ü".repeat(40);
        assert_eq!(interface_ids.of_described(0, Some(&name), 276), Some(0));
        assert_eq!(interface_ids.name(0).unwrap().len(), MAX_NAME);
        for ifindex in 1..65_536 {
            assert_eq!(interface_ids.of_cooked(0, ifindex), Some(ifindex as u16));
        }
        assert_eq!(interface_ids.of_cooked(0, 65_536), None);
        assert_eq!(interface_ids.of_described(1, None, 1), None);
        assert_eq!(interface_ids.of_cooked(0, 3), Some(3));
    }
}

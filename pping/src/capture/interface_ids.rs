//! The interfaces of a capture. Flows carry the place of theirs, which is 16 bits wide.

use std::{collections::HashMap, sync::Arc};

/// Bytes that are kept of an interface's name.
const LONGEST_NAME: usize = 64;

/// What makes two interfaces of a file the same: files that were put together (`cat`) have a section each, in which
/// the interfaces are described anew.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    /// Where the section has it.
    position: u32,
    name: Option<Arc<str>>,
    link_type: u32,
}

/// The interfaces seen so far, each in its place.
#[derive(Debug, Default)]
pub(super) struct InterfaceIds {
    names: Vec<Option<Arc<str>>>,
    described: HashMap<Identity, u16>,
    /// Those of a cooked capture, by the place of what it was captured on, and the kernel's number of it.
    cooked: HashMap<(u16, u32), u16, foldhash::fast::RandomState>,
    /// The last of those.
    latest: Option<((u16, u32), u16)>,
}

impl InterfaceIds {
    /// The place of an interface of a pcapng file; `None` when there are too many.
    pub(super) fn of_described(&mut self, position: u32, name: Option<&str>, link_type: u32) -> Option<u16> {
        let identity = Identity { position, name: name.map(shortened), link_type };
        if let Some(&id) = self.described.get(&identity) {
            return Some(id);
        }
        let name = identity.name.clone().unwrap_or_else(|| position.to_string().into());
        let id = self.add(Some(name))?;
        self.described.insert(identity, id);
        Some(id)
    }

    /// The place of the only interface of a pcap file.
    pub(super) fn of_only(&mut self) -> u16 {
        self.add(None).unwrap_or_default()
    }

    /// The place of interface number `ifindex` of a capture on all interfaces; `None` when there are too many.
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

    /// The name of the interface in a place, if it has any.
    pub(super) fn name(&self, id: u16) -> Option<&Arc<str>> {
        self.names.get(usize::from(id))?.as_ref()
    }

    fn add(&mut self, name: Option<Arc<str>>) -> Option<u16> {
        let id = u16::try_from(self.names.len()).ok()?;
        self.names.push(name);
        Some(id)
    }
}

fn shortened(name: &str) -> Arc<str> {
    name.get(..name.floor_char_boundary(LONGEST_NAME)).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_interface_of_another_section_has_the_same_place() {
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
    fn places_and_names_are_bounded() {
        let mut interface_ids = InterfaceIds::default();
        let name = "ü".repeat(40);
        assert_eq!(interface_ids.of_described(0, Some(&name), 276), Some(0));
        assert_eq!(interface_ids.name(0).unwrap().len(), LONGEST_NAME);
        for ifindex in 1..65_536 {
            assert_eq!(interface_ids.of_cooked(0, ifindex), Some(ifindex as u16));
        }
        assert_eq!(interface_ids.of_cooked(0, 65_536), None);
        assert_eq!(interface_ids.of_described(1, None, 1), None);
        assert_eq!(interface_ids.of_cooked(0, 3), Some(3));
    }
}

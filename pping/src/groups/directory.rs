//! Prefixes and their labels: which group an address belongs to, and which prefixes a group has.

use std::{
    collections::{HashMap, HashSet},
    net::Ipv4Addr,
    sync::Arc,
};

use foldhash::fast::RandomState;
use ipnet::{IpNet, Ipv4Net};
use pping_common::{
    group::{End, GroupKey},
    parse::IpAddress,
};

use super::{
    chunks::{Chunks, Keyed},
    columns::FileColumns,
    labels::{Labels, UNLISTED},
    levels::Levels,
    names::net,
};
use crate::config::network;

/// The prefix that comes before all others.
const FIRST: IpNet = IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 0));

/// Prefixes, with their labels and the numbers of these. Cloning is cheap, and the clone stays as it is.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    /// In the order of addresses.
    prefixes: Chunks<(IpNet, u32)>,
    by_label: Chunks<(u32, IpNet)>,
    /// The number of labels that have prefixes.
    groups: usize,
    labels: Labels,
    /// The columns of the groups file, whose labels need no prefix.
    file_columns: FileColumns,
}

impl Keyed for (IpNet, u32) {
    type Key = IpNet;

    fn key(&self) -> IpNet {
        self.0
    }
}

impl Keyed for (u32, IpNet) {
    type Key = Self;

    fn key(&self) -> Self {
        *self
    }
}

/// The longest prefix that contains the addresses that somebody looks for, and its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongestMatch {
    /// The label: [`UNLISTED`] if no prefix contains them.
    pub group: Arc<str>,
    /// The prefix, if one contains them.
    pub prefix: Option<IpNet>,
}

/// Addresses that somebody looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    net: IpNet,
    /// The labels of the longest prefix that contains them, and of the prefixes inside.
    labels: HashSet<u32>,
}

impl Directory {
    /// Builds a directory of prefixes, no two of which are equal, with the numbers of their labels.
    pub fn new(prefixes: Vec<(IpNet, u32)>, labels: &Labels) -> Self {
        let by_label = Chunks::new(prefixes.iter().map(|&(prefix, label)| (label, prefix)).collect());
        let numbers: Vec<u32> = by_label.iter().map(|&(label, _)| label).collect();
        let groups = numbers.chunk_by(|one, next| one == next).count();
        Self {
            prefixes: Chunks::new(prefixes),
            by_label,
            groups,
            labels: labels.clone(),
            file_columns: FileColumns::default(),
        }
    }

    /// All prefixes, in the order of addresses.
    pub fn prefixes(&self) -> impl Iterator<Item = (IpNet, u32)> + Clone {
        self.prefixes.iter().copied()
    }

    /// The number of prefixes.
    pub fn len(&self) -> usize {
        self.prefixes.len()
    }

    /// Whether there are no prefixes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of groups that have prefixes.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// The number of the label of exactly this prefix.
    pub fn label(&self, prefix: IpNet) -> Option<u32> {
        self.prefixes.get(&prefix).map(|&(_, label)| label)
    }

    /// Moves a prefix to a label, or removes it with `None`.
    pub fn set(&mut self, prefix: IpNet, label: Option<u32>) {
        let before = match label {
            Some(label) => self.prefixes.insert((prefix, label)),
            None => self.prefixes.remove(&prefix),
        };
        let before = before.map(|(_, label)| label);
        if before == label {
            return;
        }
        if let Some(before) = before {
            self.by_label.remove(&(before, prefix));
            self.groups -= usize::from(!self.has_label(before));
        }
        if let Some(label) = label {
            self.groups += usize::from(!self.has_label(label));
            self.by_label.insert((label, prefix));
        }
    }

    /// Replaces the labels, and the columns of the groups file.
    #[cfg(feature = "live")]
    pub fn set_labels(&mut self, labels: Labels, file_columns: FileColumns) {
        (self.labels, self.file_columns) = (labels, file_columns);
    }

    /// How many labels each node of the tree has, by its path: those with prefixes, and those that the groups file has without one.
    pub fn members(&self, levels: &Levels) -> HashMap<String, usize, RandomState> {
        let mut members = HashMap::default();
        let alone = self.file_columns.labels().filter(|&label| !self.has_label(label));
        for label in self.labels_listed().chain(alone).filter(|_| !levels.is_empty()) {
            for path in levels.paths(self.labels.get(label).1) {
                *members.entry(path).or_default() += 1;
            }
        }
        members
    }

    /// Whether the label of a group is in the node of the tree with this path.
    pub fn is_in_node(&self, label: &str, path: &str, levels: &Levels) -> bool {
        let number = self.labels.known_number(label).unwrap_or_default();
        levels.paths(self.labels.get(number).1).iter().any(|node| node == path)
    }

    /// The labels that have prefixes, in the order of their numbers.
    pub fn labels_listed(&self) -> impl Iterator<Item = u32> {
        let mut last = None;
        let labels = self.by_label.iter().map(|&(label, _)| label);
        labels.filter(move |&label| last.replace(label) != Some(label))
    }

    /// Whether a label has prefixes.
    pub fn has_label(&self, label: u32) -> bool {
        self.of_label(label).next().is_some()
    }

    /// Finds the addresses of a text: an address or a prefix. Returns `None` for any other text.
    pub fn find(&self, text: &str) -> Option<Addresses> {
        let net = address_in(text)?;
        let mut labels: HashSet<u32> = self.inside(net).collect();
        labels.insert(self.longest(net).map_or(0, |(_, label)| label));
        Some(Addresses { net, labels })
    }

    /// Finds the longest prefix that contains the addresses of a text. Returns `None` for any other text, and if there are no
    /// prefixes at all.
    pub fn longest_match(&self, text: &str) -> Option<LongestMatch> {
        let net = address_in(text).filter(|_| !self.is_empty())?;
        let unlisted = || LongestMatch { group: UNLISTED.into(), prefix: None };
        let (prefix, label) = self.longest(net).unzip();
        Some(label.map_or_else(unlisted, |label| LongestMatch { group: self.labels.get(label).0, prefix }))
    }

    /// The longest prefix that contains all these addresses, and the number of its label.
    fn longest(&self, net: IpNet) -> Option<(IpNet, u32)> {
        let mut containing = (0..=net.prefix_len()).rev().filter_map(|len| {
            let outer = IpNet::new(net.addr(), len).ok()?.trunc();
            self.prefixes.get(&outer).copied()
        });
        containing.next()
    }

    /// The labels of prefixes inside another.
    fn inside(&self, net: IpNet) -> impl Iterator<Item = u32> {
        // A prefix comes before all prefixes inside it.
        let rest = self.prefixes.iter_from(&net);
        rest.take_while(move |(prefix, _)| net.contains(prefix)).map(|&(_, label)| label)
    }

    /// The prefixes of a label, in the order of addresses.
    pub fn of_label(&self, label: u32) -> impl Iterator<Item = IpNet> {
        let rest = self.by_label.iter_from(&(label, FIRST));
        rest.take_while(move |&&(of, _)| of == label).map(|&(_, prefix)| prefix)
    }

    /// The prefixes of one end of a group.
    fn of_end(&self, end: End) -> impl Iterator<Item = IpNet> {
        let (label, prefix) = match end {
            End::Any => (None, None),
            End::Label(label) => (Some(label), None),
            End::Prefix { address, len } => (None, net(address, len)),
        };
        label.into_iter().flat_map(|label| self.of_label(label)).chain(prefix)
    }

    /// The prefixes of a group. Those of the host that replied come first.
    pub fn of_group(&self, key: &GroupKey) -> GroupPrefixes<'_> {
        GroupPrefixes { directory: self, ends: [key.source(), key.destination()] }
    }
}

/// The prefixes of a group, by its one or two ends.
#[derive(Clone, Copy, Debug)]
pub struct GroupPrefixes<'a> {
    directory: &'a Directory,
    ends: [End; 2],
}

impl<'a> GroupPrefixes<'a> {
    /// Their number.
    pub fn count(&self) -> usize {
        self.ends
            .iter()
            .map(|end| match *end {
                End::Any => 0,
                End::Label(label) => self.directory.of_label(label).count(),
                End::Prefix { .. } => 1,
            })
            .sum()
    }

    /// The first of each end, joined by `+`; `None` if there are none.
    pub fn first(&self) -> Option<Arc<str>> {
        let firsts = self.ends.iter().filter_map(|&end| self.directory.of_end(end).next());
        let text = firsts.map(|prefix| prefix.to_string()).collect::<Vec<_>>().join("+");
        (!text.is_empty()).then(|| text.into())
    }

    /// All of them.
    pub fn iter(self) -> impl Iterator<Item = IpNet> + use<'a> {
        self.ends.into_iter().flat_map(move |end| self.directory.of_end(end))
    }
}

impl Addresses {
    /// Whether these addresses are in a group, as far as the group depends on addresses.
    pub fn are_in(&self, key: &GroupKey) -> bool {
        let is_in = |end: End| match end {
            End::Any => false,
            End::Label(label) => self.labels.contains(&label),
            End::Prefix { address, len } => net(address, len)
                .is_some_and(|prefix| prefix.contains(&self.net) || self.net.contains(&prefix)),
        };
        match [key.source(), key.destination()] {
            // The group is for all addresses. Nobody knows which of them are in `other`.
            [End::Any, End::Any] => *key != GroupKey::OTHER,
            ends => ends.into_iter().any(is_in),
        }
    }
}

/// The addresses of a text that is an address or a prefix.
pub fn address_in(text: &str) -> Option<IpNet> {
    let text = text.trim();
    Some(unmapped(network(text)?).trunc())
}

/// The address in a text that has it in brackets, or with a port or a zone, as tools print it.
pub fn without_extras(text: &str) -> Option<&str> {
    let text = text.trim();
    let bracketed = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let with_port = || text.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
    let (address, _) = bracketed.or_else(with_port).unwrap_or((text, ""));
    let (address, _) = address.split_once('%').unwrap_or((address, ""));
    (address != text && address_in(address).is_some()).then_some(address)
}

/// Whether a text is an address or a prefix with a typing error, such as `192.0.2.300`.
pub fn is_mistyped(text: &str) -> bool {
    let text = text.trim();
    let (address, _) = text.split_once('/').unwrap_or((text, ""));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let has_four_numbers = address.split('.').count() >= 4 && address.split('.').all(is_number);
    let is_digit = |byte: u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
    let has_colons = address.matches(':').count() >= 2 && address.bytes().all(is_digit);
    (has_four_numbers || has_colons) && address_in(text).is_none()
}

/// A prefix of IPv4-mapped addresses as one of IPv4, as groups have them.
fn unmapped(net: IpNet) -> IpNet {
    let IpNet::V6(v6) = net else { return net };
    let address = IpAddress::from_bytes(v6.addr().octets());
    match v6.prefix_len().checked_sub(96) {
        Some(len) if address.is_mapped() => super::names::net(address, len).unwrap_or(net),
        _ => net,
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use pping_common::group::Grouping;

    use super::*;

    fn address(text: &str) -> IpAddress {
        IpAddress::from_bytes(match text.parse().unwrap() {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        })
    }

    fn directory(prefixes: &[(&str, u32)]) -> Directory {
        let prefixes = prefixes.iter().map(|&(prefix, label)| (prefix.parse().unwrap(), label)).collect();
        Directory::new(prefixes, &Labels::default())
    }

    fn of_label(label: u32) -> GroupKey {
        let file = Grouping { by_source: 1, by_label: 1, ..Grouping::NONE };
        file.key(address("::"), address("::"), 0, |_| label)
    }

    #[test]
    fn an_address_is_in_the_group_of_its_longest_prefix() {
        let directory = directory(&[
            ("10.0.0.0/8", 1),
            ("10.1.0.0/16", 2),
            ("10.1.2.0/24", 3),
            ("10.1.4.0/24", 1),
            ("2001:db8::/32", 4),
            ("::/0", 5),
        ]);
        for (text, groups) in [
            ("10.9.9.9", &[1][..]),
            ("10.1.9.9", &[2]),
            (" 10.1.2.255 ", &[3]),
            ("::ffff:10.1.2.7", &[3]),
            ("10.1.4.0", &[1]),
            ("11.0.0.1", &[0]),
            ("2001:db8::7", &[4]),
            ("fe80::1", &[5]),
            ("10.1.2.128/25", &[3]),
            ("10.1.0.0/16", &[1, 2, 3]),
            ("10.1.7.7/16", &[1, 2, 3]),
            ("::ffff:10.1.0.0/119", &[2]),
            ("2000::/4", &[4, 5]),
            ("0.0.0.0/0", &[0, 1, 2, 3]),
        ] {
            let found = directory.find(text).expect(text);
            let groups_found: Vec<u32> = (0..6).filter(|&label| found.are_in(&of_label(label))).collect();
            assert_eq!(groups_found, groups, "{text}");
        }
        for text in ["", "10.1", "10.1.2.", "customer-7", "10.1.2.3/33", "all", "::1::"] {
            assert_eq!(directory.find(text), None, "{text}");
        }
        let everything = directory.find("192.0.2.1").unwrap();
        assert!(everything.are_in(&GroupKey::ALL) && !everything.are_in(&GroupKey::OTHER));
    }

    #[test]
    fn the_longest_prefix_of_an_address_has_a_name() {
        let mut labels = Labels::default();
        let [outer, inner] = ["outer", "inner"].map(|label| labels.number(label, Vec::new()));
        let listed = [("10.0.0.0/8", outer), ("10.1.0.0/16", inner)];
        let prefixes = listed.map(|(prefix, label)| (prefix.parse().unwrap(), label)).to_vec();
        let directory = Directory::new(prefixes, &labels);
        for (text, group, prefix) in [
            ("10.9.9.9", "outer", Some("10.0.0.0/8")),
            ("10.1.9.9", "inner", Some("10.1.0.0/16")),
            ("10.1.9.0/24", "inner", Some("10.1.0.0/16")),
            ("192.0.2.1", "unlisted", None),
        ] {
            let found = directory.longest_match(text).expect(text);
            assert_eq!((&*found.group, found.prefix), (group, prefix.map(|prefix| prefix.parse().unwrap())));
        }
        assert_eq!(directory.longest_match("inner"), None);
        assert_eq!(Directory::default().longest_match("10.9.9.9"), None, "there is no groups file");
    }

    #[test]
    fn a_mistyped_address_is_told_from_other_text() {
        for text in ["10.99.0.300", "10.1.2.3.4", "10.1.2.3/33", "10.01.2.3", "2001:db8::1::2", "fe80::12345"]
        {
            assert!(is_mistyped(text), "{text}");
        }
        for text in ["10.1.2.3", "10.1.2.0/24", "10.1", "10.1.2.", "0/8", "customer-7", "v1.2.3.4", "::1", ""]
        {
            assert!(!is_mistyped(text), "{text}");
        }
    }

    #[test]
    fn what_tools_add_to_an_address_is_told_from_it() {
        for (text, address) in [
            ("fd90:1::2%eth0", Some("fd90:1::2")),
            ("[fd90:1::2]", Some("fd90:1::2")),
            ("[fe80::1%eth0]:443", Some("fe80::1")),
            ("10.90.1.77:443", Some("10.90.1.77")),
            ("10.90.1.77", None),
            ("2001:db8::443", None),
            ("customer:7", None),
            ("[customer]", None),
        ] {
            assert_eq!(without_extras(text), address, "{text}");
        }
    }

    #[test]
    fn an_address_is_in_the_group_of_its_prefix() {
        let both = Grouping { by_source: 1, by_destination: 1, v4_len: 24, v6_len: 48, ..Grouping::NONE };
        let key = both.key(address("192.0.2.1"), address("2001:db8:1:2::3"), 0, |_| 0);
        let none = Directory::default();
        for (text, is_in) in [
            ("192.0.2.200", true),
            ("2001:db8:1::", true),
            ("192.0.0.0/16", true),
            ("192.0.3.1", false),
            ("2001:db8:2::", false),
        ] {
            assert_eq!(none.find(text).unwrap().are_in(&key), is_in, "{text}");
        }
        let prefixes = none.of_group(&key);
        assert_eq!(prefixes.first().as_deref(), Some("192.0.2.0/24+2001:db8:1::/48"));
        assert_eq!((prefixes.count(), prefixes.iter().count()), (2, 2));
    }

    #[test]
    fn a_group_has_the_prefixes_of_its_labels() {
        let directory =
            directory(&[("2001:db8::/32", 9), ("10.2.0.0/16", 9), ("10.1.0.0/16", 9), ("10.3.0.0/16", 8)]);
        let both = Grouping { by_source: 1, by_destination: 1, by_label: 1, ..Grouping::NONE };
        let (one, other) = (address("::1"), address("::2"));
        let key = both.key(one, other, 0, |address| if address == one { 9 } else { 8 });
        let prefixes = directory.of_group(&key);
        let texts: Vec<_> = prefixes.iter().map(|prefix| prefix.to_string()).collect();
        assert_eq!(texts, ["10.1.0.0/16", "10.2.0.0/16", "2001:db8::/32", "10.3.0.0/16"]);
        assert_eq!(prefixes.count(), 4);
        assert_eq!(prefixes.first().as_deref(), Some("10.1.0.0/16+10.3.0.0/16"));
        for key in [of_label(0), of_label(7), GroupKey::ALL, GroupKey::OTHER] {
            let prefixes = directory.of_group(&key);
            assert_eq!((prefixes.count(), prefixes.first(), prefixes.iter().next()), (0, None, None));
        }
    }
}

//! The names of groups and series.

use std::{
    collections::HashMap,
    hash::{Hash, Hasher},
    net::Ipv6Addr,
    sync::Arc,
};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use pping_common::{
    group::{End, GroupKey, Side},
    method::Method,
    parse::{Direction, IpAddress},
    series::SeriesKey,
};

use super::{
    joined,
    labels::{ALL, BETWEEN_ENDS, Columns, Labels, OTHER, UNLISTED},
    levels::{Levels, add_to_path},
    networks::{NETWORK, Networks},
    newest::{NewestLabels, Seen},
};
use crate::membership::Membership;

/// What samples are counted together by. Those of a kind are all samples, each once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A group.
    Group,
    /// A node of the tree of groups, at one of its levels.
    Node,
    /// A network at the other end.
    Network,
}

/// The name of a group, of a node of the tree of groups, or of a network at the other end. Names of the same group are equal even if a reload changed its other columns in between: an interval
/// has one record of it.
#[derive(Clone, Debug)]
pub struct GroupName {
    /// The name as in labels of metrics: `192.0.2.0/24`, `customer-7`, `192.0.2.0/24+2001:db8::/48 dscp 46`. That of a node is
    /// its path: the values of its level and of those above, as in `berlin/ap-3`.
    pub label: Arc<str>,
    /// The prefix, if the group is one: `192.0.2.0/24`. Of two prefixes, that of the host that replied comes first.
    pub prefix: Option<Arc<str>>,
    /// The differentiated services codepoint, if groups are separated by it.
    pub dscp: Option<u8>,
    /// The other columns of the groups file; of a node, those of its level and of the levels above; of a network, what its file says
    /// of it.
    pub columns: Columns,
    /// The level of a node, or [`NETWORK`]; `None` for a group.
    pub level: Option<Arc<str>>,
    /// The nodes that it is part of, the outermost first.
    pub above: Vec<Arc<GroupName>>,
    /// The group, as the kernel programs know it.
    pub key: GroupKey,
}

impl GroupName {
    fn identity(&self) -> impl Eq + Hash {
        let Self { label, prefix, dscp, columns: _, level, above: _, key: _ } = self;
        (label, prefix, *dscp, level)
    }
}

impl PartialEq for GroupName {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for GroupName {}

impl Hash for GroupName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

/// The name of a series.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SeriesName {
    /// The interface, if it has a name.
    pub interface: Option<Arc<str>>,
    /// The method of the RTTs.
    pub method: Method,
    /// The direction in which echoes were seen, if known.
    pub matched: Option<Direction>,
    /// The side of the network that the hosts that reply are on, if `--inside` tells sides apart.
    pub side: Option<Side>,
    /// The group.
    pub group: Arc<GroupName>,
}

/// The name of a series of times in the queue of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QueueName {
    /// The interface, if it has a name.
    pub interface: Option<Arc<str>>,
    /// The group.
    pub group: Arc<GroupName>,
}

/// Makes names, and caches those of groups and nodes.
#[derive(Debug, Default)]
pub struct Names {
    labels: Labels,
    /// Where newer labels come from, and what was seen of them.
    newest: Option<NewestLabels>,
    seen: Seen,
    levels: Levels,
    networks: Networks,
    /// Networks are among them.
    groups: HashMap<GroupKey, Arc<GroupName>>,
    /// By path.
    nodes: HashMap<Arc<str>, Arc<GroupName>>,
}

impl Names {
    /// Replaces the labels, and the levels of the tree.
    pub fn relabel(&mut self, labels: Labels, levels: Levels) {
        (self.labels, self.levels) = (labels, levels);
        self.groups.clear();
        self.nodes.clear();
    }

    /// Takes the labels from here, whenever they are newer.
    pub fn follow(&mut self, newest: NewestLabels) {
        self.newest = Some(newest);
        self.refresh();
    }

    /// Takes the names of networks at the other end from here.
    pub fn follow_networks(&mut self, networks: Networks) {
        self.networks = networks;
    }

    /// The networks at the other end.
    pub fn networks(&self) -> &Networks {
        &self.networks
    }

    /// Takes newer labels if there are any.
    pub fn refresh(&mut self) {
        let newer = self.newest.as_ref().and_then(|it| it.newer(&mut self.seen));
        let Some(((labels, levels), is_changed)) = newer else { return };
        self.labels = labels;
        if is_changed {
            self.levels = levels;
            self.groups.clear();
            self.nodes.clear();
        }
    }

    /// The labels.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The levels of the tree.
    pub fn levels(&self) -> &Levels {
        &self.levels
    }

    /// The number of nodes that have a name.
    #[cfg(test)]
    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Forgets the name of a group that was removed.
    pub fn forget(&mut self, group: &GroupKey) {
        self.groups.remove(group);
        // Nodes without a group go too, not all at once because each step looks at all of them.
        if self.nodes.len() > 2 * (self.groups.len() + 1) * self.levels.names().len() {
            self.nodes.retain(|_, node| Arc::strong_count(node) > 1);
        }
    }

    /// The name of a group.
    pub fn group(&mut self, key: &GroupKey) -> Arc<GroupName> {
        if let Some(name) = self.groups.get(key) {
            return Arc::clone(name);
        }
        // A label is among the newest before a packet can count under it.
        self.refresh();
        let name = if key.is_network() {
            GroupName::of_network(key, &self.networks)
        } else {
            let name = GroupName::new(key, &self.labels);
            GroupName { above: self.above(&name.columns), ..name }
        };
        let name = Arc::new(name);
        self.groups.insert(*key, Arc::clone(&name));
        name
    }

    /// The nodes of a group with these columns, the outermost first.
    fn above(&mut self, columns: &Columns) -> Vec<Arc<GroupName>> {
        let mut above: Vec<Arc<GroupName>> = Vec::new();
        let (mut path, mut values) = (String::new(), Columns::new());
        for (level, value) in self.levels.clone().values(columns) {
            add_to_path(&mut path, &value);
            values.push((Arc::clone(&level), value));
            let node = self.nodes.entry(path.as_str().into()).or_insert_with_key(|path| {
                let (columns, level, above) = (values.clone(), Some(level), above.clone());
                Arc::new(GroupName { columns, level, above, ..GroupName::named(path) })
            });
            above.push(Arc::clone(node));
        }
        above
    }

    /// The name of a series; `None` for an unknown method, and for networks of an earlier run that told them apart.
    pub fn series(&mut self, key: &SeriesKey, interface: Option<Arc<str>>) -> Option<SeriesName> {
        if key.group.is_network() && !self.networks.are_known() {
            return None;
        }
        Some(SeriesName {
            interface,
            method: Method::from_number(key.method)?,
            matched: Direction::from_number(key.direction),
            side: Side::from_number(key.side),
            group: self.group(&key.group),
        })
    }

    /// What a series says of the hosts that reply; nothing for a sample without a series.
    pub fn membership(&mut self, series: Option<&SeriesKey>) -> Membership {
        let Some(key) = series else { return Membership::default() };
        let group = if key.group == GroupKey::ALL { None } else { self.group(&key.group).of_sample() };
        Membership { group, side: Side::from_number(key.side) }
    }

    /// The name of a series of times in a queue; `None` for one of RTTs.
    pub fn queue(&mut self, key: &SeriesKey, interface: Option<Arc<str>>) -> Option<QueueName> {
        (key.method == SeriesKey::QUEUE).then(|| QueueName { interface, group: self.group(&key.group) })
    }
}

impl GroupName {
    /// The name of a group.
    pub fn new(key: &GroupKey, labels: &Labels) -> Self {
        if *key == GroupKey::ALL {
            return Self::named(ALL);
        }
        if *key == GroupKey::OTHER {
            return Self { key: *key, ..Self::named(OTHER) };
        }
        let (mut label, mut prefixes, mut columns) = (String::new(), Vec::new(), Vec::new());
        let ends = [key.source(), key.destination()];
        // The label of one end alone is the name as it is.
        let is_pair = !ends.iter().any(|end| matches!(end, End::Any));
        for end in ends {
            match end {
                End::Any => {}
                End::Label(number) => {
                    let (text, known) = labels.get(number);
                    if is_pair {
                        joined::add(&mut label, &text, BETWEEN_ENDS);
                        join_known(&mut columns, known);
                    } else {
                        label.push_str(&text);
                        columns.clone_from(known);
                    }
                }
                End::Prefix { address, len } => {
                    prefixes.push(prefix(address, len));
                    joined::add(&mut label, &prefix(address, len), BETWEEN_ENDS);
                }
            }
        }
        if let Some(dscp) = key.dscp() {
            if !label.is_empty() {
                label.push(' ');
            }
            label.extend(["dscp ", &dscp.to_string()]);
        }
        let prefix = (!prefixes.is_empty()).then(|| prefixes.join("+").into());
        let named = Self::named(&label);
        Self { prefix, dscp: key.dscp(), columns, key: *key, ..named }
    }

    /// The name of a network at the other end.
    fn of_network(key: &GroupKey, networks: &Networks) -> Self {
        let (label, columns) = match key.source() {
            End::Label(number) => networks.get(number),
            _ => (OTHER.into(), Columns::new()),
        };
        Self { columns, level: Some(NETWORK.into()), key: *key, ..Self::named(&label) }
    }

    /// What it is the name of.
    pub fn kind(&self) -> Kind {
        match self.level {
            None => Kind::Group,
            Some(_) if self.key.is_network() => Kind::Network,
            Some(_) => Kind::Node,
        }
    }

    /// The name of a group of all addresses.
    pub fn named(label: &str) -> Self {
        Self {
            label: label.into(),
            prefix: None,
            dscp: None,
            columns: Vec::new(),
            level: None,
            above: Vec::new(),
            key: GroupKey::ALL,
        }
    }

    /// The group in the record of a sample; `None` if there are no groups, or the host is in no group.
    fn of_sample(&self) -> Option<Arc<str>> {
        (![ALL, UNLISTED].contains(&&*self.label)).then(|| Arc::clone(&self.label))
    }
}

/// Adds the columns of one end to those of the other. The two values of a column are joined as labels are.
fn join_known(columns: &mut Columns, known: &Columns) {
    for (column, value) in known {
        let value = joined::escaped(value, BETWEEN_ENDS);
        match columns.iter_mut().find(|(other, _)| other == column) {
            Some((_, first)) => *first = format!("{first}{BETWEEN_ENDS}{value}").into(),
            None => columns.push((Arc::clone(column), value.into())),
        }
    }
}

/// A prefix as text.
fn prefix(address: IpAddress, len: u8) -> String {
    let canonical = || Ipv6Addr::from(address.to_bytes()).to_canonical().to_string();
    net(address, len).map_or_else(canonical, |net| net.to_string())
}

/// The prefix of this length, of 32 or 128 bits; `None` if it is too long.
pub(super) fn net(address: IpAddress, len: u8) -> Option<IpNet> {
    let address = Ipv6Addr::from(address.to_bytes());
    match address.to_ipv4_mapped() {
        Some(address) => Ipv4Net::new(address, len).map(IpNet::from).ok(),
        None => Ipv6Net::new(address, len).map(IpNet::from).ok(),
    }
}

/// Returns a group for tests, with columns that are all levels of the tree, the outermost first.
#[cfg(test)]
pub(crate) fn group_in_tree(label: &str, columns: &[(&str, &str)]) -> Arc<GroupName> {
    let levels: Vec<_> = columns.iter().map(|&(column, _)| column.to_owned()).collect();
    let mut names = Names { levels: Levels::new(&levels), ..Names::default() };
    let columns = columns.iter().map(|&(column, value)| (column.into(), value.into())).collect();
    let above = names.above(&columns);
    Arc::new(GroupName { columns, above, ..GroupName::named(label) })
}

#[cfg(test)]
mod tests {
    use pping_common::group::Grouping;

    use super::*;

    fn address(text: &str) -> IpAddress {
        let address: std::net::IpAddr = text.parse().unwrap();
        IpAddress::from_bytes(match address {
            std::net::IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            std::net::IpAddr::V6(address) => address.octets(),
        })
    }

    #[test]
    fn groups_are_named_by_prefix_label_and_class() {
        let mut names = Names::default();
        let mut labels = Labels::default();
        let number = labels.number("customer-7", vec![("site".into(), "berlin".into())]);
        names.relabel(labels, Levels::default());
        let prefixes = Grouping { by_source: 1, v4_len: 24, v6_len: 48, ..Grouping::NONE };
        let file = Grouping { by_source: 1, by_label: 1, ..Grouping::NONE };
        let both = Grouping { by_destination: 1, by_dscp: 1, ..prefixes };
        let class = Grouping { by_dscp: 1, ..Grouping::NONE };
        for (grouping, label) in [
            (Grouping::NONE, "all"),
            (prefixes, "192.0.2.0/24"),
            (both, "192.0.2.0/24+2001:db8:1::/48 dscp 46"),
            (class, "dscp 46"),
            (file, "customer-7"),
        ] {
            let key = grouping.key(address("192.0.2.1"), address("2001:db8:1:2::3"), 46, |_| number);
            assert_eq!(&*names.group(&key).label, label);
        }
        let key = file.key(address("192.0.2.1"), address("::1"), 0, |_| number);
        assert_eq!(names.group(&key).columns, [("site".into(), "berlin".into())]);
        let both = Grouping { by_destination: 1, ..file };
        let key = both.key(address("192.0.2.1"), address("::1"), 0, |_| number);
        assert_eq!(names.group(&key).columns, [("site".into(), "berlin+berlin".into())]);
        let key = file.key(address("192.0.2.1"), address("::1"), 0, |_| 0);
        assert_eq!(&*names.group(&key).label, "unlisted");
        assert_eq!(&*names.group(&GroupKey::OTHER).label, "other");
    }

    #[test]
    fn labels_with_a_joint_are_other_pairs() {
        let mut labels = Labels::default();
        let mut number = |label: &str| labels.number(label, vec![("site".into(), label.into())]);
        let [a_b, z, a, b_z] = ["a+b", "z", "a", "b+z"].map(&mut number);
        let both = Grouping { by_source: 1, by_destination: 1, by_label: 1, ..Grouping::NONE };
        let name = |source: u32, destination: u32| {
            let (one, other) = (address("192.0.2.1"), address("192.0.2.2"));
            let of = |address: IpAddress| if address == one { source } else { destination };
            GroupName::new(&both.key(one, other, 0, of), &labels)
        };
        let (first, second) = (name(a_b, z), name(a, b_z));
        let all = [&*first.label, &*second.label, &*first.columns[0].1, &*second.columns[0].1];
        // Which end comes first is not the point here.
        assert!(all[0] == "a\\+b+z" || all[0] == "z+a\\+b", "{all:?}");
        assert!(all[1] == "a+b\\+z" || all[1] == "b\\+z+a", "{all:?}");
        assert_eq!(all[..2], all[2..]);
        // A run that starts again knows both labels of it.
        let mut later = Labels::default();
        later.add_labels_of(&first.label);
        assert_eq!(["a+b", "z"].map(|label| later.known_number(label)), [Some(a_b), Some(z)]);
        // Alone, a label is as it is.
        let file = Grouping { by_source: 1, by_label: 1, ..Grouping::NONE };
        let alone = GroupName::new(&file.key(address("192.0.2.1"), address("::1"), 0, |_| a_b), &labels);
        assert_eq!((&*alone.label, &*alone.columns[0].1), ("a+b", "a+b"));
    }

    #[test]
    fn a_label_keeps_its_number() {
        let mut labels = Labels::default();
        let (a, b) = (labels.number("a", Vec::new()), labels.number("b", Vec::new()));
        assert_eq!((labels.number("a", Vec::new()), labels.number("b", Vec::new())), (a, b));
        assert_ne!(a, b);
        assert_eq!(&*labels.get(b).0, "b");
    }
}

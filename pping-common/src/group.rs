//! Groups of hosts whose samples are counted together: a network, a customer, a class of service.

use crate::{layout::layout, parse::IpAddress};

/// Stands for a class of service if groups do not depend on it.
const ANY_DSCP: u8 = u8::MAX;

/// How flow directions are grouped. Fixed when the programs are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Grouping {
    /// Not 0 to group by the host that replied, the source of a record.
    pub by_source: u8,
    /// Not 0 to group by the host whose packets are timed, the destination of a record.
    pub by_destination: u8,
    /// Not 0 to group by the differentiated services codepoint (RFC 2474) of the echo.
    pub by_dscp: u8,
    /// Not 0 if a file gives prefixes and their labels. If 0, the next two fields give the lengths of prefixes.
    pub by_label: u8,
    /// Bits of the prefix of an IPv4 address, 0 to 32.
    pub v4_len: u8,
    /// Bits of the prefix of an IPv6 address, 0 to 128.
    pub v6_len: u8,
    /// Which hosts are inside the network: those of listed prefixes ([`Grouping::INSIDE_LISTED`]), those that have a label
    /// ([`Grouping::INSIDE_LABELLED`]), or both. 0 if sides are not told apart.
    pub inside: u8,
    /// Fills up to a multiple of 8.
    pub reserved: u8,
}

impl Grouping {
    /// Everything is one group.
    pub const NONE: Self = Self {
        by_source: 0,
        by_destination: 0,
        by_dscp: 0,
        by_label: 0,
        v4_len: 0,
        v6_len: 0,
        inside: 0,
        reserved: 0,
    };

    /// Hosts of listed prefixes are inside.
    pub const INSIDE_LISTED: u8 = 1;

    /// Hosts that have a label are inside.
    pub const INSIDE_LABELLED: u8 = 2;

    /// Returns the number of the side that a host is on, or [`Side::UNKNOWN`] if sides are not told apart. `label` is that of
    /// [`Grouping::key`]; `is_listed` says whether a listed prefix contains an address.
    #[inline(always)]
    pub fn side(
        self,
        host: IpAddress,
        label: impl Fn(IpAddress) -> u32,
        is_listed: impl Fn(IpAddress) -> bool,
    ) -> u32 {
        if self.inside == 0 {
            return Side::UNKNOWN;
        }
        let is_inside = self.inside & Self::INSIDE_LISTED != 0 && is_listed(host)
            || self.inside & Self::INSIDE_LABELLED != 0 && label(host) != 0;
        (if is_inside { Side::Inside } else { Side::Outside }) as u32
    }

    /// The numbers of the sides that series may have.
    pub const fn sides(self) -> &'static [u32] {
        if self.inside == 0 { &[Side::UNKNOWN] } else { &[Side::Inside as u32, Side::Outside as u32] }
    }

    /// Returns which host of a flow direction is at the other end: the one that is not the network's own. `source` replies, and
    /// is the other end as well if none or both are. A host is the network's own if it is inside or, if sides are not told apart, if it
    /// has a label. The arguments are those of [`Grouping::key`] and [`Grouping::side`].
    #[inline(always)]
    pub fn other_end(
        self,
        source: IpAddress,
        destination: IpAddress,
        label: impl Fn(IpAddress) -> u32,
        is_listed: impl Fn(IpAddress) -> bool,
    ) -> IpAddress {
        let is_own = |host| {
            if self.inside == 0 {
                self.by_label != 0 && label(host) != 0
            } else {
                self.side(host, &label, &is_listed) == Side::Inside as u32
            }
        };
        if is_own(source) && !is_own(destination) { destination } else { source }
    }

    /// Whether there is more than one group.
    #[inline(always)]
    pub fn is_on(self) -> bool {
        self.by_source | self.by_destination | self.by_dscp != 0
    }

    /// Returns the group of a flow direction: packets come from `destination`, and `source` answers them with packets of
    /// `dscp`. `label` returns the number of an address' label by longest-prefix match; it is called only if a file gives
    /// labels.
    #[inline(always)]
    pub fn key(
        self,
        source: IpAddress,
        destination: IpAddress,
        dscp: u8,
        label: impl Fn(IpAddress) -> u32,
    ) -> GroupKey {
        if !self.is_on() {
            return GroupKey::ALL;
        }
        let mut key = GroupKey { kind: Kind::Group as u8, ..GroupKey::ALL };
        if self.by_source != 0 {
            key.source = self.end(source, &label);
            key.source_len = self.len(source);
        }
        if self.by_destination != 0 {
            key.destination = self.end(destination, &label);
            key.destination_len = self.len(destination);
        }
        if self.by_dscp != 0 {
            key.dscp = dscp;
        }
        key
    }

    #[inline(always)]
    fn end(self, address: IpAddress, label: impl Fn(IpAddress) -> u32) -> IpAddress {
        if self.by_label != 0 {
            return IpAddress([0, u64::from(label(address))]);
        }
        address.prefix(self.len(address))
    }

    /// Bits of the prefix. An IPv4 address is mapped, so it has 96 more.
    #[inline(always)]
    fn len(self, address: IpAddress) -> u8 {
        if self.by_label != 0 {
            LABEL
        } else if address.is_mapped() {
            96 + self.v4_len
        } else {
            self.v6_len
        }
    }
}

/// In place of a length: the address is the number of a label.
const LABEL: u8 = 254;

/// In place of a length: groups do not depend on the prefix.
const ANY: u8 = 255;

/// The side of the network that a host is on, by its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Side {
    /// The host is one of the network's.
    Inside = 1,
    /// The host is beyond the network.
    Outside = 2,
}

impl Side {
    /// The sides.
    pub const ALL: [Self; 2] = [Self::Inside, Self::Outside];

    /// In place of the number of a side: sides are not told apart.
    pub const UNKNOWN: u32 = 0;

    /// The side with this number; `None` for [`Side::UNKNOWN`] and numbers that stand for none.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|&side| side as u32 == number)
    }

    /// The name in records and in labels of metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inside => "inside",
            Self::Outside => "outside",
        }
    }
}

/// The kind of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    /// Everything, if there are no groups.
    All,
    /// The group `other`, for flows whose own group has no room.
    Other,
    /// A separate group.
    Group,
    /// The networks at the other end that have no series of their own.
    OtherNetworks,
    /// A network at the other end.
    Network,
}

/// A group, as the kernel programs know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct GroupKey {
    source: IpAddress,
    destination: IpAddress,
    source_len: u8,
    destination_len: u8,
    dscp: u8,
    kind: u8,
    reserved: u32,
}

layout!(GroupKey { source, destination, source_len, destination_len, dscp, kind, reserved });

/// What a group's hosts at one end of a flow have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// Nothing: groups do not depend on this end.
    Any,
    /// The label with this number; 0 is for addresses that have none.
    Label(u32),
    /// The prefix of their addresses.
    Prefix {
        /// Its first address; an IPv4 address is mapped.
        address: IpAddress,
        /// Its length in bits, of 32 or 128.
        len: u8,
    },
}

impl GroupKey {
    /// The group of everything.
    pub const ALL: Self = Self {
        source: IpAddress([0; 2]),
        destination: IpAddress([0; 2]),
        source_len: ANY,
        destination_len: ANY,
        dscp: ANY_DSCP,
        kind: Kind::All as u8,
        reserved: 0,
    };

    /// The group `other`, for flows whose own group has no room.
    pub const OTHER: Self = Self { kind: Kind::Other as u8, ..Self::ALL };

    /// The networks at the other end that have no room for a series of their own.
    pub const OTHER_NETWORKS: Self = Self { kind: Kind::OtherNetworks as u8, ..Self::ALL };

    /// Returns the key of the network at the other end with this number; 0 is for hosts of no known network.
    #[inline(always)]
    pub fn of_network(number: u32) -> Self {
        let source = IpAddress([0, u64::from(number)]);
        Self { kind: Kind::Network as u8, source, source_len: LABEL, ..Self::ALL }
    }

    /// Whether the key is of a network at the other end, or of the remaining ones. All other keys are of groups.
    pub fn is_network(&self) -> bool {
        [Kind::OtherNetworks as u8, Kind::Network as u8].contains(&self.kind)
    }

    /// What the hosts that reply have in common.
    pub fn source(&self) -> End {
        End::new(self.source, self.source_len)
    }

    /// What the hosts whose packets are timed have in common.
    pub fn destination(&self) -> End {
        End::new(self.destination, self.destination_len)
    }

    /// Returns the key as numbers.
    #[inline(always)]
    pub(crate) fn words(&self) -> [u64; 5] {
        let Self { source, destination, source_len, destination_len, dscp, kind, reserved: _ } = *self;
        let rest = u32::from_le_bytes([source_len, destination_len, dscp, kind]);
        [source.0[0], source.0[1], destination.0[0], destination.0[1], u64::from(rest)]
    }

    /// The class of service, if groups depend on it.
    pub fn dscp(&self) -> Option<u8> {
        (self.dscp != ANY_DSCP).then_some(self.dscp)
    }
}

impl End {
    fn new(address: IpAddress, len: u8) -> Self {
        match len {
            ANY => Self::Any,
            LABEL => Self::Label(address.0[1] as u32),
            // An IPv4 prefix may have 0 bits: then all of IPv4 is one group.
            96.. if address.is_mapped() => Self::Prefix { address, len: len - 96 },
            len => Self::Prefix { address, len },
        }
    }
}

/// A key of the map of labels, apart from the prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct LabelKey {
    /// The number of the set of prefixes: a reload adds a new set beside the old.
    pub generation: [u8; 3],
    /// 4 or 6.
    pub version: u8,
    /// The address; IPv4 mapped.
    pub address: [u8; 16],
}

layout!(LabelKey { generation, version, address });

impl LabelKey {
    /// Returns the key of an address.
    #[inline(always)]
    pub fn new(generation: u32, address: IpAddress) -> Self {
        let [_, a, b, c] = generation.to_be_bytes();
        let version = if address.is_mapped() { 4 } else { 6 };
        Self { generation: [a, b, c], version, address: address.to_bytes() }
    }

    /// Bits of a whole key.
    pub const BITS: u32 = 8 * size_of::<Self>() as u32;

    /// Returns the bits of the key of a prefix that has `len` bits of 32 or 128.
    pub fn bits(&self, len: u8) -> u32 {
        u32::from(len) + if self.version == 4 { 32 + 96 } else { 32 }
    }
}

const _: () = {
    assert!(size_of::<Grouping>() == 8);
    assert!(size_of::<GroupKey>() == 40);
    assert!(core::mem::offset_of!(GroupKey, source_len) == 32);
    assert!(size_of::<LabelKey>() == 20);
};

#[cfg(test)]
mod tests {
    use core::net::Ipv6Addr;

    use super::*;

    fn address(text: &str) -> IpAddress {
        let address: std::net::IpAddr = text.parse().unwrap();
        IpAddress::from_bytes(match address {
            std::net::IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            std::net::IpAddr::V6(address) => Ipv6Addr::octets(&address),
        })
    }

    fn unasked(_: IpAddress) -> u32 {
        panic!("no file gives labels")
    }

    #[test]
    fn everything_is_one_group_unless_asked_otherwise() {
        let key = Grouping::NONE.key(address("192.0.2.1"), address("2001:db8::1"), 46, unasked);
        assert_eq!(key, GroupKey::ALL);
        assert_eq!((key.source(), key.destination(), key.dscp()), (End::Any, End::Any, None));
    }

    #[test]
    fn prefixes_are_of_the_host_that_replied_or_of_the_other() {
        let by = |by_source, by_destination| Grouping {
            by_source,
            by_destination,
            v4_len: 24,
            v6_len: 48,
            ..Grouping::NONE
        };
        let (source, destination) = (address("192.0.2.77"), address("2001:db8:1:2::9"));
        let v4 = End::Prefix { address: address("192.0.2.0"), len: 24 };
        let v6 = End::Prefix { address: address("2001:db8:1::"), len: 48 };
        let key = by(1, 0).key(source, destination, 46, unasked);
        assert_eq!((key.source(), key.destination(), key.dscp()), (v4, End::Any, None));
        let key = by(0, 1).key(source, destination, 46, unasked);
        assert_eq!((key.source(), key.destination()), (End::Any, v6));
        let key = by(1, 1).key(source, destination, 46, unasked);
        assert_eq!((key.source(), key.destination()), (v4, v6));
    }

    #[test]
    fn all_of_a_family_is_a_prefix_too() {
        let grouping = Grouping { by_source: 1, ..Grouping::NONE };
        for (host, all) in [("198.51.100.1", "0.0.0.0"), ("2001:db8::1", "::")] {
            let key = grouping.key(address(host), address("::1"), 0, unasked);
            assert_eq!(key.source(), End::Prefix { address: address(all), len: 0 });
        }
    }

    #[test]
    fn labels_and_classes_of_service_make_groups() {
        let grouping = Grouping { by_source: 1, by_label: 1, by_dscp: 1, ..Grouping::NONE };
        let host = address("192.0.2.1");
        let key = grouping.key(host, address("192.0.2.2"), 46, |asked| if asked == host { 7 } else { 8 });
        assert_eq!((key.source(), key.destination(), key.dscp()), (End::Label(7), End::Any, Some(46)));
    }

    #[test]
    fn a_host_is_inside_by_a_list_of_prefixes_or_by_its_label() {
        let (listed, labelled, neither) = (address("192.0.2.1"), address("192.0.2.2"), address("192.0.2.3"));
        let side = |inside, host| {
            let grouping = Grouping { inside, ..Grouping::NONE };
            let number = grouping.side(host, |asked| u32::from(asked == labelled), |asked| asked == listed);
            Side::from_number(number)
        };
        let both = Grouping::INSIDE_LISTED | Grouping::INSIDE_LABELLED;
        let (inside, outside) = (Some(Side::Inside), Some(Side::Outside));
        for (how, expected) in [
            (0, [None; 3]),
            (Grouping::INSIDE_LISTED, [inside, outside, outside]),
            (Grouping::INSIDE_LABELLED, [outside, inside, outside]),
            (both, [inside, inside, outside]),
        ] {
            assert_eq!([listed, labelled, neither].map(|host| side(how, host)), expected, "{how}");
        }
    }

    #[test]
    fn the_other_end_is_the_host_that_is_not_the_networks_own() {
        let (own, other) = (address("192.0.2.1"), address("198.51.100.1"));
        let end = |grouping: Grouping, source, destination| {
            let (label, is_listed) = (|asked| u32::from(asked == own), |asked| asked == own);
            grouping.other_end(source, destination, label, is_listed)
        };
        let listed = Grouping { inside: Grouping::INSIDE_LISTED, ..Grouping::NONE };
        let labelled = Grouping { by_source: 1, by_label: 1, ..Grouping::NONE };
        for grouping in [listed, labelled] {
            assert_eq!([end(grouping, own, other), end(grouping, other, own)], [other; 2]);
            assert_eq!([end(grouping, own, own), end(grouping, other, other)], [own, other]);
        }
        assert_eq!([end(Grouping::NONE, own, other), end(Grouping::NONE, other, own)], [own, other]);
        // Hosts may have a label and be outside.
        let both = Grouping { inside: Grouping::INSIDE_LISTED, ..labelled };
        let found = both.other_end(other, own, |_| 7, |asked| asked == other);
        assert_eq!(found, own);
    }

    #[test]
    fn networks_are_no_groups() {
        assert!(GroupKey::of_network(7).is_network() && GroupKey::OTHER_NETWORKS.is_network());
        assert_eq!(GroupKey::of_network(7).source(), End::Label(7));
        let file = Grouping { by_source: 1, by_label: 1, ..Grouping::NONE };
        let group = file.key(address("192.0.2.1"), address("::1"), 0, |_| 7);
        for key in [group, GroupKey::ALL, GroupKey::OTHER] {
            assert!(!key.is_network());
            assert_ne!(key.words(), GroupKey::of_network(7).words());
        }
    }

    #[test]
    fn the_keys_of_two_families_share_no_prefix() {
        let (v4, v6) = (LabelKey::new(1, address("0.0.0.0")), LabelKey::new(1, address("::")));
        assert_eq!((v4.bits(0), v6.bits(0)), (128, 32));
        assert_eq!((v4.bits(32), v6.bits(128)), (LabelKey::BITS, LabelKey::BITS));
        assert_ne!(v4.version, v6.version);
        assert_ne!(LabelKey::new(1, address("::")), LabelKey::new(2, address("::")));
    }
}

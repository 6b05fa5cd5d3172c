//! Longest-prefix match.

use ipnet::IpNet;
use pping_common::parse::IpAddress;

/// Finds the number of the longest prefix that an address matches.
///
/// Any two prefixes are nested or disjoint. So prefixes divide the addresses of a family into ranges, at most two for each
/// prefix, and a binary search among the starts of the ranges finds the longest prefix.
#[derive(Clone, Debug, Default)]
pub struct Lookup {
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u32)>,
}

impl Lookup {
    /// Builds the table from prefixes and their numbers, which must not be 0. The last of equal prefixes wins.
    pub fn new(prefixes: impl IntoIterator<Item = (IpNet, u32)>) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for (prefix, number) in prefixes {
            let len = prefix.prefix_len();
            match prefix.trunc() {
                IpNet::V4(prefix) => v4.push((prefix.addr().to_bits(), len, number)),
                IpNet::V6(prefix) => v6.push((prefix.addr().to_bits(), len, number)),
            }
        }
        let last_v4 = |len| u32::MAX.checked_shr(u32::from(len)).unwrap_or(0);
        let last_v6 = |len| u128::MAX.checked_shr(u32::from(len)).unwrap_or(0);
        Self {
            v4: ranges(v4, |start, len| start | last_v4(len), |last| last.checked_add(1)),
            v6: ranges(v6, |start, len| start | last_v6(len), |last| last.checked_add(1)),
        }
    }

    /// The number of an address; 0 if it matches no prefix.
    pub fn label(&self, address: IpAddress) -> u32 {
        if address.is_mapped() {
            find(&self.v4, address.0[1] as u32)
        } else {
            find(&self.v6, u128::from_be_bytes(address.to_bytes()))
        }
    }

    /// Whether an address matches a prefix.
    pub fn contains(&self, address: IpAddress) -> bool {
        self.label(address) != 0
    }

    /// Whether there are no prefixes.
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }
}

fn find<T: Ord + Copy>(ranges: &[(T, u32)], address: T) -> u32 {
    let after = ranges.partition_point(|&(start, _)| start <= address);
    after.checked_sub(1).and_then(|index| ranges.get(index)).map_or(0, |&(_, number)| number)
}

/// Divides the addresses into ranges: the start of each, and its number.
fn ranges<T: Ord + Copy>(
    mut prefixes: Vec<(T, u8, u32)>,
    last: impl Fn(T, u8) -> T,
    next: impl Fn(T) -> Option<T>,
) -> Vec<(T, u32)> {
    // Stable, so that equal prefixes keep their order; a prefix comes before those inside it.
    prefixes.sort_by_key(|&(start, len, _)| (start, len));
    let mut ranges: Vec<(T, u32)> = Vec::with_capacity(prefixes.len());
    let mut begin = |start, number| {
        ranges.pop_if(|&mut (before, _)| before == start);
        if ranges.last().is_none_or(|&(_, before)| before != number) {
            ranges.push((start, number));
        }
    };
    // The prefixes that contain the present address, from the shortest to the longest.
    let mut open: Vec<(T, u32)> = Vec::new();
    for (start, len, number) in prefixes {
        while let Some((end, _)) = open.pop_if(|&mut (end, _)| end < start) {
            if let Some(after) = next(end) {
                begin(after, open.last().map_or(0, |&(_, outer)| outer));
            }
        }
        begin(start, number);
        open.push((last(start, len), number));
    }
    while let Some((end, _)) = open.pop() {
        if let Some(after) = next(end) {
            begin(after, open.last().map_or(0, |&(_, outer)| outer));
        }
    }
    ranges.shrink_to_fit();
    ranges
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use ipnet::{Ipv4Net, Ipv6Net};
    use proptest::prelude::*;

    use super::*;

    fn address(address: IpAddr) -> IpAddress {
        IpAddress::from_bytes(match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        })
    }

    fn naive(prefixes: &[(IpNet, u32)], address: IpAddr) -> u32 {
        let matching = prefixes.iter().filter(|(prefix, _)| prefix.contains(&address));
        matching.max_by_key(|(prefix, _)| prefix.prefix_len()).map_or(0, |&(_, number)| number)
    }

    #[test]
    fn the_longest_prefix_wins_in_its_family() {
        let prefixes =
            ["0.0.0.0/0", "192.0.2.0/24", "192.0.2.128/25", "192.0.2.200/32", "::/0", "2001:db8::/32"];
        let lookup = Lookup::new((1..).zip(prefixes).map(|(number, text)| (text.parse().unwrap(), number)));
        for (host, number) in [
            ("0.0.0.0", 1),
            ("255.255.255.255", 1),
            ("192.0.2.127", 2),
            ("192.0.2.128", 3),
            ("192.0.2.200", 4),
            ("192.0.2.201", 3),
            ("192.0.3.0", 1),
            ("::", 5),
            ("2001:db8:ffff::", 6),
            ("2001:db9::", 5),
        ] {
            assert_eq!(lookup.label(address(host.parse().unwrap())), number, "{host}");
        }
        let none = Lookup::default();
        assert!(none.is_empty() && !none.contains(address("192.0.2.1".parse().unwrap())));
    }

    prop_compose! {
        /// Few bits, so that prefixes overlap, meet and repeat, at both ends of the addresses too.
        fn prefix()(is_v4: bool, bits in 0_u8..=255, len in 0_u8..=9) -> IpNet {
            if is_v4 {
                Ipv4Net::new(Ipv4Addr::new(bits, 128, 0, 0), len).unwrap().trunc().into()
            } else {
                let len = if len == 9 { 128 } else { len };
                Ipv6Net::new(Ipv6Addr::from_bits(u128::from(bits) << 120), len).unwrap().trunc().into()
            }
        }
    }

    proptest! {
        #[test]
        fn a_lookup_finds_the_same_as_a_scan_of_all_prefixes(
            prefixes in prop::collection::hash_map(prefix(), 1_u32..5, 0..40),
            hosts in prop::collection::vec((any::<bool>(), any::<u8>(), 0_u32..4), 1..40),
        ) {
            let prefixes: Vec<_> = prefixes.into_iter().collect();
            let lookup = Lookup::new(prefixes.iter().copied());
            for (is_v4, bits, low) in hosts {
                // The lowest and the highest addresses that share the bits.
                let low = [0, 1, 0x7f_ffff, 0xff_ffff][low as usize];
                let host: IpAddr = if is_v4 {
                    Ipv4Addr::from_bits(u32::from(bits) << 24 | low).into()
                } else {
                    let low = if low == 0xff_ffff { u128::MAX >> 8 } else { u128::from(low) };
                    Ipv6Addr::from_bits(u128::from(bits) << 120 | low).into()
                };
                prop_assert_eq!(lookup.label(address(host)), naive(&prefixes, host), "{}", host);
            }
        }
    }
}

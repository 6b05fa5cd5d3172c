//! Made-up samples of many networks.

use std::{collections::HashMap, net::Ipv4Addr, ops::Range, sync::Arc};

use pping::groups::{GroupName, SeriesName};
use pping_common::{method::Method, parse::Direction, series::SeriesCounts};

/// The samples of `groups` networks in the given second: up to 19 each, mostly around the network's own RTT.
pub(crate) fn slices(groups: u32, second: u64) -> Vec<(SeriesName, SeriesCounts)> {
    slices_of(0..groups, second)
}

/// The samples of networks in a tree of three levels: 64 networks at an access point, 16 access points at a site, 4 sites in a
/// region. The series of nodes are not among them.
pub(crate) fn slices_in_tree(groups: u32, second: u64) -> Vec<(SeriesName, SeriesCounts)> {
    let mut nodes: HashMap<String, Arc<GroupName>> = HashMap::new();
    let mut slices = slices(groups, second);
    for (number, (name, _)) in (0..).zip(&mut slices) {
        let mut above: Vec<Arc<GroupName>> = Vec::new();
        for (level, size) in [("region", 4096), ("site", 1024), ("ap", 64)] {
            let outer = above.last().map(|node| format!("{}/", node.label)).unwrap_or_default();
            let node = nodes.entry(format!("{outer}{level}-{}", number / size)).or_insert_with_key(|path| {
                let (level, above) = (Some(level.into()), above.clone());
                Arc::new(GroupName { level, above, ..GroupName::named(path) })
            });
            above.push(Arc::clone(node));
        }
        name.group = Arc::new(GroupName { above, ..(*name.group).clone() });
    }
    slices
}

/// The samples of some networks, by their numbers.
pub(crate) fn slices_of(groups: Range<u32>, second: u64) -> Vec<(SeriesName, SeriesCounts)> {
    groups.map(|number| (name(number), counts(number, second))).collect()
}

fn name(number: u32) -> SeriesName {
    let prefix: Arc<str> = format!("{}/24", Ipv4Addr::from(0x6440_0000 + (number << 8))).into();
    let label = Arc::clone(&prefix);
    SeriesName {
        interface: Some("eth0".into()),
        method: Method::TcpTs,
        matched: Some(Direction::Ingress),
        side: None,
        group: Arc::new(GroupName { prefix: Some(prefix), ..GroupName::named(&label) }),
    }
}

fn counts(number: u32, second: u64) -> SeriesCounts {
    let mut random = Random(second << 32 | u64::from(number));
    let base = 2_000_000 + u64::from(number) * 997_331 % 60_000_000;
    let mut counts = SeriesCounts::EMPTY;
    for _ in 0..random.below(20) {
        // Products of random numbers are distributed like RTTs: close together, with a tail.
        let queued = random.below(base) * random.below(8) * random.below(8) / 32;
        counts.sample(base + queued, 0);
    }
    for traffic in [&mut counts.sent, &mut counts.received] {
        traffic.packets = random.below(1_000);
        traffic.bytes = traffic.packets * random.below(1_400);
        traffic.retransmissions = random.below(16).saturating_sub(12);
    }
    counts
}

/// `SplitMix64`: deterministic, and good enough for this.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % bound
    }
}

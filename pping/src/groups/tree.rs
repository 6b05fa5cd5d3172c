//! The tree of groups: at each level, the counts of a node are the sum of those of its members.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use pping_common::series::SeriesCounts;

use super::names::SeriesName;

/// Adds up the counts of groups in an epoch, and returns those of all nodes of the tree, the innermost level first; nothing
/// without levels. Each sample and each packet of a group counts once at each level.
///
/// Only the innermost level reads the counts of all groups. The levels above it add up its nodes, of which there are fewer.
pub fn roll_up(series: &[(SeriesName, SeriesCounts)]) -> Vec<(SeriesName, SeriesCounts)> {
    let mut sums = Sums::default();
    for (name, counts) in series.iter().filter(|(_, counts)| !counts.is_empty()) {
        sums.add_above(name, counts);
    }
    let mut level = 0..sums.nodes.len();
    while !level.is_empty() {
        let end = level.end;
        for index in level {
            if let Some((name, counts)) = sums.nodes.get(index).cloned() {
                sums.add_above(&name, &counts);
            }
        }
        level = end..sums.nodes.len();
    }
    sums.nodes
}

/// The sums of nodes so far.
#[derive(Default)]
struct Sums {
    nodes: Vec<(SeriesName, SeriesCounts)>,
    indexes: HashMap<SeriesName, usize, RandomState>,
}

impl Sums {
    /// Adds the counts of a group or a node to the node right above it, if it has one.
    fn add_above(&mut self, name: &SeriesName, counts: &SeriesCounts) {
        let Some(node) = name.group.above.last() else { return };
        let name = SeriesName { group: node.clone(), ..name.clone() };
        let index = self.indexes.get(&name).copied().unwrap_or_else(|| {
            let index = self.nodes.len();
            self.indexes.insert(name.clone(), index);
            self.nodes.push((name, SeriesCounts::EMPTY));
            index
        });
        if let Some((_, sum)) = self.nodes.get_mut(index) {
            add(sum, counts);
        }
    }
}

/// Adds counts of the same time.
fn add(all: &mut SeriesCounts, counts: &SeriesCounts) {
    let SeriesCounts { sum, max, min_complement, sent, received, bins, hosts } = counts;
    all.sent.add(sent);
    all.received.add(received);
    if !counts.has_samples() {
        return;
    }
    // The times of a capture can be anything, so the sum may overflow.
    all.sum = all.sum.saturating_add(*sum);
    all.max = all.max.max(*max);
    all.min_complement = all.min_complement.max(*min_complement);
    // All samples of an epoch together are fewer than 2^32.
    all.bins.iter_mut().zip(bins).for_each(|(all, count)| *all = all.saturating_add(*count));
    all.hosts.iter_mut().zip(hosts).for_each(|(all, hosts)| *all |= hosts);
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use pping_common::{
        group::{GroupKey, Grouping},
        limits::DEFAULT_MAX_GROUPS,
        method::Method,
        parse::{Direction, IpAddress},
        series::{SeriesKey, Traffic},
    };

    use super::*;
    use crate::groups::{GroupName, Labels, Levels, NO_VALUE, Names};

    const LEVELS: [&str; 3] = ["region", "site", "ap"];

    fn key(label: u32) -> GroupKey {
        let file = Grouping { by_source: 1, by_label: 1, ..Grouping::NONE };
        let address = IpAddress::from_bytes([0; 16]);
        file.key(address, address, 0, |_| label)
    }

    /// Names of groups with these values at the levels, the outermost first; an empty value is none.
    fn names<const N: usize>(levels: [&str; N], groups: &[(&str, [&str; N])]) -> (Names, Vec<u32>) {
        let mut labels = Labels::default();
        let number = |&(label, values): &(&str, [&str; N])| {
            let columns = levels.into_iter().zip(values).filter(|(_, value)| !value.is_empty());
            labels.number(label, columns.map(|(column, value)| (column.into(), value.into())).collect())
        };
        let numbers = groups.iter().map(number).collect();
        let mut names = Names::default();
        names.relabel(labels, Levels::new(&levels.map(ToOwned::to_owned)));
        (names, numbers)
    }

    fn series(names: &mut Names, label: u32, method: Method) -> SeriesName {
        let key = SeriesKey::new(key(label), 1, method, Direction::Ingress);
        names.series(&key, Some("eth0".into())).unwrap()
    }

    fn counts(rtts: impl IntoIterator<Item = u64>, packets: u64) -> SeriesCounts {
        let mut counts = SeriesCounts::EMPTY;
        rtts.into_iter().for_each(|rtt| counts.sample(rtt, 1 << (rtt % 64)));
        counts.sent =
            Traffic { packets, bytes: 100 * packets, retransmissions: packets / 7, ce: packets / 9 };
        counts.received = Traffic { packets: packets / 2, ..Traffic::default() };
        counts
    }

    fn paths(nodes: &[(SeriesName, SeriesCounts)]) -> BTreeMap<String, u64> {
        let path = |name: &GroupName| format!("{}:{}", name.level.as_deref().unwrap_or("-"), name.label);
        nodes.iter().map(|(name, counts)| (path(&name.group), counts.count())).collect()
    }

    #[test]
    fn three_levels_of_all_groups_are_the_exact_sums_of_their_members() {
        let size = DEFAULT_MAX_GROUPS as usize;
        // 8 regions, 64 sites and 1,024 access points, whose names repeat at each site.
        let values =
            |number: usize| [number % 8, number % 64, number / 64 % 16].map(|value| format!("v{value}"));
        let all: Vec<_> = (0..size).map(|number| (format!("group-{number}"), values(number))).collect();
        let all: Vec<_> =
            all.iter().map(|(label, values)| (&**label, values.each_ref().map(|it| &**it))).collect();
        let (mut names, numbers) = names(LEVELS, &all);
        let slices: Vec<_> = (0_u64..)
            .zip(&numbers)
            .flat_map(|(number, &label)| [(number, label, Method::TcpTs), (number + 1, label, Method::Dns)])
            .map(|(number, label, method)| {
                let rtts = (0..number % 5).map(|sample| 1_000 * (1 + number * 7919 + sample * 104_729));
                (series(&mut names, label, method), counts(rtts, number % 11))
            })
            .collect();
        let nodes = roll_up(&slices);
        for (depth, (level, size)) in LEVELS.into_iter().zip([8, 64, 1024]).enumerate() {
            // Added up one by one, in wide numbers.
            let mut sums: BTreeMap<(Method, Vec<&str>), Vec<u128>> = BTreeMap::new();
            for ((name, counts), (_, values)) in
                slices.iter().zip(all.iter().flat_map(|group| [group, group]))
            {
                if !counts.is_empty() {
                    let sum = sums.entry((name.method, values[..=depth].to_vec())).or_default();
                    let numbers = numbers_of(counts);
                    sum.resize(numbers.len(), 0);
                    sum.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
                }
            }
            let of_level = nodes.iter().filter(|(name, _)| name.group.level.as_deref() == Some(level));
            let found: BTreeMap<(Method, Vec<&str>), Vec<u128>> = of_level
                .map(|(name, counts)| {
                    let values = name.group.columns.iter().map(|(_, value)| &**value).collect();
                    ((name.method, values), numbers_of(counts))
                })
                .collect();
            assert_eq!(found.len(), 2 * size, "{level}");
            assert!(found == sums, "the sums of {level} differ");
        }
    }

    /// Returns all numbers of counts that add up.
    fn numbers_of(counts: &SeriesCounts) -> Vec<u128> {
        let traffic = [counts.sent, counts.received];
        let traffic = traffic.iter().flat_map(|it| [it.packets, it.bytes, it.retransmissions, it.ce]);
        let numbers = traffic.chain([counts.sum]).chain(counts.bins.iter().map(|&it| it.into()));
        numbers.map(u128::from).collect()
    }

    #[test]
    fn a_node_has_the_extremes_and_hosts_of_its_groups() {
        let (mut names, numbers) = names(["site"], &[("a", ["x"]), ("b", ["x"])]);
        let slices: Vec<_> = numbers
            .iter()
            .zip([5_000_001, 7_000_002])
            .map(|(&label, rtt)| (series(&mut names, label, Method::TcpTs), counts([rtt], 1)))
            .collect();
        let [(_, sum)] = &roll_up(&slices)[..] else { panic!() };
        assert_eq!((sum.min(), sum.max(), sum.count()), (Some(5_000_001), Some(7_000_002), 2));
        let bits = |counts: &SeriesCounts| counts.hosts.iter().map(|it| it.count_ones()).sum::<u32>();
        assert_eq!(bits(sum), slices.iter().map(|(_, counts)| bits(counts)).sum::<u32>());
    }

    #[test]
    fn the_same_name_at_two_sites_is_two_nodes() {
        let groups = [
            ("a", ["berlin", "ap-3"]),
            ("b", ["berlin", "ap-3"]),
            ("c", ["lund", "ap-3"]),
            ("d", ["lund", ""]),
            ("e", ["a/b", "c"]),
            ("f", ["a", "b/c"]),
        ];
        let (mut names, mut numbers) = names(["site", "ap"], &groups);
        // Hosts that the file does not list.
        numbers.push(0);
        let slices: Vec<_> = (1..)
            .zip(&numbers)
            .map(|(samples, &label)| (series(&mut names, label, Method::TcpTs), counts(vec![9; samples], 1)))
            .collect();
        let expected = [
            ("site:berlin", 3),
            ("site:lund", 7),
            ("site:a\\/b", 5),
            ("site:a", 6),
            ("site:(none)", 7),
            ("ap:berlin/ap-3", 3),
            ("ap:lund/ap-3", 3),
            ("ap:lund/(none)", 4),
            ("ap:a\\/b/c", 5),
            ("ap:a/b\\/c", 6),
            ("ap:(none)/(none)", 7),
        ];
        let expected = expected.map(|(path, count)| (path.to_owned(), count)).into();
        assert_eq!(paths(&roll_up(&slices)), expected);
        assert_eq!(NO_VALUE, "(none)");
    }

    #[test]
    fn a_group_counts_where_the_current_file_puts_it() {
        let (mut names, numbers) = names(["site"], &[("a", ["berlin"])]);
        let slice = |names: &mut Names| [(series(names, numbers[0], Method::TcpTs), counts([9], 1))];
        assert_eq!(paths(&roll_up(&slice(&mut names))), [("site:berlin".to_owned(), 1)].into());
        let mut labels = names.labels().clone();
        labels.number("a", vec![("site".into(), "lund".into())]);
        let levels = names.levels().clone();
        names.relabel(labels.clone(), levels);
        assert_eq!(paths(&roll_up(&slice(&mut names))), [("site:lund".to_owned(), 1)].into());
        names.relabel(labels, Levels::default());
        assert!(roll_up(&slice(&mut names)).is_empty());
    }

    #[test]
    fn names_of_nodes_go_with_their_last_group() {
        let groups: Vec<_> = (0..100).map(|number| (format!("g{number}"), format!("s{number}"))).collect();
        let groups: Vec<_> = groups.iter().map(|(label, site)| (&**label, [&**site])).collect();
        let (mut names, numbers) = names(["site"], &groups);
        let first = series(&mut names, numbers[0], Method::TcpTs);
        for &label in &numbers[1..] {
            series(&mut names, label, Method::TcpTs);
            names.forget(&key(label));
        }
        assert!(names.nodes() < 10, "{}", names.nodes());
        let again = series(&mut names, numbers[0], Method::TcpTs);
        assert!(Arc::ptr_eq(&first.group, &again.group), "the group that is left keeps its name");
    }
}

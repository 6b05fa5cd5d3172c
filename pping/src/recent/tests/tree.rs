//! The tree of groups.

use std::sync::Arc;

use pping_common::group::GroupKey;

use super::*;
use crate::{
    groups::{Columns, Directory, FileColumns, GroupName, Labels, Levels, group_in_tree, roll_up},
    quality,
};

/// Groups with their site and access point, and an RTT.
const GROUPS: [(&str, &str, &str, u64); 4] = [
    ("a", "berlin", "ap-1", 10),
    ("b", "berlin", "ap-3", 20),
    ("c", "lund", "ap-3", 900),
    ("d", "lund", "ap-3", 30),
];

/// The key of the group of a label.
fn key_of(label: &str) -> GroupKey {
    let number = Labels::default().number(label, Columns::new());
    let file = Grouping { by_source: 1, by_label: 1, ..Grouping::NONE };
    let address = IpAddress::from_bytes([0; 16]);
    file.key(address, address, 0, |_| number)
}

fn series() -> Vec<(SeriesName, SeriesCounts)> {
    let of_group = |(label, site, ap, rtt): (&str, &str, &str, u64)| {
        let group = group_in_tree(label, &[("site", site), ("ap", ap)]);
        let group = Arc::new(GroupName { key: key_of(label), ..GroupName::clone(&group) });
        (SeriesName { group, ..name(label, &[], Direction::Ingress) }, counts(vec![rtt * MS; 200]))
    };
    let mut series: Vec<_> = GROUPS.map(of_group).into();
    series.extend(roll_up(&series));
    series
}

fn recent() -> RecentHistory {
    let recent = RecentHistory::new(MEMORY);
    recent.list_levels(Levels::new(&["site".to_owned(), "ap".to_owned()]));
    recent.score_by(quality::load(None).unwrap());
    recent.add(&series(), START);
    recent
}

fn by(level: &str) -> Query {
    Query { by: Some(level.to_owned()), sort: Some(Column::Group), order: Order::Asc, ..Query::default() }
}

/// The path, members, bad members and samples of each node.
fn nodes(answer: &GroupsAnswer) -> Vec<(&str, usize, usize, u64)> {
    let node = |it: &GroupAnswer| {
        let node = it.node.as_ref().unwrap();
        (node.members.unwrap(), node.bad.unwrap(), it.series.iter().map(|it| it.rtt.unwrap().count).sum())
    };
    answer.groups.iter().map(|it| (&*it.group, node(it))).map(|(path, (a, b, c))| (path, a, b, c)).collect()
}

#[test]
fn nodes_have_sums_and_say_how_many_members_are_bad() {
    let recent = recent();
    let answer = recent.groups(&by("site"));
    assert_eq!(nodes(&answer), [("berlin", 2, 0, 400), ("lund", 2, 1, 400)]);
    assert_eq!((answer.known, answer.found), (2, 2));
    let answer = recent.groups(&by("ap"));
    assert_eq!(
        nodes(&answer),
        [("berlin/ap-1", 1, 0, 200), ("berlin/ap-3", 1, 0, 200), ("lund/ap-3", 2, 1, 400)]
    );
    let answer = recent.groups(&Query { under: Some("berlin".to_owned()), ..by("ap") });
    assert_eq!(nodes(&answer).len(), 2);
    // The summary counts each sample once, and names the levels.
    let summary = recent.summary();
    assert_eq!((summary.groups, &*summary.levels), (4, &["site".into(), "ap".into()][..]));
    let history = recent.history(&SeriesQuery::default());
    assert_eq!(history.series[0].cells[0].rtt.unwrap().count, 800);
}

/// The groups of [`GROUPS`] with a prefix each, an idle one with a prefix in Berlin, and two that the file has without one.
fn directory() -> Directory {
    let mut labels = Labels::default();
    let mut number = |label: &str, site: &str, ap: &str| {
        let columns = Columns::from([("site".into(), site.into()), ("ap".into(), ap.into())]);
        (labels.number(label, columns.clone()), columns)
    };
    let listed = GROUPS.map(|(label, site, ap, _)| number(label, site, ap).0);
    let idle = number("idle", "berlin", "ap-1").0;
    let alone = [number("e", "berlin", "ap-9"), number("f", "oslo", "ap-1")];
    let prefixes = (1..).zip(listed.into_iter().chain([idle]));
    let prefixes = prefixes.map(|(host, label)| (format!("10.0.0.{host}/32").parse().unwrap(), label));
    let mut directory = Directory::new(prefixes.collect(), &labels);
    let alone = alone.map(|(label, columns)| (label, Arc::new(columns)));
    directory.set_labels(labels, FileColumns::new(alone));
    directory
}

#[test]
fn members_are_all_that_the_names_put_there() {
    let recent = recent();
    recent.list_groups(directory());
    let members = |by: Query| {
        let answer = recent.groups(&by).groups;
        let of = |it: GroupAnswer| {
            let node = it.node.unwrap();
            (it.group.to_string(), node.members.unwrap(), node.active.unwrap(), node.bad.unwrap())
        };
        answer.into_iter().map(of).collect::<Vec<_>>()
    };
    let berlin = |members| ("berlin".to_owned(), members, 2, 0);
    assert_eq!(members(by("site")), [berlin(4), ("lund".to_owned(), 2, 2, 1)]);
    assert_eq!(members(by("ap"))[0], ("berlin/ap-1".to_owned(), 2, 1, 0));
    recent.list_groups(Directory::default());
    assert_eq!(members(by("site"))[0], berlin(2), "without names those that were measured");
}

#[test]
fn a_node_that_is_not_there_is_refused_with_the_nearest() {
    let recent = recent();
    recent.list_groups(directory());
    let under = |path: &str| Query { under: Some(path.to_owned()), ..Query::default() };
    let refused = recent.groups_under(&under("berlni")).unwrap_err();
    assert!(refused.starts_with("under: there is no node `berlni`; nodes: berlin, "), "{refused}");
    assert_eq!(recent.groups(&under("berlni")).groups.len(), 0);
    assert_eq!(recent.groups_under(&under("lund/ap-3")).unwrap().found, 2);
    // One that has members, but no traffic, is no error.
    let oslo = recent.groups_under(&under("oslo")).unwrap();
    assert_eq!((oslo.found, oslo.note.as_deref()), (0, Some("nothing was measured recently under oslo")));
    let levels = recent.levels();
    let above = Query { by: Some("site".to_owned()), ..under("berlin") };
    let refused = above.check(false, &levels, false).unwrap_err();
    assert!(refused.starts_with("by: `berlin` is a node of `site`") && refused.contains("`ap`"), "{refused}");
}

#[test]
fn a_filter_that_finds_nothing_inside_a_node_says_so() {
    let recent = recent();
    recent.list_groups(directory());
    let note = |filter: &str, under: &str, by: Option<&str>| {
        let (under, by) = (Some(under.to_owned()), by.map(ToOwned::to_owned));
        recent.groups(&Query { filter: filter.to_owned(), under, by, ..Query::default() }).note
    };
    assert_eq!(note("10.0.0.3", "lund", None), None, "it finds c");
    for (filter, said) in [
        ("10.0.0.3", "10.0.0.3 is in the group c (10.0.0.3/32), which is not under berlin"),
        ("10.9.9.9", "10.9.9.9 is in no prefix of the groups file, so it is not under berlin"),
        ("c", "under berlin: no group with c in its label, prefixes or columns was measured recently"),
        (
            "10.0.0.300",
            "under berlin: 10.0.0.300 is no valid address or prefix, and no group has it in its label",
        ),
    ] {
        for by in [None, Some("ap")] {
            let note = note(filter, "berlin", by).expect(filter);
            assert!(note.starts_with(said), "{note}");
        }
    }
    let idle = note("10.0.0.5", "berlin", None).unwrap();
    assert!(
        idle.starts_with("under berlin: 10.0.0.5 is in the group idle (10.0.0.5/32), for which"),
        "{idle}"
    );
}

#[test]
fn the_numbers_of_a_node_are_the_sums_of_the_groups_under_it() {
    let recent = recent();
    recent.add(&series(), START + SECOND);
    for level in ["site", "ap"] {
        for node in recent.groups(&by(level)).groups {
            let under = Query { under: Some(node.node.unwrap().path.to_string()), ..Query::default() };
            let members = recent.groups(&under).groups;
            let sum =
                |of: fn(&SeriesAnswer) -> u64| members.iter().flat_map(|it| &it.series).map(of).sum::<u64>();
            let [series] = &node.series[..] else { panic!() };
            for of in [
                |it: &SeriesAnswer| it.rtt.unwrap().count,
                |it: &SeriesAnswer| it.sent.packets,
                |it: &SeriesAnswer| it.received.bytes,
            ] {
                assert_eq!(of(series), sum(of), "{}", node.group);
            }
            let histogram = |id: &str| {
                let history = recent.group(id).unwrap().history;
                let mut bins = std::collections::BTreeMap::<u64, u64>::new();
                for (bound, count) in history.series[0].cells.iter().flat_map(|cell| cell.histogram.clone()) {
                    *bins.entry(bound).or_default() += u64::from(count);
                }
                bins
            };
            let mut bins = std::collections::BTreeMap::<u64, u64>::new();
            for (bound, count) in members.iter().flat_map(|it| histogram(&it.id)) {
                *bins.entry(bound).or_default() += count;
            }
            assert_eq!(histogram(&node.id), bins, "{}", node.group);
        }
    }
}

#[test]
fn a_filter_finds_the_nodes_of_the_groups_that_it_finds() {
    let recent = recent();
    for (filter, paths) in
        [("c", &["lund"][..]), ("berlin", &["berlin"]), ("ap-3", &["berlin", "lund"]), ("x", &[])]
    {
        let answer = recent.groups(&Query { filter: filter.to_owned(), ..by("site") });
        let found: Vec<_> = answer.groups.iter().map(|it| &*it.group).collect();
        assert_eq!(found, paths, "{filter}");
        // A node has all its members, those that the filter does not find included.
        assert!(answer.groups.iter().all(|it| it.node.as_ref().unwrap().members == Some(2)));
    }
}

#[test]
fn nodes_are_sorted_by_their_bad_members() {
    let recent = recent();
    let sorted = |sort, order| {
        let answer = recent.groups(&Query { sort: Some(sort), order, ..by("ap") });
        answer.groups.iter().map(|it| it.group.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(sorted(Column::Bad, Order::Desc)[0], "lund/ap-3");
    assert_eq!(sorted(Column::Members, Order::Asc)[2], "lund/ap-3");
}

#[test]
fn a_query_for_a_level_that_is_not_there_is_refused() {
    let levels = recent().levels();
    let check = |query: &Query, levels: &Levels| query.check(false, levels, false).unwrap_err();
    assert_eq!(check(&by("city"), &levels), "by: unknown level `city`, expected one of `site`, `ap`");
    let none = Levels::default();
    assert_eq!(check(&by("site"), &none), "by: this pping has no tree of groups; start it with --roll-up");
    let under = Query { under: Some("a".to_owned()), ..Query::default() };
    assert!(check(&under, &none).starts_with("under: this pping has no tree"));
    let bad = Query { sort: Some(Column::Bad), ..Query::default() };
    assert_eq!(check(&bad, &levels), "sort: only nodes have `bad`; name their level with by");
    assert_eq!(Query { sort: Some(Column::Bad), ..by("ap") }.check(false, &levels, false), Ok(()));
    let worst = WorstQuery { level: Some("city".to_owned()), ..WorstQuery::default() };
    assert!(worst.check(&levels, false).unwrap_err().starts_with("level: unknown level `city`"));
}

#[test]
fn each_level_has_its_worst_nodes() {
    let recent = recent();
    let worst = |level: Option<&str>| {
        let level = level.map(ToOwned::to_owned);
        let answer = recent.worst(&WorstQuery { limit: 1, level, ..WorstQuery::default() });
        answer.groups.iter().map(|it| (it.group.to_string(), it.level.clone())).collect::<Vec<_>>()
    };
    assert_eq!(worst(None), [("c".to_owned(), None)]);
    assert_eq!(worst(Some("site")), [("lund".to_owned(), Some("site".into()))]);
    assert_eq!(worst(Some("ap")), [("lund/ap-3".to_owned(), Some("ap".into()))]);
}

#[test]
fn a_node_has_an_id_and_a_past_of_its_own() {
    let recent = RecentHistory::new(MEMORY);
    // A group that is called like a node.
    let group = group_in_tree("berlin", &[("site", "berlin")]);
    let mut series = vec![(SeriesName { group, ..name("", &[], Direction::Ingress) }, counts([MS]))];
    let of_other = (
        SeriesName { group: group_in_tree("b", &[("site", "berlin")]), ..series[0].0.clone() },
        counts([MS]),
    );
    series.push(of_other);
    series.extend(roll_up(&series));
    recent.add(&series, START);
    let [node] = &recent.groups(&by("site")).groups[..] else { panic!() };
    let group =
        recent.groups(&Query::default()).groups.into_iter().find(|it| &*it.group == "berlin").unwrap();
    assert_ne!(node.id, group.id);
    let detail = |id: &str| recent.group(id).unwrap();
    assert_eq!(detail(&node.id).group.node, node.node);
    assert_eq!(detail(&node.id).history.series[0].cells[0].rtt.unwrap().count, 2);
    assert_eq!(detail(&group.id).group.node, None);
    assert_eq!(detail(&group.id).history.series[0].cells[0].rtt.unwrap().count, 1);
}

#[test]
fn memory_has_a_bound_with_a_tree_too() {
    let recent = RecentHistory::new(200_000);
    for second in 0..200 {
        let of_group = |number: u64| {
            let (label, ap) = (format!("group-{number}"), format!("ap-{}", number / 2));
            let group = group_in_tree(&label, &[("ap", &ap)]);
            let rtts = (0..20).map(|sample| MS * (1 + (number + second) * 37 % 91 + sample * 11));
            (SeriesName { group, ..name("", &[], Direction::Ingress) }, counts(rtts))
        };
        let mut series: Vec<_> = (0..200).map(of_group).collect();
        series.extend(roll_up(&series));
        recent.add(&series, START + second * SECOND);
    }
    recent.add(&[], START + 200 * SECOND);
    let model = recent.0.model.lock();
    let size: usize = model.groups.values().chain(model.nodes.values()).map(Group::size).sum();
    assert!(size > 100_000 && size <= 200_000, "{size}");
}

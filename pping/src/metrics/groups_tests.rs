use std::collections::{BTreeMap, BTreeSet};

use pping_common::{hist, parse::Direction};
use proptest::prelude::*;

use super::*;
use crate::{
    groups::{group_in_tree, roll_up},
    metrics::{Encoding, Metrics, PageFormat, persistent::in_memory, protobuf::Protobuf, text::Text},
};

const BASELINE: Duration = Duration::from_mins(10);

fn name(label: &str, columns: &[(&str, &str)]) -> SeriesName {
    let columns = columns.iter().map(|&(column, value)| (column.into(), value.into())).collect();
    SeriesName {
        interface: Some("eth0".into()),
        method: Method::TcpTs,
        matched: Some(Direction::Ingress),
        side: None,
        group: Arc::new(GroupName { columns, ..GroupName::named(label) }),
    }
}

fn counts(samples: u64) -> SeriesCounts {
    let mut counts = SeriesCounts::EMPTY;
    (0..samples).for_each(|sample| counts.sample(1_000_000 + 50_000_000 * sample, 0));
    counts.sent.packets = 2 * samples + 1;
    counts
}

fn page(groups: &mut Groups, format: PageFormat, now: Instant) -> String {
    let mut page = Box::new(Text::new(format == PageFormat::OpenMetrics, Encoding::Identity));
    groups.write(&mut *page, now);
    page.finish().text()
}

/// Returns the counters of a page by series: names that end in `_total`, `_count`, `_sum` and `_bucket`.
fn counters(page: &str) -> BTreeMap<String, f64> {
    let values = page.lines().filter(|line| !line.starts_with('#'));
    let counters = values.filter_map(|line| line.rsplit_once(' ')).filter(|(series, _)| {
        let name = series.split('{').next().unwrap();
        ["_total", "_count", "_sum", "_bucket"].iter().any(|end| name.ends_with(end))
    });
    counters.map(|(series, value)| (series.to_owned(), value.parse().unwrap())).collect()
}

fn labels(page: &str) -> BTreeSet<&str> {
    let counts = page.lines().filter(|line| line.starts_with("pping_rtt_seconds_count"));
    counts.map(|line| line.split("group=\"").nth(1).unwrap().split('"').next().unwrap()).collect()
}

#[test]
fn a_page_has_every_metric_of_a_group() {
    let now = Instant::now();
    let mut groups = Groups::new(1, BASELINE, now);
    groups.add(
        &[(name("customer-7", &[("site", "Berlin"), ("1 \"Tarif\"", "a\\b"), ("group", "x")]), counts(2))],
        now,
    );
    let page = page(&mut groups, PageFormat::Classic, now);
    let labels = "interface=\"eth0\",method=\"tcp-ts\",matched=\"ingress\",group=\"customer-7\"}";
    // How far the two samples lie above the lower one, at the resolution of bins.
    let [low, high] = [1_000_000, 51_000_000]
        .map(|rtt| hist::middle(hist::bin(rtt)).clamp(1_000_000, 51_000_000) - 1_000_000);
    for line in [
        "# TYPE pping_rtt_seconds histogram".to_owned(),
        format!("pping_rtt_seconds_bucket{{le=\"9.5367431640625e-07\",{labels} 0"),
        format!("pping_rtt_seconds_bucket{{le=\"0.001953125\",{labels} 1"),
        format!("pping_rtt_seconds_bucket{{le=\"64\",{labels} 2"),
        format!("pping_rtt_seconds_bucket{{le=\"+Inf\",{labels} 2"),
        format!("pping_rtt_seconds_sum{{{labels} 0.052000000"),
        format!("pping_rtt_seconds_count{{{labels} 2"),
        format!("pping_min_rtt_seconds{{{labels} 0.001000000"),
        format!("pping_rtt_baseline_seconds{{{labels} 0.001000000"),
        format!("pping_rtt_inflation_seconds{{percentile=\"50\",{labels} 0.{low:09}"),
        format!("pping_rtt_inflation_seconds{{percentile=\"95\",{labels} 0.{high:09}"),
        "# TYPE pping_group_packets_total counter".to_owned(),
        format!("pping_group_packets_total{{sender=\"timed\",{labels} 5"),
        format!("pping_group_tcp_retransmissions_total{{sender=\"replying\",{labels} 0"),
        "# TYPE pping_group_info gauge".to_owned(),
        "pping_group_info{group=\"customer-7\",site=\"Berlin\",_1__Tarif_=\"a\\\\b\",group_=\"x\"} 1"
            .to_owned(),
    ] {
        assert!(page.lines().any(|it| it == line), "no `{line}` in:\n{page}");
    }
}

#[test]
fn the_columns_of_a_group_may_change() {
    let now = Instant::now();
    let mut groups = Groups::new(9, BASELINE, now);
    groups.add(&[(name("a", &[("site", "Berlin")]), counts(1))], now);
    groups.add(&[(name("a", &[("site", "Hamburg")]), counts(1))], now);
    let page = page(&mut groups, PageFormat::OpenMetrics, now);
    assert!(page.contains("\n# TYPE pping_group info\n"), "{page}");
    assert!(
        page.contains("\npping_group_info{group=\"a\",site=\"Hamburg\"} 1\n") && !page.contains("Berlin")
    );
    assert_eq!(counters(&page).len(), 30 + 6, "{page}");
}

#[test]
fn a_series_without_samples_has_traffic_only() {
    let now = Instant::now();
    let mut groups = Groups::new(9, BASELINE, now);
    groups.add(&[(name("all", &[]), counts(0))], now);
    let page = page(&mut groups, PageFormat::Classic, now);
    assert_eq!(counters(&page).len(), 6, "{page}");
    assert!(
        !page.lines().any(|line| line.starts_with("pping_rtt") || line.starts_with("pping_min")),
        "{page}"
    );
}

#[test]
fn other_has_no_baseline() {
    let now = Instant::now();
    let mut groups = Groups::new(1, BASELINE, now);
    groups.add(&[(name("a", &[]), counts(9)), (name("b", &[]), counts(9))], now);
    let page = page(&mut groups, PageFormat::Classic, now);
    assert_eq!(labels(&page), BTreeSet::from(["a", "other"]));
    let of_other = |start: &str| page.lines().any(|it| it.starts_with(start) && it.contains("\"other\""));
    assert!(of_other("pping_min_rtt_seconds{"));
    assert!(!of_other("pping_rtt_baseline_seconds{") && !of_other("pping_rtt_inflation_seconds{"));
}

#[test]
fn spin_bits_have_no_baseline() {
    let now = Instant::now();
    let mut groups = Groups::new(9, BASELINE, now);
    let spin = SeriesName { method: Method::QuicSpin, ..name("a", &[]) };
    groups.add(&[(spin, counts(9))], now);
    let page = page(&mut groups, PageFormat::Classic, now);
    assert!(page.contains("\npping_min_rtt_seconds{"), "{page}");
    assert!(
        !page.contains("\npping_rtt_baseline_seconds{") && !page.contains("\npping_rtt_inflation_seconds{")
    );
}

#[test]
fn an_expired_group_is_gone_and_its_label_is_free() {
    let now = Instant::now();
    let mut groups = Groups::new(1, BASELINE, now);
    let (a, b) = (name("a", &[]), name("b", &[]));
    let more = SeriesName { matched: Some(Direction::Egress), ..a.clone() };
    groups.add(&[(a.clone(), counts(1)), (more.clone(), counts(1)), (b.clone(), counts(1))], now);
    groups.forget(&a);
    groups.add(&[(b.clone(), counts(1))], now);
    assert_eq!(labels(&page(&mut groups, PageFormat::Classic, now)), BTreeSet::from(["a", "other"]));
    groups.forget(&more);
    groups.forget(&b);
    groups.add(&[(b, counts(1))], now);
    assert_eq!(labels(&page(&mut groups, PageFormat::Classic, now)), BTreeSet::from(["b", "other"]));
    groups.forget(&name(OTHER, &[]));
    assert!(labels(&page(&mut groups, PageFormat::Classic, now)).contains("other"), "its label is reserved");
}

#[test]
fn an_interface_that_lost_its_id_is_gone_with_all_its_series() {
    let now = Instant::now();
    let mut groups = Groups::new(2, BASELINE, now);
    let of = |interface: &str, label| SeriesName { interface: Some(interface.into()), ..name(label, &[]) };
    let queue = |interface: &str| {
        let SeriesName { interface, group, .. } = of(interface, "all");
        (QueueName { interface, group }, counts(1))
    };
    for interface in ["veth1", "veth2"] {
        groups.add(&[(of(interface, "all"), counts(1)), (of(interface, "a"), counts(1))], now);
        groups.add_queues(&[queue(interface)]);
    }
    groups.forget_interface("veth1");
    let page = page(&mut groups, PageFormat::Classic, now);
    assert!(
        !page.contains("veth1") && page.contains("pping_group_queue_seconds_count{interface=\"veth2\""),
        "{page}"
    );
    assert!(labels(&page).contains("all"), "that of the other interface: {page}");
}

#[test]
fn concurrent_requests_share_a_page() {
    let metrics = Metrics::new(1, BASELINE);
    let get = |format, encoding| metrics.page(format, encoding);
    let one = get(PageFormat::Classic, Encoding::Identity);
    assert!(Arc::ptr_eq(&one, &get(PageFormat::Classic, Encoding::Identity)));
    assert!(!Arc::ptr_eq(&one, &get(PageFormat::OpenMetrics, Encoding::Identity)));
    assert!(!Arc::ptr_eq(&one, &get(PageFormat::Classic, Encoding::Gzip)));
    metrics.add(&[(name("a", &[]), counts(1))], Instant::now());
    let two = get(PageFormat::Classic, Encoding::Identity);
    assert!(!one.text().contains("group=\"a\"") && two.text().contains("group=\"a\""));
}

/// A step of a test: a second with samples of some groups, a group that expires, or time that passes.
#[derive(Clone, Debug)]
enum Step {
    Samples(Vec<(usize, u64)>),
    Forget(usize),
    Pause(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop::collection::vec((0_usize..8, 0_u64..20), 0..6).prop_map(Step::Samples),
        1 => (0_usize..8).prop_map(Step::Forget),
        2 => (1_u64..400).prop_map(Step::Pause),
    ]
}

proptest! {
    #[test]
    fn counters_only_grow_and_add_up_whichever_groups_have_labels(
        limit in 0_u32..4,
        steps in prop::collection::vec(step(), 1..60),
    ) {
        const GROUPS: [&str; 8] = ["a", "b", "c", "d", "e", "other", "unlisted", "all"];
        let mut now = Instant::now();
        let mut groups = Groups::new(limit, BASELINE, now);
        let mut before = BTreeMap::new();
        for step in steps {
            now += Duration::from_secs(1);
            let (mut samples, mut packets) = (0, 0);
            match step {
                Step::Samples(some) => {
                    let slices: Vec<_> =
                        some.iter().map(|&(group, count)| (name(GROUPS[group], &[]), counts(count))).collect();
                    samples = slices.iter().map(|(_, counts)| counts.count()).sum();
                    packets = slices.iter().map(|(_, counts)| counts.sent.packets).sum();
                    groups.add(&slices, now);
                }
                Step::Forget(group) => {
                    groups.forget(&name(GROUPS[group], &[]));
                    if group < 5 {
                        // It is a new series if it ever comes back.
                        before.retain(|series: &String, _| !series.contains(&format!("\"{}\"", GROUPS[group])));
                    }
                }
                Step::Pause(seconds) => now += Duration::from_secs(seconds),
            }
            let page = page(&mut groups, PageFormat::Classic, now);
            prop_assert!(labels(&page).len() <= limit as usize + 3, "{page}");
            let counters = counters(&page);
            let (mut new_samples, mut new_packets) = (0.0, 0.0);
            for (series, value) in &counters {
                // This holds even if the series was not exposed for a time.
                let last = before.get(series).copied().unwrap_or(0.0);
                prop_assert!(*value >= last, "{series} went from {last} to {value}");
                let grown = value - last;
                if series.starts_with("pping_rtt_seconds_count") {
                    new_samples += grown;
                }
                if series.starts_with("pping_group_packets_total{sender=\"timed\"") {
                    new_packets += grown;
                }
            }
            prop_assert_eq!((new_samples, new_packets), (samples as f64, packets as f64));
            before.extend(counters);
        }
    }
}

#[test]
fn the_next_run_continues_from_committed_epochs_only() {
    let now = Instant::now();
    let names: Vec<_> = ["a", "b"].map(|label| name(label, &[])).into();
    let slices = |samples| names.iter().map(|name| (name.clone(), counts(samples))).collect::<Vec<_>>();
    let new = |persistent| {
        let mut groups = Groups::new(1, BASELINE, now);
        groups.persist_in(persistent);
        groups
    };
    let mut groups = new(in_memory(8));
    groups.add(&slices(3), now);
    groups.commit(1);
    groups.add(&slices(2), now);
    groups.commit(2);
    let exposed = page(&mut groups, PageFormat::Classic, now);
    groups.add(&slices(100), now);
    groups.commit(3);
    // Killed: the third epoch was written, but never committed.
    let persistent = groups.persistent.take().unwrap();
    let mut next = new(persistent);
    next.resume(&names, 2, now);
    assert_eq!(counters(&page(&mut next, PageFormat::Classic, now)), counters(&exposed));
    assert_eq!(labels(&exposed), BTreeSet::from(["a", "other"]));
    // The next run takes that epoch again.
    next.add(&slices(100), now);
    next.commit(3);
    let exposed = page(&mut next, PageFormat::Classic, now);
    let mut last = new(next.persistent.take().unwrap());
    last.resume(&names, 3, now);
    assert_eq!(counters(&page(&mut last, PageFormat::Classic, now)), counters(&exposed));
    let count =
        counters(&exposed).into_iter().find(|(name, _)| name.contains("_count") && name.contains("\"a\""));
    assert!((count.unwrap().1 - 105.0).abs() < 0.5);
    // A removed series stays removed.
    last.forget(&names[0]);
    let mut after = new(last.persistent.take().unwrap());
    after.resume(&names, 3, now);
    assert_eq!(labels(&page(&mut after, PageFormat::Classic, now)), BTreeSet::from(["other"]));
}

#[test]
fn native_histograms_begin_with_the_run() {
    let now = Instant::now();
    let begin = SystemTime::now();
    let names = [name("a", &[])];
    let mut groups = Groups::new(1, BASELINE, now);
    groups.persist_in(in_memory(8));
    groups.add(&[(names[0].clone(), counts(3))], now);
    groups.commit(1);
    let mut next = Groups::new(1, BASELINE, now);
    next.persist_in(groups.persistent.take().unwrap());
    next.resume(&names, 1, now);
    let histogram = |groups: &mut Groups| {
        let mut page = Box::new(Protobuf::new(Encoding::Identity));
        groups.write(&mut *page, now);
        let family = b"\x0a\x11pping_rtt_seconds";
        page.finish().chunks().concat().windows(family.len()).any(|bytes| bytes == family)
    };
    // The persistent counts have no bins of the three samples.
    assert!(!histogram(&mut next));
    assert!(page(&mut next, PageFormat::Classic, now).contains("pping_rtt_seconds_count"));
    next.add(&[(names[0].clone(), counts(2))], now);
    assert!(histogram(&mut next));
    let rtts = &next.series[0].rtts;
    assert_eq!((rtts.counted().cumulative().last(), rtts.cumulative().last()), (Some(&2), Some(&5)));
    assert!(begin <= rtts.counted().since() && rtts.counted().since() <= SystemTime::now());
}

/// The series of groups at sites, and those of the nodes above them.
fn tree(groups: &[(&str, &str)]) -> Vec<(SeriesName, SeriesCounts)> {
    let of_group = |&(label, site): &(&str, &str)| {
        let group = group_in_tree(label, &[("site", site), ("ap", "1/a")]);
        (SeriesName { group, ..name(label, &[]) }, counts(2))
    };
    let mut series: Vec<_> = groups.iter().map(of_group).collect();
    series.extend(roll_up(&series));
    series
}

#[test]
fn levels_have_metrics_of_their_own_that_are_sums() {
    let now = Instant::now();
    let (mut groups, mut nodes) = (Groups::new(9, BASELINE, now), Groups::of_nodes(9, BASELINE, now));
    let before = page(&mut nodes, PageFormat::OpenMetrics, now);
    assert!(!before.contains("pping_level"), "{before}");
    for _ in 0..2 {
        let series = tree(&[("a", "Berlin"), ("b", "Berlin"), ("c", "Lund")]);
        groups.add(&series, now);
        nodes.add(&series, now);
    }
    let (groups, nodes) = [&mut groups, &mut nodes].map(|it| page(it, PageFormat::OpenMetrics, now)).into();
    assert!(!groups.contains("pping_level") && !groups.contains("level="), "{groups}");
    assert!(!nodes.contains("\npping_rtt") && !nodes.contains("\npping_group"), "{nodes}");
    let series = "interface=\"eth0\",method=\"tcp-ts\",matched=\"ingress\"";
    for line in [
        format!("pping_level_rtt_seconds_count{{{series},level=\"site\",path=\"Berlin\",under=\"\"}} 8"),
        format!("pping_level_rtt_seconds_count{{{series},level=\"site\",path=\"Lund\",under=\"\"}} 4"),
        format!(
            "pping_level_packets_total{{sender=\"timed\",{series},level=\"ap\",path=\"Berlin/1\\\\/a\",\
             under=\"Berlin\"}} 20"
        ),
        "pping_level_info{level=\"ap\",path=\"Lund/1\\\\/a\",site=\"Lund\",ap=\"1/a\"} 1".to_owned(),
    ] {
        assert!(nodes.lines().any(|it| it == line), "no `{line}` in:\n{nodes}");
    }
    // Each level has all that the groups have.
    let sum = |page: &str, name: &str, label: &str| {
        let lines = page.lines().filter(|line| line.starts_with(name) && line.contains(label));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as u64).sum::<u64>()
    };
    for (of_groups, of_levels) in [
        ("pping_rtt_seconds_count", "pping_level_rtt_seconds_count"),
        ("pping_rtt_seconds_bucket", "pping_level_rtt_seconds_bucket"),
        ("pping_group_packets_total", "pping_level_packets_total"),
        ("pping_group_bytes_total", "pping_level_bytes_total"),
    ] {
        for level in ["level=\"site\"", "level=\"ap\""] {
            assert_eq!(sum(&nodes, of_levels, level), sum(&groups, of_groups, ""), "{of_levels} {level}");
        }
    }
}

#[test]
fn nodes_beyond_the_limit_are_one_of_each_level() {
    let now = Instant::now();
    let mut nodes = Groups::of_nodes(2, BASELINE, now);
    nodes.add(&tree(&[("a", "Berlin"), ("b", "Hamburg"), ("c", "Lund")]), now);
    let page = page(&mut nodes, PageFormat::Classic, now);
    let counts = counters(&page);
    let of = |level: &str| -> f64 {
        let is_count =
            |series: &&String| series.starts_with("pping_level_rtt_seconds_count") && series.contains(level);
        counts.keys().filter(is_count).map(|series| counts[series]).sum()
    };
    assert_eq!((of("level=\"site\""), of("level=\"ap\"")), (6.0, 6.0), "{page}");
    assert!(page.contains("path=\"(other)\",under=\"\""), "{page}");
    assert_eq!(counts.len(), 4 * (30 + 6), "two nodes and the others of each level:\n{page}");
}

#[test]
fn a_node_without_traffic_is_removed() {
    let now = Instant::now();
    let later = |seconds| now + Duration::from_secs(seconds);
    let mut nodes = Groups::of_nodes(9, BASELINE, now);
    nodes.add(&tree(&[("a", "Berlin"), ("c", "Lund")]), now);
    let paths = |nodes: &mut Groups, at| {
        let page = page(nodes, PageFormat::Classic, at);
        ["Berlin", "Lund"].map(|site| page.contains(&format!("path=\"{site}\"")))
    };
    nodes.add(&tree(&[("c", "Lund")]), later(60));
    nodes.expire(Duration::from_secs(50), later(60));
    assert_eq!(paths(&mut nodes, later(60)), [false, true]);
    nodes.expire(Duration::from_secs(50), later(111));
    assert_eq!(page(&mut nodes, PageFormat::Classic, later(111)), "");
}

use pping_common::{
    abi::{Candidate, Endpoints},
    group::GroupKey,
    parse::{Direction, Protocol},
    series::SeriesRef,
};

use super::*;
use crate::{
    groups::{GroupName, Labels, group_in_tree, roll_up},
    quality::{Latency, Profile, Threshold},
    worst::By,
};

fn name(matched: Direction) -> SeriesName {
    let group = Arc::new(GroupName::new(&GroupKey::ALL, &Labels::default()));
    SeriesName { interface: None, method: Method::TcpTs, matched: Some(matched), side: None, group }
}

fn counts(rtt: u64) -> SeriesCounts {
    let mut counts = SeriesCounts::EMPTY;
    counts.sample(rtt, 0);
    counts.sent.packets = 3;
    counts
}

fn aggregates(records: Vec<Record>) -> Vec<AggregateRecord> {
    let only = |record| match record {
        Record::Aggregate(record) => *record,
        other => panic!("{other:?}"),
    };
    records.into_iter().map(only).collect()
}

fn reporter(start: u64) -> Reporter {
    let interval = Some(Duration::from_secs(10));
    Reporter::new(&Aggregation { interval, ..Aggregation::NONE }, 10, start).unwrap()
}

#[test]
fn intervals_end_at_multiples_of_their_length() {
    let mut reporter = reporter(1_003 * SECOND);
    assert_eq!(reporter.interval_end(), Some(1_010 * SECOND));
    reporter.take(&name(Direction::Ingress), &counts(5));
    reporter.take(&name(Direction::Ingress), &counts(7));
    reporter.take(&name(Direction::Egress), &counts(9));
    reporter.take(&name(Direction::Egress), &SeriesCounts::EMPTY);
    assert!(reporter.tick(1_009 * SECOND).unwrap().is_empty());
    let records = aggregates(reporter.tick(1_010 * SECOND + 5).unwrap());
    let shown: Vec<_> = records
        .iter()
        .map(|it| (it.timestamp / SECOND, it.interval / SECOND, it.matched, it.count, it.sent_packets))
        .collect();
    assert_eq!(
        shown,
        [(1_010, 7, Some(Direction::Ingress), 2, 6), (1_010, 7, Some(Direction::Egress), 1, 3)]
    );
    // Intervals without traffic have no records.
    assert!(reporter.tick(1_040 * SECOND).unwrap().is_empty());
    reporter.take(&name(Direction::Egress), &counts(9));
    let records = aggregates(reporter.finish(1_044 * SECOND).unwrap());
    assert_eq!((records[0].timestamp, records[0].interval), (1_044 * SECOND, 4 * SECOND));
    let counts: Vec<_> = reporter.totals().series().map(|(.., it)| it.count()).collect();
    assert_eq!(counts, [2, 2]);
}

#[test]
fn throughput_is_that_of_a_second_even_if_intervals_are_shorter() {
    const INTERVAL: Duration = Duration::from_millis(10);
    let aggregation = Aggregation { interval: Some(INTERVAL), ..Aggregation::NONE };
    let mut reporter = Reporter::live(&aggregation, 10, 0).unwrap();
    let threshold = Threshold { optimal: 1e6, unacceptable: 1e9 };
    let latency = vec![Latency { percentile: 50.0, threshold }];
    let profile = Profile { name: "busy".into(), latency, loss: None, throughput: Some(4e6), samples: 1 };
    reporter.score_by([profile].into());
    let mut score = |bytes: u64, intervals: u32| {
        let mut counts = counts(5);
        counts.sent.bytes = bytes;
        reporter.take(&name(Direction::Egress), &counts);
        let end = (INTERVAL * intervals).as_nanos() as u64;
        aggregates(reporter.tick(end).unwrap())[0].quality["busy"]
    };
    // 0.4 and 4 Mbit/s.
    assert_eq!((score(50_000, 1), score(500_000, 2)), (Some(0), Some(100)));
}

fn worst_flow() -> WorstFlow {
    let endpoints = Endpoints {
        source: [1; 16],
        destination: [2; 16],
        source_port: 1,
        destination_port: 2,
        interface: 0,
        protocol: Protocol::Tcp as u8,
        reserved: 0,
    };
    let candidate = Candidate {
        endpoints,
        figures: [9, 1, 0, 70],
        min_rtt: 8,
        packets: 50,
        series: SeriesRef::NONE,
        method: Method::TcpTs as u8,
        direction: Direction::Ingress as u8,
        reserved: [0; 6],
    };
    WorstFlow { candidate, interface: None, of: Membership::default() }
}

#[test]
fn worst_flows_do_not_outlive_an_interval_without_series() {
    let interval = Some(Duration::from_secs(10));
    let aggregation = Aggregation { interval, worst: Some(5), ..Aggregation::NONE };
    let mut reporter = Reporter::new(&aggregation, 10, 0).unwrap();
    let flows =
        |records: Vec<Record>| records.iter().filter(|record| matches!(record, Record::WorstFlow(_))).count();
    reporter.rank(&[worst_flow()]);
    assert!(reporter.tick(10 * SECOND).unwrap().is_empty());
    reporter.take(&name(Direction::Ingress), &counts(5));
    assert_eq!(flows(reporter.tick(20 * SECOND).unwrap()), 0);
    reporter.rank(&[worst_flow()]);
    reporter.take(&name(Direction::Ingress), &counts(5));
    assert_eq!(flows(reporter.tick(30 * SECOND).unwrap()), 3, "by RTT, inflation and bytes");
}

#[test]
fn a_group_with_too_few_packets_has_no_retransmission_ratio() {
    let interval = Some(Duration::from_secs(10));
    let aggregation = Aggregation { interval, worst: Some(5), worst_min_samples: 20, ..Aggregation::NONE };
    let mut reporter = Reporter::new(&aggregation, 10, 0).unwrap();
    for (packets, end) in [(19, 10 * SECOND), (20, 20 * SECOND)] {
        let mut counts = SeriesCounts::EMPTY;
        (0..20).for_each(|_| counts.sample(5_000_000, 0));
        (counts.sent.packets, counts.sent.bytes) = (packets, 700);
        reporter.take(&name(Direction::Ingress), &counts);
        let records = reporter.tick(end).unwrap();
        let groups = records.iter().filter_map(|record| match record {
            Record::WorstGroup(record) => Some(serde_json::to_string(record).unwrap()),
            _ => None,
        });
        let first = groups.into_iter().next().unwrap();
        assert_eq!(first.contains("retransmission_ratio"), packets == 20, "{first}");
        assert!(first.contains(r#""bytes":700"#), "{first}");
    }
}

#[test]
fn a_group_has_one_record_although_a_reload_changes_its_columns() {
    let mut reporter = reporter(0);
    let with_site = |site: &str| {
        let mut name = name(Direction::Ingress);
        Arc::make_mut(&mut name.group).columns = vec![("site".into(), site.into())];
        name
    };
    let queue = |site: &str| QueueName { interface: Some("wan0".into()), group: with_site(site).group };
    for site in ["arn", "fra"] {
        reporter.take(&with_site(site), &counts(5));
        reporter.take_queue(&queue(site), &counts(5));
    }
    let (queues, series): (Vec<_>, Vec<_>) = reporter
        .tick(10 * SECOND)
        .unwrap()
        .into_iter()
        .partition(|record| matches!(record, Record::Residence(_)));
    assert_eq!(queues.len(), 1);
    let shown = |records: Vec<Record>| {
        let shown = aggregates(records).into_iter().map(|it| (it.count, it.labels[0].1.to_string()));
        shown.collect::<Vec<_>>()
    };
    assert_eq!(shown(series), [(2, "arn".to_owned())]);
    reporter.take(&with_site("fra"), &counts(5));
    assert_eq!(shown(reporter.tick(20 * SECOND).unwrap()), [(1, "fra".to_owned())]);
}

#[test]
fn queue_times_are_recorded_per_group_and_interval() {
    let mut reporter = reporter(1_003 * SECOND);
    let queue = |interface: &str| QueueName {
        interface: Some(interface.into()),
        group: name(Direction::Ingress).group,
    };
    reporter.take_queue(&queue("wan0"), &counts(5_000_000));
    reporter.take_queue(&queue("wan0"), &counts(5_000_000));
    reporter.take_queue(&queue("lan0"), &counts(9_000_000));
    let shown = |records: Vec<Record>| {
        let shown = records.into_iter().map(|record| match record {
            Record::Residence(it) => (it.interface.to_string(), it.count, it.times.unwrap().mean, it.packets),
            other => panic!("{other:?}"),
        });
        shown.collect::<Vec<_>>()
    };
    let expected = [("lan0".to_owned(), 1, 9_000_000, None), ("wan0".to_owned(), 2, 5_000_000, None)];
    assert_eq!(shown(reporter.tick(1_010 * SECOND).unwrap()), expected);
    assert_eq!(shown(reporter.tick(1_020 * SECOND).unwrap()), []);
    let mut without = Reporter::new(&Aggregation::NONE, 10, 0).unwrap();
    without.take_queue(&queue("wan0"), &counts(5));
    assert_eq!(shown(without.finish(SECOND).unwrap()), []);
}

#[test]
fn series_without_samples_are_reported_without_rtts() {
    let mut reporter = reporter(0);
    let mut counts = SeriesCounts::EMPTY;
    counts.received.packets = 1;
    reporter.take(&name(Direction::Egress), &counts);
    let records = aggregates(reporter.finish(SECOND).unwrap());
    let text = serde_json::to_string(&records[0]).unwrap();
    assert!(text.contains(r#""count":0,"histogram":[],"sent_packets":0,"#), "{text}");
}

/// Series of three groups at two sites, and those of the nodes above them.
fn tree() -> Vec<(SeriesName, SeriesCounts)> {
    let groups = [("a", "berlin", 5_000_000), ("b", "berlin", 9_000_000), ("c", "lund", 700_000_000)];
    let mut series: Vec<_> = groups
        .map(|(label, site, rtt)| {
            let group = group_in_tree(label, &[("site", site), ("ap", "ap-3")]);
            (SeriesName { group, ..name(Direction::Ingress) }, counts(rtt))
        })
        .into();
    series.extend(roll_up(&series));
    series
}

#[test]
fn records_of_a_level_are_the_sums_of_its_groups() {
    let mut reporter = reporter(1_000 * SECOND);
    for _ in 0..2 {
        for (name, counts) in tree() {
            reporter.take(&name, &counts);
        }
    }
    let records = aggregates(reporter.finish(1_010 * SECOND).unwrap());
    let shown: Vec<_> = records
        .iter()
        .map(|it| (it.group.as_deref(), it.level.as_deref(), it.path.as_deref(), it.count, it.sent_packets))
        .collect();
    assert_eq!(
        shown,
        [
            (Some("a"), None, None, 2, 6),
            (Some("b"), None, None, 2, 6),
            (Some("c"), None, None, 2, 6),
            (None, Some("site"), Some("berlin"), 4, 12),
            (None, Some("site"), Some("lund"), 2, 6),
            (None, Some("ap"), Some("berlin/ap-3"), 4, 12),
            (None, Some("ap"), Some("lund/ap-3"), 2, 6),
        ]
    );
    assert_eq!(records[3].histogram, [records[0].histogram.clone(), records[1].histogram.clone()].concat());
    assert_eq!(records[5].labels, [("site".into(), "berlin".into()), ("ap".into(), "ap-3".into())]);
    // Each sample is in the totals once.
    assert_eq!(reporter.totals().samples(), 6);
}

#[test]
fn each_level_has_worst_nodes() {
    let aggregation = Aggregation {
        interval: Some(Duration::from_secs(10)),
        worst: Some(1),
        worst_min_samples: 1,
        ..Aggregation::NONE
    };
    let mut reporter = Reporter::new(&aggregation, 10, 1_000 * SECOND).unwrap();
    for (name, counts) in tree() {
        reporter.take(&name, &counts);
    }
    let records = reporter.finish(1_010 * SECOND).unwrap();
    let worst = records.iter().filter_map(|record| match record {
        Record::WorstGroup(it) if it.rank.worst == By::Rtt => Some((it, it.rank.rank)),
        _ => None,
    });
    let worst: Vec<_> = worst
        .map(|(it, rank)| (it.group.as_deref(), it.level.as_deref(), it.path.as_deref(), rank))
        .collect();
    assert_eq!(
        worst,
        [
            (Some("c"), None, None, 1),
            (None, Some("site"), Some("lund"), 1),
            (None, Some("ap"), Some("lund/ap-3"), 1),
        ]
    );
}

#[test]
fn a_node_is_scored_by_its_own_distribution_and_busiest_second() {
    // 100 samples are needed, which neither group has.
    let half = |rtt| {
        let mut counts = SeriesCounts::EMPTY;
        (0..50).for_each(|_| counts.sample(rtt, 0));
        counts.sent.packets = 100;
        counts.sent.bytes = 400_000;
        counts
    };
    let mut series: Vec<_> = ["a", "b"]
        .map(|label| {
            let group = group_in_tree(label, &[("site", "berlin")]);
            (SeriesName { group, ..name(Direction::Ingress) }, half(150_000_000))
        })
        .into();
    series.extend(roll_up(&series));
    let threshold = Threshold { optimal: 1e8, unacceptable: 2e8 };
    let latency = vec![Latency { percentile: 99.0, threshold }];
    let profile = |name: &str, throughput| Profile {
        name: name.into(),
        latency: latency.clone(),
        loss: None,
        throughput,
        samples: 100,
    };
    let mut reporter = reporter(1_000 * SECOND);
    // Only both groups together send so much in the same second.
    reporter.score_by([profile("any", None), profile("fast", Some(600_000.0 * 8.0))].into());
    for (name, counts) in &series {
        reporter.take(name, counts);
    }
    reporter.is_live = true;
    let records = aggregates(reporter.finish(1_010 * SECOND).unwrap());
    let scores: Vec<Vec<_>> = records.iter().map(|it| it.quality.values().copied().collect()).collect();
    let both = scores.last().unwrap();
    assert_eq!(scores[..2], [[None, None], [None, None]], "too few samples each");
    assert!(both.iter().all(|score| score.is_some_and(|score| (30..60).contains(&score))), "{both:?}");
}

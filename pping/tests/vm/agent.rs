//! Records and metrics report the same packets.

use std::{collections::BTreeMap, time::Duration};

use pping_lab::{Signal, Topology, traffic::Pace};
use serde_json::Value;

use super::{
    http::{Exposition, LISTEN, get, scrape},
    monitor::{ENDING, PATIENCE, interrupt, ok, ping, wait_until, watch},
    net::{FAMILIES, Net},
    records::Records,
};

const CONVERSATION: Pace = Pace { chunks: 50, bytes: 100, pause: Duration::from_millis(10) };
const PINGS: usize = 20;

/// Samples by method and direction, of pings and conversations in both families.
type Counts = BTreeMap<(String, &'static str), usize>;

fn talk(net: &Net) {
    for family in FAMILIES {
        ping(&net.client, family.server(), &format!("-c{PINGS} -i0.02"));
        net.converse(family, CONVERSATION);
    }
}

fn counts(records: &Records) -> Counts {
    let mut counts = Counts::new();
    for sample in &records.samples {
        let matched = if sample.match_on_egress { "egress" } else { "ingress" };
        *counts.entry((sample.method.clone(), matched)).or_default() += 1;
    }
    counts
}

/// Returns the sum of a metric's series for one method and direction.
fn of(metrics: &Exposition, name: &str, (method, matched): &(String, &'static str)) -> usize {
    metrics.sum(name, &[("method", method), ("matched", matched)]).unwrap_or_default() as usize
}

/// Returns the metrics once they no longer change.
fn settled(net: &Net) -> Exposition {
    let mut last = None;
    wait_until("the metrics settle", || {
        let samples = scrape(&net.router).sum("pping_rtt_seconds_count", &[]);
        std::thread::sleep(Duration::from_millis(2500));
        let is_settled = samples > Some(0.0) && samples == last;
        last = samples;
        is_settled
    });
    scrape(&net.router)
}

fn lines_metrics_and_groups_agree(ingress: &str, grouping: &str, groups: usize) {
    let net = Net::new();
    net.delay(Duration::from_millis(20));
    let arguments = format!("--rate-limit 0 {LISTEN} --ingress {ingress} {grouping}");
    let pping = watch(&net.router, Topology::WAN, &arguments);
    talk(&net);
    let metrics = settled(&net);
    let summary_before = ok(pping.stderr());
    let lines = interrupt(pping);
    // Each line is a JSON object by itself, and the last line is complete.
    assert!(lines.ends_with('\n'));
    for line in lines.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok_and(|it| it.is_object()), "{line}");
    }

    let counts = counts(&Records::parse(&lines));
    let echo = ("icmp-echo".to_owned(), "ingress");
    assert_eq!(counts.get(&echo), Some(&(2 * PINGS)), "{counts:?}\n{summary_before}");
    for (series, &count) in &counts {
        assert_eq!(of(&metrics, "pping_samples_total", series), count, "{series:?}");
        assert_eq!(of(&metrics, "pping_rtt_seconds_count", series), count, "{series:?}");
    }
    let total: usize = counts.values().sum();
    let infinite = metrics.sum("pping_rtt_seconds_bucket", &[("le", "+Inf")]);
    assert_eq!(infinite.map(|count| count as usize), Some(total));
    for lost in ["pping_events_lost_total", "pping_unaggregated_samples_total", "pping_groups_refused_total"]
    {
        assert_eq!(metrics.sum(lost, &[]).unwrap_or_default() as usize, 0, "{lost}");
    }
    assert_groups(&metrics, groups);
    assert_within_bounds(&metrics);
}

/// Asserts that each group's buckets add up to its samples.
fn assert_groups(metrics: &Exposition, expected: usize) {
    let mut groups: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for series in metrics.series() {
        let Some(group) = series.labels.get("group") else { continue };
        let sums = groups.entry((*group).to_owned()).or_default();
        match (series.name, series.labels.get("le")) {
            ("pping_rtt_seconds_count", _) => sums.0 += series.value as u64,
            ("pping_rtt_seconds_bucket", Some(&"+Inf")) => sums.1 += series.value as u64,
            _ => {}
        }
    }
    groups.retain(|_, (count, _)| *count > 0);
    assert_eq!(groups.len(), expected, "{groups:?}");
    assert!(groups.values().all(|(count, buckets)| count == buckets), "{groups:?}");
}

/// Asserts that RTTs of 20 ms are in the bucket up to 31.25 ms, and not in the one up to 15.625 ms.
fn assert_within_bounds(metrics: &Exposition) {
    let up_to = |bound| {
        let labels = [("method", "icmp-echo"), ("matched", "ingress"), ("le", bound)];
        metrics.sum("pping_rtt_seconds_bucket", &labels).unwrap_or_default() as usize
    };
    assert_eq!((up_to("0.015625"), up_to("0.03125")), (0, 2 * PINGS));
}

#[test]
fn lines_and_metrics_agree_at_tc() {
    lines_metrics_and_groups_agree("tc", "", 1);
}

#[test]
fn lines_and_metrics_agree_at_xdp() {
    lines_metrics_and_groups_agree("xdp", "", 1);
}

/// Two hosts have two addresses each. Packets of each address are timed, and each address replies.
#[test]
fn groups_add_up() {
    lines_metrics_and_groups_agree("tc", "--group-by /24,/48", 4);
}

#[test]
fn a_clean_shutdown_has_a_summary_and_all_lines() {
    let net = Net::new();
    let mut pping = watch(&net.router, Topology::WAN, &format!("--rate-limit 0 {LISTEN}"));
    talk(&net);
    wait_until("it serves", || get(&net.router, 9464, "/readyz", "*/*").is_some());
    ok(pping.stop(Signal::SIGTERM, ENDING.min(PATIENCE)));
    let summary = ok(pping.stderr());
    let samples = Records::parse(&ok(pping.stdout())).samples.len();
    assert!(summary.contains(&format!(" {samples} samples\n")), "{samples}: {summary}");
    assert!(summary.contains("lost: 0 events, 0 lines"), "{summary}");
    assert!(get(&net.router, 9464, "/healthz", "*/*").is_none(), "it listens on after its end");
}

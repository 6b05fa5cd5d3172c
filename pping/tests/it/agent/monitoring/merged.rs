//! Histograms of several agents add up to one histogram.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use pping_common::parse::Direction;
use pping_lab::{Namespace, Process, Signal, Topology};

use super::{
    agents::{Agent, counts_of},
    stack::{self, Store},
};
use crate::agent::{
    formats::records,
    monitor::{ENDING, converse, ok, ping, topology, wait_until, watch},
};

const GROUP: &str = "customers";

/// The number of seconds with samples.
const SECONDS: usize = 6;

/// The first RTT of each agent, in ns.
const FIRST: u64 = 40_000_000;

const PORTS: [u16; 2] = [9464, 9465];

const PERCENTILES: [(u32, f64); 3] = [(50, 0.5), (95, 0.95), (99, 0.99)];

/// The RTTs of one second, in ns: one agent is near and busy, the other far away and less busy.
fn rtts(agent: usize) -> Vec<u64> {
    match agent {
        0 => (0..400).map(|number| 9_000_000 + number * 203_000).collect(),
        _ => (0..150).map(|number| 30_000_000 + number * number * 21_000).collect(),
    }
}

/// Returns the bounds in seconds of the octave of an RTT.
fn octave(rtt: f64) -> (f64, f64) {
    let upper = (-20..=6).map(|octave| 2_f64.powi(octave)).find(|bound| rtt <= *bound).unwrap();
    (upper / 2.0, upper)
}

/// Returns the value that `histogram_quantile` should give: interpolated within the quantile's octave, as if the RTTs
/// in it were spread evenly.
fn interpolated(sorted: &[f64], quantile: f64) -> f64 {
    let rank = quantile * sorted.len() as f64;
    let (lower, upper) = octave(sorted[rank.ceil() as usize - 1]);
    let no_longer = |bound: f64| sorted.iter().filter(|rtt| **rtt <= bound).count() as f64;
    let (below, until) = (no_longer(lower), no_longer(upper));
    lower + (upper - lower) * (rank - below) / (until - below)
}

/// Asserts that a store's quantiles of `series` equal those of all its RTTs, which are in seconds.
fn assert_quantiles(store: &mut Store<'_>, series: &str, sorted: &[f64]) {
    for (percentile, quantile) in PERCENTILES {
        let exact = sorted[(quantile * sorted.len() as f64).ceil() as usize - 1];
        let expected = interpolated(sorted, quantile);
        // The agents may have ended, so this takes the last value.
        let all = format!("sum by (le) (last_over_time(pping_rtt_seconds_bucket{{{series}}}[5m]))");
        let all = format!("histogram_quantile({quantile}, {all})");
        let answer = store.value(&all).unwrap();
        assert!((answer / expected - 1.0).abs() < 1e-9, "p{percentile}: {answer} is not {expected}");
        let (lower, upper) = octave(exact);
        assert!(lower < answer && answer <= upper, "p{percentile}: {answer} is far from {exact}");
    }
}

/// Asserts the same of the recording rules, with a larger tolerance. The rules use rates, and Prometheus scrapes the
/// agents at different moments, so each agent's weight only roughly matches its number of samples.
fn assert_recorded(store: &mut Store<'_>, sorted: &[f64]) {
    for (percentile, quantile) in PERCENTILES {
        let exact = sorted[(quantile * sorted.len() as f64).ceil() as usize - 1];
        let (lower, upper) = octave(exact);
        let expected = interpolated(sorted, quantile);
        let recorded =
            format!("group_interface_method_matched:pping_rtt_seconds:p{percentile}_5m{{group=\"{GROUP}\"}}");
        let answer = store.value(&recorded).unwrap();
        assert!(lower < answer && answer <= upper, "p{percentile}: {answer} is far from {exact}");
        assert!((answer / expected - 1.0).abs() < 0.1, "p{percentile}: {answer} is not {expected}");
    }
}

/// Starts the agents. A rate begins with the second scrape of a series, so each agent first serves one sample. It adds
/// the rest once `is_known` says that the first is stored.
fn agents(host: &Namespace, is_known: &Arc<AtomicBool>) -> Vec<Agent> {
    (0..PORTS.len())
        .map(|agent| {
            let (mut seconds, is_known) = (0, Arc::clone(is_known));
            Agent::start(host, PORTS[agent], move || {
                let rtts = match seconds {
                    0 => vec![FIRST],
                    1..=SECONDS if is_known.load(Ordering::Relaxed) => rtts(agent),
                    _ => return Vec::new(),
                };
                seconds += 1;
                vec![counts_of(GROUP, &[], Direction::Ingress, &rtts)]
            })
        })
        .collect()
}

/// Returns all RTTs of both agents in seconds, sorted.
fn all_rtts() -> Vec<f64> {
    let rtts = (0..PORTS.len()).flat_map(|agent| [vec![FIRST], rtts(agent).repeat(SECONDS)].concat());
    let mut sorted: Vec<f64> = rtts.map(|rtt| rtt as f64 / 1e9).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[test]
fn percentiles_of_two_agents_are_those_of_all_their_samples() {
    let host = ok(Namespace::new("monitor"));
    let mut victoria = stack::victoria_metrics(&host);
    let mut prometheus = stack::prometheus(&host, &PORTS, true);
    let is_known = Arc::new(AtomicBool::new(false));
    let _agents = agents(&host, &is_known);
    let series = format!("pping_rtt_seconds_count{{group=\"{GROUP}\"}}");
    wait_until("Prometheus knows both", || prometheus.query(&series).len() == PORTS.len());
    is_known.store(true, Ordering::Relaxed);

    let sorted = all_rtts();
    let count = format!("sum(pping_rtt_seconds_count{{group=\"{GROUP}\"}})");
    let sum = format!("sum(pping_rtt_seconds_sum{{group=\"{GROUP}\"}})");
    let rate = format!("sum(rate(pping_rtt_seconds_count{{group=\"{GROUP}\"}}[5m]))");
    for (name, store) in [("Prometheus", &mut prometheus), ("VictoriaMetrics", &mut victoria)] {
        wait_until(&format!("{name} has all samples"), || {
            store.value(&count) == Some(sorted.len() as f64) && store.value(&rate) > Some(0.0)
        });
        let exact: f64 = sorted.iter().sum();
        assert!((store.value(&sum).unwrap() / exact - 1.0).abs() < 1e-9, "{name}");
    }
    // The rules see the last scrapes a moment later, and their results are forwarded another moment later.
    let samples =
        format!("group_interface_method_matched:pping_rtt_seconds_count:rate5m{{group=\"{GROUP}\"}}");
    thread::sleep(Duration::from_secs(3));
    for (name, store) in [("Prometheus", &mut prometheus), ("VictoriaMetrics", &mut victoria)] {
        wait_until(&format!("{name} has the recorded series"), || store.value(&samples).is_some());
        assert_quantiles(store, &format!("group=\"{GROUP}\""), &sorted);
        assert_recorded(store, &sorted);
        assert!(!store.log().contains("error"), "{name}: {}", store.log());
    }
    let up = prometheus.query("up{job=\"pping\"} == 1");
    assert_eq!(up.len(), PORTS.len(), "{up:?}");
}

#[test]
fn percentiles_of_two_gateways_are_those_of_their_records() {
    let topology = topology();
    let router = topology.router();
    let directory = tempfile::tempdir().unwrap();
    // Two independent gateways.
    let agents = [(Topology::WAN, PORTS[0]), (Topology::LAN, PORTS[1])].map(|(interface, port)| {
        let file = directory.path().join(interface);
        let options = "--rate-limit 0 --format jsonl --group-by /24,/64";
        let listen = format!("--listen 127.0.0.1:{port} -w {}", file.display());
        (watch(router, interface, &format!("{options} {listen}")), file)
    });
    let mut victoria = stack::victoria_metrics(router);
    let mut prometheus = stack::prometheus(router, &PORTS, true);
    wait_until("Prometheus scrapes", || prometheus.query("up{job=\"pping\"} == 1").len() == PORTS.len());
    for _ in 0..3 {
        converse(&topology, 50);
        ping(topology.client(), Topology::SERVER_IPV4, "-c20 -i0.02");
        ping(topology.client(), Topology::SERVER_IPV6, "-c20 -i0.02");
    }
    let written = || -> usize {
        let files = agents.iter().map(|(_, file)| fs::read_to_string(file).unwrap());
        files.map(|file| file.lines().filter(|line| line.contains("\"rtt\":")).count()).sum()
    };
    for (name, store) in [("Prometheus", &mut prometheus), ("VictoriaMetrics", &mut victoria)] {
        wait_until(&format!("{name} has all that is written"), || {
            store.value("sum(pping_rtt_seconds_count)") == Some(written() as f64)
        });
    }
    let files = agents.map(|(mut pping, file): (Process, _)| {
        ok(pping.stop(Signal::SIGINT, ENDING));
        fs::read_to_string(file).unwrap()
    });
    let records: Vec<_> = files.iter().flat_map(|file| records(file)).collect();
    for (group, method) in [
        ("10.11.2.0/24", "tcp-ts"),
        ("10.11.1.0/24", "tcp-ts"),
        ("fd00:11:2::/64", "icmp-echo"),
        ("fd00:11:2::/64", "tcp-ts"),
    ] {
        let is_of = |record: &&serde_json::Value| record["group"] == group && record["method"] == method;
        let of_group = records.iter().filter(is_of);
        let mut sorted: Vec<f64> =
            of_group.filter_map(|record| record["rtt"].as_u64()).map(|rtt| rtt as f64 / 1e9).collect();
        sorted.sort_by(f64::total_cmp);
        assert!(sorted.len() > 20, "{group} {method}: {}", sorted.len());
        let series = format!("group=\"{group}\",method=\"{method}\"");
        for (name, store) in [("Prometheus", &mut prometheus), ("VictoriaMetrics", &mut victoria)] {
            // The last values before the agents ended.
            let last = format!("last_over_time(pping_rtt_seconds_count{{{series}}}[5m])");
            let count = store.value(&format!("sum({last})"));
            assert_eq!(count, Some(sorted.len() as f64), "{name}: {series}");
            assert_quantiles(store, &series, &sorted);
        }
    }
}

/// Returns the bounds in seconds of the native histogram's bin for an RTT.
fn bin(rtt: f64) -> (f64, f64) {
    let upper = (rtt.log2() * 8.0).ceil();
    (((upper - 1.0) / 8.0).exp2(), (upper / 8.0).exp2())
}

#[test]
fn merged_native_histograms_have_exact_percentiles() {
    let host = ok(Namespace::new("monitor"));
    let mut prometheus = stack::prometheus_native(&host, &PORTS);
    let is_known = Arc::new(AtomicBool::new(false));
    let _agents = agents(&host, &is_known);
    let series = format!("pping_rtt_seconds{{group=\"{GROUP}\"}}");
    wait_until("Prometheus knows both", || prometheus.query(&series).len() == PORTS.len());
    is_known.store(true, Ordering::Relaxed);

    let sorted = all_rtts();
    let merged = format!("sum({series})");
    let count = format!("histogram_count({merged})");
    let rate = format!("histogram_count(sum(rate({series}[5m])))");
    wait_until("Prometheus has all samples", || {
        prometheus.value(&count) == Some(sorted.len() as f64) && prometheus.value(&rate) > Some(0.0)
    });
    let exact: f64 = sorted.iter().sum();
    let sum = prometheus.value(&format!("histogram_sum({merged})")).unwrap();
    assert!((sum / exact - 1.0).abs() < 1e-9, "{sum} is not {exact}");
    // The rules see the last scrapes a moment later.
    thread::sleep(Duration::from_secs(3));
    for (percentile, quantile) in PERCENTILES {
        let exact = sorted[(quantile * sorted.len() as f64).ceil() as usize - 1];
        let (lower, upper) = bin(exact);
        let answer = prometheus.value(&format!("histogram_quantile({quantile}, {merged})")).unwrap();
        assert!(lower < answer && answer <= upper, "p{percentile}: {answer} is not in the bin of {exact}");
        assert!((answer / exact - 1.0).abs() < 0.044, "p{percentile}: {answer} is far from {exact}");
        // The rate weighs each agent by the times of its scrapes, so the quantile may fall into the next bin.
        let recorded =
            format!("group_interface_method_matched:pping_rtt_seconds:p{percentile}_5m{{group=\"{GROUP}\"}}");
        let mut answer = None;
        wait_until("it is recorded", || {
            answer = prometheus.value(&recorded);
            answer.is_some()
        });
        assert!((answer.unwrap() / exact - 1.0).abs() < 0.1, "p{percentile}: {answer:?} is not {exact}");
    }
    let buckets = prometheus.query("pping_rtt_seconds_bucket");
    assert!(buckets.is_empty(), "classic buckets: {buckets:?}");
    assert_eq!(prometheus.query("up{job=\"pping\"} == 1").len(), PORTS.len());
    assert!(!prometheus.log().contains("error"), "{}", prometheus.log());
}

#[test]
fn native_scrape_has_the_percentiles_of_records() {
    let topology = topology();
    let router = topology.router();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("records");
    let options = "--rate-limit 0 --format jsonl --group-by /24,/64 --listen 127.0.0.1:9464";
    let mut pping = watch(router, Topology::WAN, &format!("{options} -w {}", file.display()));
    let mut prometheus = stack::prometheus_native(router, &PORTS[..1]);
    converse(&topology, 50);
    ping(topology.client(), Topology::SERVER_IPV6, "-c20 -i0.02");
    let (group, method) = ("10.11.2.0/24", "tcp-ts");
    let rtts = || -> Vec<f64> {
        let records = records(&fs::read_to_string(&file).unwrap());
        let of_group = records.iter().filter(|it| it["group"] == group && it["method"] == method);
        of_group.filter_map(|record| record["rtt"].as_u64()).map(|rtt| rtt as f64 / 1e9).collect()
    };
    let merged = format!("sum(pping_rtt_seconds{{group=\"{group}\",method=\"{method}\"}})");
    wait_until("Prometheus has all that is written", || {
        let count = rtts().len();
        count > 20 && prometheus.value(&format!("histogram_count({merged})")) == Some(count as f64)
    });
    let mut sorted = rtts();
    sorted.sort_by(f64::total_cmp);
    for (percentile, quantile) in PERCENTILES {
        let exact = sorted[(quantile * sorted.len() as f64).ceil() as usize - 1];
        let (lower, upper) = bin(exact);
        let answer = prometheus.value(&format!("histogram_quantile({quantile}, {merged})")).unwrap();
        assert!(lower < answer && answer <= upper, "p{percentile}: {answer} is not in the bin of {exact}");
    }
    ok(pping.stop(Signal::SIGINT, ENDING));
}

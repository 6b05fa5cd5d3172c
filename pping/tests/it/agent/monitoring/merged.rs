//! Histograms of several agents are one histogram.

use std::{thread, time::Duration};

use pping_common::abi::Hook;
use pping_lab::Namespace;

use super::{
    agents::{Agent, slice},
    stack::{self, Store},
};
use crate::agent::monitor::{ok, wait_until};

const GROUP: &str = "customers";

/// How many seconds there are samples in.
const SECONDS: usize = 6;

const PORTS: [u16; 2] = [9464, 9465];

/// RTTs of a second, ns: one agent is near and busy, the other far and less so.
fn rtts(agent: usize) -> Vec<u64> {
    match agent {
        0 => (0..400).map(|number| 9_000_000 + number * 203_000).collect(),
        _ => (0..150).map(|number| 30_000_000 + number * number * 17_000).collect(),
    }
}

/// The bounds of the octave that an RTT is in, in seconds.
fn octave(rtt: f64) -> (f64, f64) {
    let upper = (0..=24).map(|octave| f64::from(1 << octave) / 1e6).find(|bound| rtt <= *bound).unwrap();
    (upper / 2.0, upper)
}

/// What `histogram_quantile` is to answer: within the octave that has the quantile, as if RTTs were spread evenly.
fn interpolated(sorted: &[f64], quantile: f64) -> f64 {
    let rank = quantile * sorted.len() as f64;
    let (lower, upper) = octave(sorted[rank.ceil() as usize - 1]);
    let no_longer = |bound: f64| sorted.iter().filter(|rtt| **rtt <= bound).count() as f64;
    let (below, until) = (no_longer(lower), no_longer(upper));
    lower + (upper - lower) * (rank - below) / (until - below)
}

fn assert_quantiles(store: &mut Store<'_>, sorted: &[f64]) {
    for (percentile, quantile) in [(50, 0.5), (95, 0.95), (99, 0.99)] {
        let exact = sorted[(quantile * sorted.len() as f64).ceil() as usize - 1];
        let expected = interpolated(sorted, quantile);
        let all = format!(
            "histogram_quantile({quantile}, sum by (le) (pping_rtt_seconds_bucket{{group=\"{GROUP}\"}}))"
        );
        let answer = store.value(&all).unwrap();
        assert!((answer / expected - 1.0).abs() < 1e-9, "p{percentile}: {answer} is not {expected}");
        let (lower, upper) = octave(exact);
        assert!(lower < answer && answer <= upper, "p{percentile}: {answer} is far from {exact}");

        // As the recording rule has it, which looks at rates: the agents were not scraped at the same moments, so that
        // their parts in them are not exactly those of their samples.
        let recorded =
            format!("group_method_matched:pping_rtt_seconds:p{percentile}_5m{{group=\"{GROUP}\"}}");
        let answer = store.value(&recorded).unwrap();
        assert!(lower < answer && answer <= upper, "p{percentile}: {answer} is far from {exact}");
        assert!((answer / expected - 1.0).abs() < 0.1, "p{percentile}: {answer} is not {expected}");
    }
}

#[test]
fn percentiles_of_two_agents_are_those_of_all_their_samples() {
    let host = ok(Namespace::new("monitor"));
    let mut victoria = stack::victoria_metrics(&host);
    let mut prometheus = stack::prometheus(&host, &PORTS, true);
    // What comes before the first scrape is in no rate: there are scrapes already when there is nobody to answer them.
    wait_until("Prometheus scrapes", || prometheus.query("up{job=\"pping\"}").len() == PORTS.len());
    let _agents: Vec<Agent> = (0..PORTS.len())
        .map(|agent| {
            let mut seconds = 0;
            Agent::start(&host, PORTS[agent], move || {
                seconds += 1;
                let rtts = if seconds <= SECONDS { rtts(agent) } else { Vec::new() };
                vec![slice(GROUP, &[], Hook::Ingress, &rtts)]
            })
        })
        .collect();

    let mut sorted: Vec<f64> =
        (0..PORTS.len()).flat_map(|agent| rtts(agent).repeat(SECONDS)).map(|rtt| rtt as f64 / 1e9).collect();
    sorted.sort_by(f64::total_cmp);
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
    // The rules see the last scrapes a moment later, and what they record is passed on another moment later.
    let samples = format!("group_method_matched:pping_rtt_seconds_count:rate5m{{group=\"{GROUP}\"}}");
    thread::sleep(Duration::from_secs(3));
    for (name, store) in [("Prometheus", &mut prometheus), ("VictoriaMetrics", &mut victoria)] {
        wait_until(&format!("{name} has the recorded series"), || store.value(&samples).is_some());
        assert_quantiles(store, &sorted);
        assert!(!store.log().contains("error"), "{name}: {}", store.log());
    }
    let up = prometheus.query("up{job=\"pping\"} == 1");
    assert_eq!(up.len(), PORTS.len(), "{up:?}");
}

//! The files in `deploy/` for Prometheus are valid and work together with pping.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use pping_lab::{Process, Topology};

use super::{
    http::{LISTEN, PORT, is_ready},
    monitor::{HOLD, PATIENCE, converse, endless_ping, ok, repository, tool, topology, wait_until},
    monitoring::stack::{self, files},
    unit::Service,
};

#[test]
fn the_scrape_configuration_is_valid() {
    let configuration = repository("deploy/prometheus/prometheus.yml");
    let (valid, said) = tool("promtool", &["check", "config", configuration.to_str().unwrap()]);
    assert!(valid, "{said}");
    assert!(said.contains("2 rule files found"), "{said}");
}

#[test]
fn rules_are_valid_and_do_what_their_tests_say() {
    for rules in
        files("deploy/prometheus", ".rules.yml").into_iter().chain(files("deploy/prometheus", ".alerts.yml"))
    {
        let (valid, said) = tool("promtool", &["check", "rules", &rules]);
        assert!(valid && said.contains("rules found"), "{said}");
    }
    let cases = files("deploy/prometheus/tests", ".test.yml");
    assert_eq!(cases.len(), 2);
    for cases in cases {
        let (passed, said) = tool("promtool", &["test", "rules", &cases]);
        assert!(passed, "{cases}: {said}");
    }
}

#[test]
fn every_rule_and_every_alert_is_in_a_test() {
    for (rules, key, cases) in [
        ("pping.rules.yml", "record: ", "pping.rules.test.yml"),
        ("pping.alerts.yml", "alert: ", "pping.alerts.test.yml"),
    ] {
        let folder = repository("deploy/prometheus");
        let cases = fs::read_to_string(folder.join("tests").join(cases)).unwrap();
        let rules = fs::read_to_string(folder.join(rules)).unwrap();
        let names = rules.lines().filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix(key));
        assert!(names.clone().count() > 5);
        for name in names {
            assert!(cases.contains(name), "no case of {name}");
        }
    }
}

#[test]
fn prometheus_scrapes_the_service_and_answers_with_a_quantile() {
    let topology = topology();
    let router = topology.router();
    let options = format!("-i {} --rate-limit 0 --format none {LISTEN}", Topology::WAN);
    let unit = Service::new(router, "", &options);
    let mut service = ok(Process::spawn(unit.command));
    let mut prometheus = stack::prometheus(router, &[PORT], false);
    wait_until("the service is ready", || {
        assert!(ok(service.status()).is_none(), "{}", ok(service.stderr()));
        is_ready(router)
    });
    let _pings = endless_ping(topology.client(), Topology::SERVER_IPV4);

    let expression = "histogram_quantile(0.5, sum by (le) (rate(pping_rtt_seconds_bucket[30s])))";
    // A rate needs two scrapes with samples, and Prometheus is slow to start.
    let deadline = Instant::now() + 3 * PATIENCE;
    let median = loop {
        converse(&topology, 5);
        if let Some(median) = prometheus.value(expression) {
            break median;
        }
        assert!(Instant::now() < deadline, "no quantile; prometheus: {}", prometheus.log());
        thread::sleep(Duration::from_millis(200));
    };
    // A quantile is interpolated within a bucket, so only the bucket's lower bound is certain: 7.8125 ms below 10 ms.
    let round_trip = 2.0 * HOLD.as_secs_f64();
    assert!(median >= HOLD.as_secs_f64() && median < 100.0 * round_trip, "{median} s");
    assert_eq!(prometheus.value("up{job=\"pping\"}"), Some(1.0));
    let far = "matched=\"ingress\"";
    let mean = format!(
        "sum(rate(pping_rtt_seconds_sum{{{far}}}[30s])) / sum(rate(pping_rtt_seconds_count{{{far}}}[30s]))"
    );
    let mean = prometheus.value(&mean).unwrap();
    assert!(mean >= round_trip, "a mean of {mean} s is faster than the wire");
}

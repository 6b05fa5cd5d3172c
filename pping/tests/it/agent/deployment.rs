//! What is in `deploy/` is right, and does what it says together with pping.

use std::{
    fmt::Write as _,
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use pping_lab::{Namespace, Process, Topology};
use serde_json::Value;

use super::{
    copy::Copy,
    http::{get, is_ready},
    monitor::{HOLD, PATIENCE, PPING, converse, endless_ping, ok, repository, tool, topology, wait_until},
};

const PROMETHEUS_PORT: u16 = 9090;

fn unit() -> String {
    fs::read_to_string(repository("deploy/systemd/pping.service")).unwrap()
}

/// Replaces what must be there.
#[track_caller]
fn replace(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "no `{from}` in:\n{text}");
    text.replace(from, to)
}

/// What `systemd-analyze verify` has to say about a unit, nothing if all is well.
fn verify(unit: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pping.service");
    fs::write(&path, replace(unit, "ExecStart=/usr/bin/pping", &format!("ExecStart={PPING}"))).unwrap();
    let (succeeded, said) = tool("systemd-analyze", &["verify", path.to_str().unwrap()]);
    if succeeded { said } else { format!("failed: {said}") }
}

#[test]
fn systemd_finds_nothing_wrong_with_the_unit() {
    assert_eq!(verify(&unit()), "");
    let spoiled = verify(&replace(&unit(), "\nRestart=", "\nRestrt="));
    assert!(spoiled.contains("Restrt"), "a spoiled unit went unnoticed: {spoiled}");
}

#[test]
fn the_scrape_configuration_is_valid() {
    let configuration = repository("deploy/prometheus/prometheus.yml");
    let (valid, said) = tool("promtool", &["check", "config", configuration.to_str().unwrap()]);
    assert!(valid, "{said}");
}

/// Runs the unit's command line, with its capabilities, in a namespace.
fn start_service(host: &Namespace, interface: &str) -> (Process, Copy) {
    let unit = unit();
    let command = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/pping ")).unwrap();
    let command = replace(command, "${PPING_INTERFACE}", interface);
    let command = replace(&command, "$PPING_OPTIONS", "--rate-limit 0");
    let ambient = unit.lines().find_map(|line| line.strip_prefix("AmbientCapabilities=")).unwrap();
    let capabilities: String =
        ambient.split(' ').map(|name| name.to_lowercase().replace("cap_", ",+")).collect();
    let copy = Copy::new();
    let mut setpriv = host.command("setpriv");
    setpriv.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]);
    for set in ["bounding-set", "inh-caps", "ambient-caps"] {
        setpriv.arg(format!("--{set}=-all{capabilities}"));
    }
    setpriv.arg(&copy.program).args(command.split_whitespace());
    (ok(Process::spawn(setpriv)), copy)
}

/// Starts the Prometheus of the distribution with the scrape configuration of `deploy/`, in a hurry.
fn start_prometheus(host: &Namespace, directory: &Path) -> Process {
    let configuration = fs::read_to_string(repository("deploy/prometheus/prometheus.yml")).unwrap();
    let configuration = replace(&configuration, "scrape_interval: 15s", "scrape_interval: 1s");
    let file = directory.join("prometheus.yml");
    fs::write(&file, configuration).unwrap();
    let mut prometheus = host.command("prometheus");
    prometheus.arg(format!("--config.file={}", file.display()));
    prometheus.arg(format!("--storage.tsdb.path={}", directory.join("data").display()));
    prometheus.arg(format!("--web.listen-address=127.0.0.1:{PROMETHEUS_PORT}"));
    ok(Process::spawn(prometheus))
}

fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, octet| {
        write!(encoded, "%{octet:02x}").unwrap();
        encoded
    })
}

/// The value of a query that has one, as Prometheus answers it.
fn query(host: &Namespace, expression: &str) -> Option<f64> {
    let encoded = percent_encoded(expression);
    let answer = get(host, PROMETHEUS_PORT, &format!("/api/v1/query?query={encoded}"), "application/json")?;
    if answer.status == 503 {
        return None; // It is still starting.
    }
    let answer: Value = serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{}", answer.body));
    assert_eq!(answer["status"], "success", "{expression}: {answer}");
    answer["data"]["result"][0]["value"][1].as_str()?.parse().ok()
}

#[test]
fn prometheus_scrapes_the_service_and_answers_with_a_quantile() {
    let topology = topology();
    let router = topology.router();
    let (mut service, _program) = start_service(router, Topology::WAN);
    let directory = tempfile::tempdir().unwrap();
    let mut prometheus = start_prometheus(router, directory.path());
    wait_until("the service is ready", || {
        assert!(ok(service.status()).is_none(), "{}", ok(service.stderr()));
        is_ready(router)
    });
    let _pings = endless_ping(topology.client(), Topology::SERVER_IPV4);

    let expression = "histogram_quantile(0.5, sum by (le) (rate(pping_rtt_seconds_bucket[30s])))";
    // A rate takes two scrapes with samples, and Prometheus takes its time to start.
    let deadline = Instant::now() + 3 * PATIENCE;
    let median = loop {
        assert!(ok(prometheus.status()).is_none(), "prometheus: {}", ok(prometheus.stderr()));
        converse(&topology, 5);
        if let Some(median) = query(router, expression).filter(|median| median.is_finite()) {
            break median;
        }
        assert!(Instant::now() < deadline, "no quantile; prometheus: {}", ok(prometheus.stderr()));
        thread::sleep(Duration::from_millis(200));
    };
    // Within a bucket a quantile is guessed, so only its lower bound is certain: 8.192 ms below 10 ms.
    let round_trip = 2.0 * HOLD.as_secs_f64();
    assert!(median >= HOLD.as_secs_f64() && median < 100.0 * round_trip, "{median} s");
    assert_eq!(query(router, "up{job=\"pping\"}"), Some(1.0));
    let far = "matched=\"ingress\"";
    let mean = format!(
        "sum(rate(pping_rtt_seconds_sum{{{far}}}[30s])) / sum(rate(pping_rtt_seconds_count{{{far}}}[30s]))"
    );
    let mean = query(router, &mean).unwrap();
    assert!(mean >= round_trip, "a mean of {mean} s is faster than the wire");
}

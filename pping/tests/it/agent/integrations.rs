//! The configurations in `docs/integrations.md` work.

use std::{fs, path::Path, process::Command};

use pping_lab::{Namespace, Process, Topology, run};
use serde_json::Value;

use super::{
    documents::{block, replaced},
    http::{LISTEN, get},
    monitor::{PPING, endless_ping, ok, repository, tool, topology, wait_until, watch},
};

const PAGE: &str = "docs/integrations.md";

/// Parts of the blocks that these tests run. Other tests run the blocks about `ClickHouse` and OTLP.
const TRIED: [&str; 7] = [
    "scrape_interval: 15s",
    "prometheus --config.file",
    "victoria-metrics -promscrape.config",
    "pping -i wan0 --aggregate",
    "pping -r trace.pcap",
    "UserParameter=",
    "otlp-interval =",
];

#[test]
fn each_block_is_tried_or_marked() {
    let page = fs::read_to_string(repository(PAGE)).unwrap();
    let parts: Vec<&str> = page.split("```").collect();
    assert!(parts.len() > 2 * TRIED.len() && parts.len() % 2 == 1, "a fence of {PAGE} is open");
    for pair in parts[1..].chunks(2) {
        let [block, after] = pair else { panic!("a fence of {PAGE} is open") };
        let is_tried = TRIED.iter().any(|part| block.contains(part));
        let is_marked = after.trim_start().starts_with("Not tried");
        assert!(is_tried != is_marked, "tried: {is_tried}, marked: {is_marked}: {block}");
    }
}

/// Whether a metrics database at this port knows a histogram of pping.
fn knows_histograms(host: &Namespace, port: u16) -> bool {
    let path = "/api/v1/series?match%5B%5D=pping_rtt_seconds_bucket";
    get(host, port, path, "application/json").is_some_and(|answer| {
        let answer: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        answer["data"].as_array().is_some_and(|series| series.iter().any(|it| it["job"] == "pping"))
    })
}

/// Starts the command from a block of the page in a folder.
fn start(host: &Namespace, part: &str, directory: &Path) -> Process {
    let mut shell = host.command("sh");
    shell.current_dir(directory).args(["-c", &format!("exec {}", block(PAGE, "sh", part))]);
    ok(Process::spawn(shell))
}

#[test]
fn prometheus_and_victoria_metrics_scrape_as_the_page_says() {
    let topology = topology();
    let router = topology.router();
    let _pping = watch(router, Topology::WAN, &format!("--rate-limit 0 --format none {LISTEN}"));
    let _pings = endless_ping(topology.client(), Topology::SERVER_IPV4);
    for (part, port) in [("prometheus --config.file", 9090), ("victoria-metrics -promscrape", 8428)] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("prometheus.yml");
        let configuration = block(PAGE, "yaml", "scrape_interval: 15s");
        fs::write(&file, replaced(&configuration, "15s", "1s")).unwrap();
        let (is_valid, said) = tool("promtool", &["check", "config", file.to_str().unwrap()]);
        assert!(is_valid, "{said}");
        let mut store = start(router, part, directory.path());
        wait_until(part, || {
            assert!(ok(store.status()).is_none(), "{part}: {}", ok(store.stderr()));
            knows_histograms(router, port)
        });
    }
}

#[test]
fn the_commands_for_zabbix_find_groups_and_their_percentiles() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("records.jsonl");
    let capture = repository("pping/tests/golden/connections.pcap");
    let mut pping = Command::new(PPING);
    pping.arg("-r").arg(capture).args([
        "--aggregate",
        "1m",
        "--group-by",
        "/24,/48",
        "--rate-limit",
        "0",
        "-w",
    ]);
    ok(run(pping.arg(&file)));
    let records: Vec<Value> =
        fs::read_to_string(&file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();

    let block = block(PAGE, "ini", "UserParameter=");
    let command = |key: &str| {
        let line =
            block.lines().find_map(|line| line.strip_prefix(&format!("UserParameter={key},"))).unwrap();
        replaced(line, "/var/log/pping/records.jsonl", file.to_str().unwrap())
    };
    let ask = |command: &str| -> Value {
        serde_json::from_str(&ok(run(Command::new("sh").args(["-euc", command])))).unwrap()
    };
    let groups = ask(&command("pping.groups"));
    let groups: Vec<&str> =
        groups.as_array().unwrap().iter().map(|group| group["{#GROUP}"].as_str().unwrap()).collect();
    let mut in_records: Vec<&str> = records.iter().map(|record| record["group"].as_str().unwrap()).collect();
    in_records.sort_unstable();
    in_records.dedup();
    assert_eq!(groups, in_records);
    let newest = records.iter().rev().find(|record| record["count"] != 0).unwrap();
    // Zabbix replaces the parameter before it starts a shell.
    let p95 = ask(&replaced(&command("pping.p95[*]"), "$1", newest["group"].as_str().unwrap()));
    let expected = newest["p95"].as_u64().unwrap() as f64 / 1e9;
    assert!((p95.as_f64().unwrap() - expected).abs() < 1e-9, "{p95}, not {expected}");
}

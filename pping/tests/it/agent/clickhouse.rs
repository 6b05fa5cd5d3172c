//! A live run in `ClickHouse`, loaded and asked as `deploy/clickhouse/README.md` and `docs/integrations.md` say.

use std::{fs, process::Command, thread, time::Duration};

use jiff::{Timestamp, tz::TimeZone};
use pping_lab::{Namespace, Topology};

use super::{
    documents::{block, blocks, replaced},
    monitor::{PPING, converse, interrupt, ok, ping, repository, topology, wait_until, watch},
};
use crate::clickhouse::{Engine, Parameters, QUESTIONS, assert_same_rows, jq};

const README: &str = "deploy/clickhouse/README.md";
const PAGE: &str = "docs/integrations.md";

/// A command of the shell, as a page has it.
#[track_caller]
fn shell(host: &Namespace, script: &str) -> String {
    let mut shell: Command = host.command("sh");
    ok(pping_lab::run(shell.args(["-euc", script])))
}

fn time(at: Timestamp, format: &str) -> String {
    at.to_zoned(TimeZone::UTC).strftime(format).to_string()
}

/// Traffic of a second or so.
fn traffic(topology: &Topology) {
    converse(topology, 40);
    ping(topology.client(), Topology::SERVER_IPV4, "-c5 -i0.1");
    ping(topology.client(), Topology::SERVER_IPV6, "-c5 -i0.1");
}

#[test]
fn clickhouse_answers_what_jq_works_out_from_a_live_run() {
    let topology = topology();
    let router = topology.router();
    let engine = Engine::with_tables(Some(router));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("records.jsonl");
    let options = "--rate-limit 0 --aggregate 1s --with-samples --flow-summary --group-by /32,/128";
    let pping = watch(router, Topology::WAN, &format!("{options} -w {}", file.display()));
    let begun = Timestamp::now();
    traffic(&topology);
    let change = begun.as_second() + 3;
    wait_until("the change", || Timestamp::now().as_second() >= change);
    thread::sleep(Duration::from_millis(500));
    traffic(&topology);
    interrupt(pping);

    let load = block(README, "sh", "curl");
    let load = replaced(&load, "/var/log/pping/records.jsonl", file.to_str().unwrap());
    assert_eq!(shell(router, &load), "");

    let none = Parameters::new();
    for (table, filter) in [
        ("samples", "map(select(.rtt))"),
        ("flow_events", "map(select(.triggered_by))"),
        ("flow_summaries", r#"map(select(.flow_event == "summary"))"#),
        ("aggregates", "aggregates"),
    ] {
        let found =
            engine.rows(&format!("SELECT count() AS rows FROM pping.{table} WHERE host = 'gw1'"), &none);
        let expected = jq(&format!("{filter} | [{{rows: length}}]"), &none, &file);
        assert_ne!(found[0]["rows"], 0, "{table}");
        assert_same_rows(table, &found, expected.as_array().unwrap());
    }
    // A night that lasts from yesterday evening to midnight, so that it is over and includes now.
    let yesterday = Timestamp::from_second(begun.as_second() - 24 * 3600).unwrap();
    let parameters = Parameters::from([
        ("night", time(yesterday, "%Y-%m-%d")),
        ("hours", "31".to_owned()),
        ("least", "5".to_owned()),
        ("customer", format!("{}/32", Topology::CLIENT_IPV4)),
        ("month", time(begun, "%Y-%m-%d")),
        ("change", time(Timestamp::from_second(change).unwrap(), "%Y-%m-%d %H:%M:%S")),
        ("from", time(Timestamp::from_second(begun.as_second() - 3600).unwrap(), "%Y-%m-%d %H:%M:%S")),
        ("until", time(Timestamp::from_second(begun.as_second() + 3600).unwrap(), "%Y-%m-%d %H:%M:%S")),
        ("times", "1.0001".to_owned()),
        ("host", "gw1".to_owned()),
    ]);
    let questions = QUESTIONS.into_iter().filter(|&question| question != "failing_resolvers");
    engine.assert_answers(&questions.collect::<Vec<_>>(), &parameters, &file);

    // What the pages say beside that.
    for query in blocks(README, "sql") {
        assert!(!engine.rows(query.trim(), &none).is_empty(), "no rows: {query}");
    }
    let condition = format!("src_ip = toIPv6('{}')", Topology::SERVER_IPV4);
    let range = replaced(
        "isIPAddressInRange(toString(src_ip), '::ffff:192.0.2.0/120')",
        "192.0.2.0",
        &Topology::SERVER_IPV4.to_string().replace(".2.2", ".2.0"),
    );
    let readme = fs::read_to_string(repository(README)).unwrap();
    assert!(readme.contains("::ffff:192.0.2.0/120"));
    for condition in [condition, range] {
        let query = format!("SELECT count() AS rows FROM pping.samples WHERE {condition} HAVING rows > 0");
        assert_eq!(engine.rows(&query, &none).len(), 1, "{query}");
    }
}

#[test]
fn clickhouse_takes_a_capture_through_a_pipe_and_a_file_of_aggregates() {
    let topology = topology();
    let router = topology.router();
    let engine = Engine::with_tables(Some(router));
    let none = Parameters::new();
    // Captures are older than what tables keep.
    for table in ["samples", "flow_events", "flow_summaries", "aggregates", "aggregates_hourly"] {
        let statement = "ALTER TABLE pping.samples REMOVE TTL";
        assert!(fs::read_to_string(repository(README)).unwrap().contains(statement));
        engine.run(&replaced(statement, "samples", table), &none);
    }
    let capture = repository("pping/tests/golden/connections.pcap");
    let pipe = replaced(&block(PAGE, "sh", "pping -r trace.pcap"), "trace.pcap", capture.to_str().unwrap());
    assert_eq!(shell(router, &replaced(&pipe, "pping -r", &format!("{PPING} -r"))), "");
    for table in ["samples", "flow_events", "flow_summaries", "aggregates", "hours"] {
        let query = format!("SELECT count() AS rows FROM pping.{table} HAVING rows > 0");
        assert_eq!(engine.rows(&query, &none).len(), 1, "{table} is empty");
    }

    // The other way: a file, by the options of the page.
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("records.jsonl");
    let command = block(PAGE, "sh", "pping -i wan0");
    let options = command.trim().strip_prefix("pping -i wan0 ").unwrap();
    let options = replaced(options, "/var/log/pping/records.jsonl", file.to_str().unwrap());
    let pping = watch(router, Topology::WAN, &options);
    traffic(&topology);
    interrupt(pping);
    let load = replaced(&block(README, "sh", "curl"), "/var/log/pping/records.jsonl", file.to_str().unwrap());
    assert_eq!(shell(router, &load), "");
    let query =
        "SELECT group FROM pping.aggregates WHERE interface = 'wan0' AND group LIKE '10.11.%' AND count > 0";
    assert!(!engine.rows(query, &none).is_empty());
}

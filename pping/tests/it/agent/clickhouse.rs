//! A live run in `ClickHouse`, loaded and queried as `deploy/clickhouse/README.md` and `docs/integrations.md` say.

use std::{env, fs, path::Path, process::Command, thread, time::Duration};

use jiff::{Timestamp, tz::TimeZone};
use pping_lab::{Namespace, Process, Signal, Topology};

use super::{
    documents::{block, blocks, replaced},
    monitor::{
        ENDING, PPING, attachments, converse, interrupt, ok, ping, repository, topology, wait_until, watch,
    },
};
use crate::clickhouse::{Engine, Parameters, QUESTIONS, assert_same_rows, jq};

const README: &str = "deploy/clickhouse/README.md";
const PAGE: &str = "docs/integrations.md";

/// Runs a shell command taken from a page, and returns its output.
#[track_caller]
fn shell(host: &Namespace, script: &str) -> String {
    let mut shell: Command = host.command("sh");
    ok(pping_lab::run(shell.args(["-euc", script])))
}

fn time(at: Timestamp, format: &str) -> String {
    at.to_zoned(TimeZone::UTC).strftime(format).to_string()
}

/// Sends about a second of traffic.
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
    let options = "--rate-limit 0 --aggregate 1s --with-samples --flow-summary --group-by /32,/128 \
                   --inside 10.11.1.0/24";
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
    // The night lasts from yesterday evening to midnight, so it is over but includes the present.
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

    // The other queries on that page.
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
fn clickhouse_loads_a_piped_capture_and_aggregates() {
    let topology = topology();
    let router = topology.router();
    let engine = Engine::with_tables(Some(router));
    let none = Parameters::new();
    // The captures are older than the tables' retention time.
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

    // The other output: a file, with the options from the page.
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

/// syslog-ng in the foreground, with its files in `directory` and the configuration of `deploy/syslog-ng` as edited by
/// `change`.
fn syslog_ng(host: &Namespace, directory: &Path, change: impl FnOnce(String) -> String) -> Command {
    let text = fs::read_to_string(repository("deploy/syslog-ng/pping.conf")).unwrap();
    let configuration = directory.join("syslog-ng.conf");
    fs::write(&configuration, change(format!("@version: 3.38\n{text}"))).unwrap();
    let mut command = host.command(env::var_os("PPING_SYSLOG_NG").unwrap_or_else(|| "syslog-ng".into()));
    command.args(["--foreground", "--stderr", "--no-caps"]).arg("--cfgfile").arg(configuration);
    for (option, name) in [("--persist-file", "persist"), ("--control", "control"), ("--pidfile", "pid")] {
        command.arg(option).arg(directory.join(name));
    }
    command
}

/// Counts the records of each kind: samples, events, summaries, aggregates.
fn counts(engine: &Engine<'_>) -> Vec<u64> {
    let count = |table| {
        let query = format!("SELECT count() AS rows FROM pping.{table} WHERE host != ''");
        engine.rows(&query, &Parameters::new())[0]["rows"].as_u64().unwrap()
    };
    ["samples", "flow_events", "flow_summaries", "aggregates"].map(count).to_vec()
}

#[test]
fn syslog_ng_accepts_its_configuration_and_refuses_a_wrong_one() {
    let topology = topology();
    let directory = tempfile::tempdir().unwrap();
    let is_valid = |change: fn(String) -> String| {
        let mut command = syslog_ng(topology.router(), directory.path(), change);
        command.arg("--syntax-only").output().unwrap().status.success()
    };
    assert!(is_valid(|text| text));
    assert!(!is_valid(|text| replaced(&text, "batch-lines(", "batch-limes(")));
}

#[test]
fn syslog_ng_carries_a_file_to_a_clickhouse_that_comes_later() {
    let topology = topology();
    let router = topology.router();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("records.jsonl");
    let options = "--rate-limit 0 --aggregate 1s --with-samples --flow-summary --group-by /32,/128 \
                   --inside 10.11.1.0/24";
    let pping = watch(router, Topology::WAN, &format!("{options} -w {}", file.display()));
    let faster = |text: String| {
        let text = replaced(&text, "/var/log/pping/records.jsonl", file.to_str().unwrap());
        replaced(
            &replaced(&text, "batch-timeout(5000)", "batch-timeout(200)"),
            "time-reopen(10)",
            "time-reopen(1)",
        )
    };
    let data = directory.path().join("data");
    Engine::open(None, &data).make_tables();
    let _syslog_ng = ok(Process::spawn(syslog_ng(router, directory.path(), faster)));
    traffic(&topology);
    // Records written while no server answered arrive now, and so do later ones.
    let engine = Engine::open(Some(router), &data);
    wait_until("the first records", || counts(&engine)[0] > 0);
    traffic(&topology);
    interrupt(pping);
    let in_file =
        |filter: &str| jq(&format!("{filter} | length"), &Parameters::new(), &file).as_u64().unwrap();
    let expected = [
        "map(select(.rtt))",
        "map(select(.triggered_by))",
        r#"map(select(.flow_event == "summary"))"#,
        "aggregates",
    ]
    .map(in_file);
    assert!(!expected.contains(&0), "{expected:?}");
    let mut arrived = Vec::new();
    wait_until("all records", || {
        arrived = counts(&engine);
        arrived.iter().sum::<u64>() >= expected.iter().sum::<u64>()
    });
    assert_eq!(arrived, expected);
}

#[test]
fn syslog_ng_carries_the_output_of_a_pping_that_it_starts() {
    let topology = topology();
    let router = topology.router();
    let before = attachments(router, Topology::WAN);
    let engine = Engine::with_tables(Some(router));
    let directory = tempfile::tempdir().unwrap();
    let piped = |text: String| {
        let text = replaced(&text, "    file(", "    # file(");
        let text = replaced(&text, "# program(\"pping", &format!("program(\"{PPING}"));
        replaced(
            &replaced(&text, "--aggregate 10s", "--aggregate 1s"),
            "batch-timeout(5000)",
            "batch-timeout(200)",
        )
    };
    let mut syslog_ng = ok(Process::spawn(syslog_ng(router, directory.path(), piped)));
    wait_until("aggregates", || {
        traffic(&topology);
        counts(&engine)[3] > 0
    });
    // It ends the pping that it has started, which would outlive a syslog-ng that is killed.
    ok(syslog_ng.stop(Signal::SIGTERM, ENDING));
    wait_until("pping is gone", || attachments(router, Topology::WAN) == before);
}

//! What pping writes in each format.

use std::process::Command;

use pping_lab::{Process, Signal, Topology};
use serde_json::Value;

use super::monitor::{
    ENDING, HOLD, PATIENCE, PPING, converse, interrupt, ok, ping, topology, wait_until, watch, watch_with,
};

/// Parses JSON lines. Fails on an incomplete line.
pub(super) fn records(jsonl: &str) -> Vec<Value> {
    assert!(jsonl.is_empty() || jsonl.ends_with('\n'), "the last line is torn: {jsonl:?}");
    jsonl
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line:?}")))
        .collect()
}

/// The number of samples among the records.
pub(super) fn samples(records: &[Value]) -> usize {
    records.iter().filter(|record| record.get("rtt").is_some()).count()
}

#[test]
fn a_file_or_pipe_gets_json_lines_by_default() {
    let topology = topology();
    let pping = watch(topology.router(), Topology::WAN, "--rate-limit 0");
    ping(topology.client(), Topology::SERVER_IPV4, "-c3 -i0.2");
    let records = records(&interrupt(pping));
    assert_eq!(samples(&records), 3, "{records:?}");
    let hold = 2 * HOLD.as_nanos() as u64;
    for record in records.iter().filter(|record| record.get("rtt").is_some()) {
        assert_eq!(record["src_ip"], Topology::SERVER_IPV4.to_string());
        assert_eq!(record["dest_ip"], Topology::CLIENT_IPV4.to_string());
        assert_eq!(record["interface"], Topology::WAN);
        assert_eq!(record["src_port"], record["dest_port"]);
        let rtt = record["rtt"].as_u64().unwrap();
        assert!((hold..hold + PATIENCE.as_nanos() as u64).contains(&rtt), "{record}");
        assert!(record["min_rtt"].as_u64().unwrap() <= rtt, "{record}");
    }
}

#[test]
fn format_jsonl_is_the_same_as_the_default() {
    let topology = topology();
    let pping = watch(topology.router(), Topology::WAN, "--format jsonl");
    ping(topology.client(), Topology::SERVER_IPV6, "-c1");
    assert_eq!(samples(&records(&interrupt(pping))), 1);
}

/// Parses a JSON array of records.
pub(super) fn array(json: &str) -> Vec<Value> {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error} in {json}"))
}

#[test]
fn json_is_an_array_however_many_records_there_are() {
    let topology = topology();
    let pping = watch(topology.router(), Topology::WAN, "--format json --rate-limit 0");
    ping(topology.client(), Topology::SERVER_IPV4, "-c3 -i0.2");
    assert_eq!(samples(&array(&interrupt(pping))), 3);
    let pping = watch(topology.router(), Topology::WAN, "--format json");
    assert!(array(&interrupt(pping)).is_empty());
}

#[test]
fn ppviz_is_a_line_per_sample_in_seconds() {
    let topology = topology();
    let pping = watch(topology.router(), Topology::WAN, "--format ppviz --rate-limit 0");
    ping(topology.client(), Topology::SERVER_IPV6, "-c3 -i0.2");
    let output = interrupt(pping);
    assert_eq!(output.lines().count(), 3, "{output}");
    for line in output.lines() {
        let [time, rtt, min, flow] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let seconds = [time, rtt, min].map(|text| text.parse::<f64>().unwrap());
        assert!(seconds[0] > 1.7e9 && seconds[1] >= 2.0 * HOLD.as_secs_f64(), "{line}");
        assert!(seconds[2] <= seconds[1], "{line}");
        let (server, client) = flow.split_once('+').unwrap();
        assert!(server.starts_with(&format!("[{}]:", Topology::SERVER_IPV6)), "{line}");
        assert!(client.starts_with(&format!("[{}]:", Topology::CLIENT_IPV6)), "{line}");
    }
}

#[test]
fn standard_is_a_line_for_people() {
    let topology = topology();
    let pping = watch(topology.router(), Topology::WAN, "--format standard --rate-limit 0");
    converse(&topology, 5);
    let output = interrupt(pping);
    let (v4, v6) = (format!("{}:", Topology::SERVER_IPV4), format!("[{}]:", Topology::SERVER_IPV6));
    for server in [v4, v6] {
        let samples: Vec<&str> =
            output.lines().filter(|line| line.contains(&format!(" ms TCP {server}"))).collect();
        assert!(!samples.is_empty(), "no samples of {server} in {output}");
        for sample in samples {
            let words: Vec<&str> = sample.split(' ').collect();
            let ["ms", "ms"] = [words[2], words[4]] else { panic!("{sample}") };
            let rtt: f64 = words[1].parse().unwrap();
            let min: f64 = words[3].parse().unwrap();
            assert!(rtt >= 2e3 * HOLD.as_secs_f64() && min <= rtt, "{sample}");
        }
        let opening = output.lines().find(|line| line.contains(" opening due to SYN"));
        assert!(opening.is_some_and(|line| line.contains(" TCP ")), "{output}");
        assert!(output.lines().any(|line| line.contains(" closing due to FIN")), "{output}");
    }
}

#[test]
fn a_terminal_gets_lines_for_people() {
    let topology = topology();
    // `script` provides the terminal.
    let mut script = topology.router().command("script");
    script.args([
        "--quiet",
        "--return",
        "--command",
        &format!("{PPING} -v -i {}", Topology::WAN),
        "/dev/null",
    ]);
    let pping = watch_with(script, Topology::WAN);
    ping(topology.client(), Topology::SERVER_IPV4, "-c2 -i0.2");
    wait_until("a line for people", || {
        let line = format!(" ms ICMP {}:", Topology::SERVER_IPV4);
        ok(pping.stdout()).contains(&line)
    });
    assert!(!ok(pping.stdout()).contains('{'), "{}", ok(pping.stdout()));
}

#[test]
fn none_writes_nothing_and_still_sums_up() {
    let topology = topology();
    let mut pping = watch(topology.router(), Topology::WAN, "--format none --rate-limit 0");
    ping(topology.client(), Topology::SERVER_IPV4, "-c3 -i0.2");
    ok(pping.stop(Signal::SIGINT, ENDING));
    assert_eq!(ok(pping.stdout()), "");
    let stderr = ok(pping.stderr());
    assert!(stderr.contains(" 3 samples"), "{stderr}");
}

/// Pings while a shell runs `pipeline` with pping in it, and returns the shell.
fn run_pipeline(topology: &Topology, pipeline: &str) -> Process {
    let mut shell: Command = topology.router().command("bash");
    shell.args(["-c", &format!("set -o pipefail; {pipeline}")]);
    shell.env("PPING", format!("{PPING} -i {} --rate-limit 0", Topology::WAN));
    let mut shell = ok(Process::spawn(shell));
    wait_until(pipeline, || {
        ping(topology.client(), Topology::SERVER_IPV4, "-c2 -i0.1");
        ok(shell.status()).is_some()
    });
    shell
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let topology = topology();
    let mut shell = run_pipeline(&topology, "$PPING | head -n 1");
    let stderr = ok(shell.stderr());
    assert!(ok(shell.wait_timeout(ENDING)).success(), "{stderr}");
    assert_eq!(records(&ok(shell.stdout())).len(), 1);
    for word in ["rror", "roken pipe", "panicked", "pping:", "WARN"] {
        assert!(!stderr.contains(word), "{stderr}");
    }
}

#[test]
fn a_closed_pipe_with_standard_error_in_it_ends_it_quietly() {
    let topology = topology();
    // The line about the start, and one record. A slow start says first what it waits for.
    let mut shell =
        run_pipeline(&topology, "$PPING 2>&1 | awk '!/loading/ { print; if (++lines == 2) exit }'");
    let stderr = ok(shell.stderr());
    let status = ok(shell.wait_timeout(ENDING));
    assert!(status.success(), "{status} {stderr}");
    let both = ok(shell.stdout());
    let (start, record) = both.split_once('\n').unwrap();
    assert!(start.ends_with(&format!("watching {}: measuring", Topology::WAN)), "{both}");
    assert_eq!(records(record).len(), 1, "{both}");
}

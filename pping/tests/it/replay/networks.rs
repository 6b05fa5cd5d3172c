//! `--remote-groups` with captures: as many samples of each network as a join of the records of samples has.

use std::{
    collections::BTreeMap,
    io::Write as _,
    path::Path,
    process::{Output, Stdio},
};

use serde_json::Value;

use super::{
    captures::captures,
    made::{MILLISECOND, START, connection, pcap},
    program::{Temporary, assert_fails, pping, stderr},
};
use crate::python::reference;

/// Networks that overlap, so that every address of the captures is in one or in none by its longest prefix.
const NETWORKS: &str = "network,asn,name,country\n\
    0.0.0.0/1,64500,Low,SE\n10.0.0.0/8,64501,Ten,DE\n10.0.0.0/16,64502,\"Ten, first\",DE\n128.0.0.0/2,64503,High,FR\n\
    192.168.0.0/16,64504,Private,\n192.168.1.0/24,64505,One,\n172.16.0.0/12,64500,Other Name,\n\
    2000::/3,64506,Six,US\nfe80::/10,64507,,\n2001:470::/32,64508,Tunnel,US\n";

const INSIDE: &str = "10.0.0.0/8,192.168.0.0/16,2001:470::/32,fe80::/10";

/// Samples by network, side and method.
type Counts = BTreeMap<String, u64>;

fn run(capture: &Path, arguments: &str) -> Output {
    let output = pping(&format!("-r {} --rate-limit 0 --format jsonl {arguments}", capture.display()))
        .output()
        .unwrap();
    assert!(output.status.code().is_some_and(|code| code < 2), "{}: {}", capture.display(), stderr(&output));
    output
}

fn records(output: &Output) -> impl Iterator<Item = Value> {
    str::from_utf8(&output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap())
}

/// The samples of each network in the aggregates, and those of all groups.
fn measured(capture: &Path, arguments: &str) -> (Counts, u64) {
    let output = run(capture, &format!("--aggregate 1d {arguments}"));
    let (mut counts, mut all) = (Counts::new(), 0);
    for record in records(&output).filter(|record| record["type"] == "aggregate") {
        let count = record["count"].as_u64().unwrap();
        if record["level"] != "network" {
            all += count;
        } else if count > 0 {
            let text = |name: &str| record[name].as_str().unwrap_or("-").to_owned();
            *counts.entry([text("path"), text("side"), text("method")].join("\t")).or_default() += count;
        }
    }
    (counts, all)
}

/// The samples of each network by the join.
fn joined(capture: &Path, networks: &Path, inside: Option<&str>, arguments: &str) -> Counts {
    let samples = run(capture, arguments).stdout;
    let mut join = reference("join_networks.py");
    join.arg(networks).args(inside).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut join = join.spawn().unwrap();
    join.stdin.take().unwrap().write_all(&samples).unwrap();
    let output = join.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn networks_have_the_samples_of_a_join() {
    let networks = Temporary::new("asn.csv", NETWORKS.as_bytes());
    let remote = format!("--remote-groups {}", networks.path.display());
    let decap = "--decap ipip,gre,vxlan,geneve,gtp-u,erspan,tzsp";
    let mut samples = 0;
    for capture in captures() {
        for inside in [None, Some(INSIDE)] {
            let sides = inside.map_or_else(String::new, |inside| format!("--inside {inside}"));
            let (measured, all) = measured(&capture, &format!("{decap} {sides} {remote}"));
            assert_eq!(measured.values().sum::<u64>(), all, "{}", capture.display());
            let joined = joined(&capture, &networks.path, inside, decap);
            assert_eq!(measured, joined, "{} {sides}", capture.display());
            samples += all;
        }
    }
    eprintln!("{samples} samples");
}

#[test]
fn samples_beyond_the_limit_of_networks_are_of_the_others() {
    let packets = connection(40_000, START, 15, 7 * MILLISECOND);
    let capture = Temporary::new("capture", &pcap(&packets));
    let networks = Temporary::new(
        "asn.csv",
        b"network,asn,name\n198.51.100.0/24,64500,Server\n192.0.2.0/24,64501,Client\n",
    );
    let arguments = format!("--methods tcp-ts --remote-groups {} --max-networks", networks.path.display());
    let (all, sum) = measured(&capture.path, &format!("{arguments} 2"));
    assert_eq!(all.keys().collect::<Vec<_>>(), ["AS64500 Server\t-\ttcp-ts", "AS64501 Client\t-\ttcp-ts"]);
    let (one, same) = measured(&capture.path, &format!("{arguments} 1"));
    assert_eq!((one.len(), one.values().sum::<u64>()), (2, sum), "{one:?}");
    assert!(one.contains_key("other\t-\ttcp-ts"), "{one:?}");
    assert_eq!(sum, same);
}

#[test]
fn a_file_with_an_error_is_named_with_its_line() {
    let capture = Temporary::new("capture", &pcap(&connection(40_000, START, 2, 7 * MILLISECOND)));
    let run = |name: &str, text: &str, more: &str| {
        let file = Temporary::new(name, text.as_bytes());
        let arguments =
            format!("-r {} --remote-groups {} {more}", capture.path.display(), file.path.display());
        pping(&arguments).output().unwrap()
    };
    let bad = run("asn.csv", "network,asn\n192.0.2.1/24,64500\n", "");
    assert_fails(&bad, 2, &["--remote-groups ", "asn.csv:2:1: ", "write 192.0.2.0/24"]);
    assert_fails(&run("asn.mmdb", "nothing", ""), 2, &["this is no MaxMind database"]);
    let countries = run("asn.csv", "network,country\n192.0.2.0/24,SE\n", "");
    assert_fails(&countries, 2, &["--remote-by country"]);
    let missing =
        pping(&format!("-r {} --remote-groups /nonexistent", capture.path.display())).output().unwrap();
    assert_fails(&missing, 2, &["--remote-groups /nonexistent: "]);
    let by_country =
        run("asn.csv", "network,country\n192.0.2.0/24,SE\n", "--remote-by country --aggregate 1d");
    assert!(String::from_utf8_lossy(&by_country.stdout).contains("\"path\":\"SE\""), "{by_country:?}");
    let level = run("asn.csv", "network,asn\n192.0.2.0/24,1\n", "--groups x.csv --roll-up network");
    assert_fails(&level, 2, &["--roll-up", "network"]);
}

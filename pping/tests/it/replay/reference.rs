//! Aggregates, summaries, logs and counters agree with the samples, with tshark, and with another reader of the log.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use pping::capture::{Capture, decompress};

use super::{
    captures::captures,
    generate,
    program::{Temporary, pping, stderr},
};
use crate::python::{python_with, reference};

/// Options for several kinds of groups and intervals.
const AGGREGATIONS: [&str; 4] = [
    "--aggregate 1h",
    "--aggregate 30ms",
    "--aggregate 30ms --group-by /16,/32,both,dscp",
    "--aggregate 1h --group-by /32,/128 --max-groups 1",
];

/// The records of a capture.
#[track_caller]
fn records(capture: &Path, arguments: &str) -> String {
    let arguments = format!("-r {} --format jsonl --rate-limit 0 {arguments}", capture.display());
    let output = pping(&arguments).output().unwrap();
    assert!(output.status.success(), "pping {arguments}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Checks records with a script of the reference. Returns how many things the script compared.
#[track_caller]
fn compare(script: &str, arguments: &[&str], records: &str, what: &str) -> usize {
    let mut comparison = reference(script);
    comparison.args(arguments);
    let mut child =
        comparison.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(records.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{what}: {}", stderr(&output));
    String::from_utf8_lossy(&output.stdout).trim().parse().unwrap()
}

/// Returns one golden capture for each set of samples, and the foreign captures.
fn all_captures() -> Vec<(PathBuf, Option<Temporary>)> {
    let mut seen = HashSet::new();
    let golden = generate::all().into_iter().filter(|golden| seen.insert(golden.samples.clone()));
    let golden = golden.map(|golden| {
        let file = Temporary::new(&golden.name, &golden.bytes);
        (file.path.clone(), Some(file))
    });
    golden.chain(captures().into_iter().map(|capture| (capture, None))).collect()
}

/// True if no packet is older than the one before it. If one is, a record counts it in a later interval than its time.
fn is_in_order(capture: &Path) -> bool {
    let mut capture = Capture::new(decompress(File::open(capture).unwrap()).unwrap());
    let (mut newest, mut is_in_order) = (0, true);
    loop {
        while let Some(packet) = capture.next_packet().unwrap() {
            is_in_order &= newest <= packet.time;
            newest = packet.time;
        }
        if !capture.fill().unwrap() {
            return is_in_order;
        }
    }
}

#[test]
fn aggregates_agree_with_the_samples_beside_them() {
    let (mut samples, mut intervals) = (0, 0);
    for (capture, _file) in all_captures().into_iter().filter(|(capture, _)| is_in_order(capture)) {
        for aggregation in AGGREGATIONS {
            let records = records(&capture, &format!("{aggregation} --with-samples"));
            let what = format!("{} {aggregation}", capture.display());
            samples += compare("aggregates.py", &["aggregates"], &records, &what);
            intervals += records.lines().filter(|line| line.contains("\"histogram\"")).count();
        }
    }
    assert!(
        samples > 500 && intervals > 300,
        "{samples} samples in {intervals} intervals are too few to tell"
    );
}

#[test]
fn flow_summaries_agree_with_their_samples() {
    let mut samples = 0;
    for (capture, _file) in all_captures() {
        let records = records(&capture, "--flow-summary --with-samples");
        samples += compare("aggregates.py", &["summaries"], &records, &capture.display().to_string());
    }
    assert!(samples > 100, "{samples} samples are too few to tell");
}

#[test]
fn flows_have_the_traffic_that_tshark_finds() {
    let captures = captures();
    let mut directions = 0;
    for capture in &captures {
        let records = records(capture, "--flow-summary");
        let name = capture.display().to_string();
        directions += compare("traffic.py", &[&name], &records, &name);
    }
    assert!(captures.is_empty() || directions > 10, "{directions} directions of flows are too few to tell");
}

#[test]
fn the_reference_times_dns_as_tshark_does() {
    let captures = captures();
    let mut samples = 0;
    for capture in &captures {
        let name = capture.display().to_string();
        samples += compare("dns_time.py", &[&name], "", &name);
    }
    assert!(captures.is_empty() || samples > 200, "{samples} samples are too few to tell");
}

#[test]
fn hdrhistogram_tools_read_the_same_as_in_the_records() {
    if python_with("hdrh").is_none() {
        eprintln!(
            "NOT TESTED: no python3 here has the package hdrhistogram; `cargo xtask setup --tests` gets it"
        );
        return;
    }
    let mut intervals = 0;
    for (capture, _file) in all_captures() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let groups = directory.path().join("groups.csv");
        fs::write(&groups, "0.0.0.0/1,\"Müller, Söhne; 50 %\"\n128.0.0.0/1,low\n").unwrap();
        let (log, groups) = (log.display().to_string(), groups.display().to_string());
        let arguments = format!("--aggregate 100ms --groups {groups} --hdr-log {log}");
        let records = records(&capture, &arguments);
        intervals += compare("hdr_log.py", &[&log], &records, &capture.display().to_string());
    }
    assert!(intervals > 50, "{intervals} intervals are too few to tell");
}

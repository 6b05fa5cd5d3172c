//! The samples of a capture: those that pping finds, and those that the reference expects.

use std::{net::IpAddr, path::Path, process::Command};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::python::reference;

const PPING: &str = env!("CARGO_BIN_EXE_pping");

/// A sample, as pping and the reference write it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Sample {
    pub(super) method: String,
    src_ip: IpAddr,
    src_port: u16,
    dest_ip: IpAddr,
    dest_port: u16,
    rtt: u64,
    /// In ns since 1970.
    #[serde(alias = "matched_at")]
    timestamp: u64,
}

impl Sample {
    pub(super) fn rtt(&self) -> u64 {
        self.rtt
    }

    /// The address of the replying host.
    pub(super) fn source(&self) -> String {
        self.src_ip.to_string()
    }

    /// Returns the timed endpoint and the replying endpoint.
    pub(super) fn direction(&self) -> String {
        format!("{} {} to {} {}", self.dest_ip, self.dest_port, self.src_ip, self.src_port)
    }

    pub(super) fn line(&self) -> String {
        serde_json::to_string(self).unwrap() + "\n"
    }
}

/// The samples in JSON lines, without flow events.
pub(super) fn parse(lines: &str) -> Vec<Sample> {
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("not JSON ({error}): {line}")))
        .filter(|record: &Value| record.get("flow_event").is_none())
        .inspect(assert_protocol)
        .map(|record| {
            serde_json::from_value(record.clone()).unwrap_or_else(|error| panic!("{error}: {record}"))
        })
        .collect()
}

/// Asserts that the protocol, which only pping writes, is the one that method and addresses imply.
#[track_caller]
fn assert_protocol(record: &Value) {
    let Some(protocol) = record.get("protocol") else { return };
    let is_v6 = record["src_ip"].as_str().is_some_and(|address| address.contains(':'));
    let implied = match record["method"].as_str() {
        Some("icmp-echo") if is_v6 => "ICMPv6",
        Some("icmp-echo") => "ICMP",
        Some("dns") => "DNS",
        Some("quic-spin" | "quic-handshake") => "QUIC",
        _ => "TCP",
    };
    assert_eq!(protocol, implied, "{record}");
}

/// Returns the samples that pping finds in a capture, or its error. Options with an empty value are left out.
pub(super) fn measured(capture: &Path, arguments: &[&str]) -> Result<Vec<Sample>, String> {
    let mut pping = Command::new(PPING);
    pping.args(["--format", "jsonl", "--rate-limit", "0", "-r"]).arg(capture);
    for option in arguments.chunks_exact(2).filter(|option| !option[1].is_empty()) {
        pping.args(option);
    }
    let output = pping.output().unwrap();
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// Returns the samples that the reference expects of a capture.
#[track_caller]
pub(super) fn expected(capture: &Path, arguments: &[&str]) -> Vec<Sample> {
    let output =
        reference("expected_samples.py").args(arguments).arg(capture).output().unwrap_or_else(|error| {
            panic!("this test needs python3 and tshark, which `cargo xtask setup --tests` installs: {error}")
        });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    parse(&String::from_utf8_lossy(&output.stdout))
}

/// Compares both in order. The error says where they first differ.
pub(super) fn agree(found: &[Sample], expected: &[Sample]) -> Result<(), String> {
    let same = found.iter().zip(expected).take_while(|(found, expected)| found == expected).count();
    if same == found.len() && same == expected.len() {
        return Ok(());
    }
    Err(format!(
        "{} samples instead of {}, and the one at {same} is\n    {:?}\n    instead of\n    {:?}",
        found.len(),
        expected.len(),
        found.get(same),
        expected.get(same),
    ))
}

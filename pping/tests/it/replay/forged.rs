//! What somebody beside the path sends changes nothing: replay finds what it finds without, and so does the reference.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    generate::forged,
    program::{Temporary, read},
    samples::{agree, expected, measured},
};

/// The options to read each capture with.
const READINGS: [[&str; 2]; 4] =
    [["--decap", ""], ["--tcp-method", "seq"], ["--tcp-method", "both"], ["--methods", "tcp-ts,tcp-seq"]];

#[test]
fn forged_packets_leave_samples_as_they_were() {
    let [honest, with_lies] = forged::captures();
    let [honest, with_lies] = [honest, with_lies].map(|bytes| Temporary::new("capture.pcapng", &bytes));
    for reading in READINGS {
        let options = [&["--arms", "two"][..], &reading].concat();
        let found = measured(&with_lies.path, &options).unwrap();
        assert_eq!(agree(&found, &measured(&honest.path, &options).unwrap()), Ok(()), "{reading:?}");
        assert_eq!(agree(&found, &expected(&with_lies.path, &options)), Ok(()), "{reading:?}");
        let mut counts = BTreeMap::new();
        for sample in &found {
            *counts.entry(sample.method.as_str()).or_insert(0) += 1;
        }
        let has_all = reading[0] != "--methods";
        let of = |method: &str| counts.get(method).copied().unwrap_or(0);
        assert!(of("tcp-seq") >= 40, "{counts:?}");
        if has_all {
            assert_eq!(
                [of("tcp-handshake"), of("icmp-echo"), of("dns"), of("quic-handshake")],
                [8, 20, 20, 20]
            );
        }
    }
}

#[test]
fn forged_packets_leave_flows_as_they_were() {
    let flows = |capture: &[u8]| {
        let output = read(capture, "--format jsonl --flow-summary --arms two");
        let lines = String::from_utf8(output.stdout).unwrap();
        let mut flows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let is_honest = |flow: &Value| flow["src_ip"] != "192.0.2.77" && flow["dest_ip"] != "192.0.2.77";
        flows.retain(|record| record["type"] == "flow" && record["protocol"] == "TCP" && is_honest(record));
        flows
    };
    let [honest, with_lies] = forged::captures();
    let (mut expected, found) = (flows(&honest), flows(&with_lies));
    // What is no RST and no SYN does not even count, and nor do its marks of congestion.
    for flow in &mut expected {
        for packets in ["sent_packets", "rec_packets", "sent_ce_packets", "rec_ce_packets"] {
            flow[packets] = (flow[packets].as_u64().unwrap() + forged::RSTS_AND_SYNS).into();
        }
    }
    assert_eq!(expected.iter().filter(|record| record["flow_event"] == "summary").count(), 4);
    assert_eq!(found, expected);
}

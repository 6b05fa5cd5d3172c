//! Every record validates against `docs/schema/record.json`, and the schema rejects invalid ones.

use jsonschema::Validator;
use pping_lab::Topology;
use serde_json::{Value, json};

use super::{
    formats::records,
    monitor::{converse, interrupt, ping, topology, watch},
};
use crate::schemas::validator;

/// Returns the records of a run with traffic for TCP and pings in both families.
fn real_records() -> Vec<Value> {
    let topology = topology();
    let pping = watch(topology.router(), Topology::WAN, "--rate-limit 0");
    converse(&topology, 10);
    // Expedited forwarding (DSCP 46); the reply repeats the DSCP of the request.
    ping(topology.client(), Topology::SERVER_IPV4, "-c3 -i0.1 -Q0xb8");
    ping(topology.client(), Topology::SERVER_IPV6, "-c3 -i0.1");
    records(&interrupt(pping))
}

#[test]
fn real_records_validate_and_spoiled_ones_do_not() {
    let validator = validator("record.json");
    let records = real_records();
    for record in &records {
        let errors: Vec<String> = validator.iter_errors(record).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{record}: {errors:?}");
    }
    let of = |key: &'static str, value: Value| records.iter().filter(move |record| record[key] == value);
    for (method, address) in [
        ("tcp-ts", Topology::SERVER_IPV4.to_string()),
        ("tcp-ts", Topology::SERVER_IPV6.to_string()),
        ("icmp-echo", Topology::SERVER_IPV4.to_string()),
        ("icmp-echo", Topology::SERVER_IPV6.to_string()),
    ] {
        let count = of("method", json!(method)).filter(|record| record["src_ip"] == address).count();
        assert!(count > 0, "no {method} of {address} among {} records", records.len());
    }
    assert_eq!(of("dscp", json!(46)).count(), 3, "samples of replies marked with DSCP 46");
    for (event, reason) in [("opening", "SYN"), ("opening", "SYN-ACK"), ("closing", "FIN")] {
        let count = of("flow_event", json!(event)).filter(|record| record["reason"] == reason).count();
        assert!(count > 0, "no {event} due to {reason}");
    }

    let rtt = of("method", json!("tcp-ts")).next().unwrap();
    let flow = of("flow_event", json!("opening")).next().unwrap();
    assert_refuses_spoiled(&validator, rtt);
    assert_refuses_spoiled(&validator, flow);
    assert!(!validator.is_valid(&json!({})) && !validator.is_valid(&json!([rtt])));
}

/// Spoils a valid record in every way, one at a time, and asserts that the schema rejects the result.
fn assert_refuses_spoiled(validator: &Validator, record: &Value) {
    assert!(validator.is_valid(record), "{record}");
    let refused = |spoiled: &Value| assert!(!validator.is_valid(spoiled), "valid: {spoiled}");
    let fields = record.as_object().unwrap();
    for (name, value) in fields {
        if !["dscp", "match_on_egress", "interface"].contains(&name.as_str()) {
            let mut without = fields.clone();
            without.remove(name);
            refused(&without.into());
        }
        let wrong = match value {
            Value::Number(_) => vec![json!(-1), json!(1.5), json!("1"), Value::Null],
            Value::Bool(_) => vec![json!(0), json!("true"), Value::Null],
            _ => vec![json!(7), json!(""), json!("certainly-nothing-of-the-kind".repeat(3)), Value::Null],
        };
        for wrong in wrong {
            let mut spoiled = record.clone();
            spoiled[name] = wrong;
            refused(&spoiled);
        }
    }
    let mut with = record.clone();
    with["colour"] = json!("blue");
    refused(&with);
}

#[test]
fn optional_fields_and_their_limits() {
    let validator = validator("record.json");
    let sample = json!({
        "schema_version": 1, "type": "rtt", "timestamp": 1_700_000_000_000_000_042_u64, "src_ip": "fd00::1", "src_port": 443, "dest_ip": "fd00::2",
        "dest_port": 65535, "protocol": "TCP", "rtt": 5, "min_rtt": 0, "sent_packets": 1, "sent_bytes": 2,
        "rec_packets": 3, "rec_bytes": 4, "match_on_egress": true, "method": "tcp-ts", "interface": "eth0",
        "smoothed_rtt": 5
    });
    for (name, value, valid) in [
        ("interface", json!("Ethernet 2 of a capture made elsewhere"), true),
        ("group", json!("office"), true),
        ("group", json!(""), false),
        ("vlan", json!([5]), true),
        ("vlan", json!([4095, 0]), true),
        ("vlan", json!([]), false),
        ("vlan", json!([4096]), false),
        ("vlan", json!([1, 2, 3, 4, 5]), false),
        ("vlan", json!(5), false),
        ("dscp", json!(63), true),
        ("dscp", json!(0), false),
        ("dscp", json!(64), false),
        ("src_ip", json!("10.0.0.256"), false),
        ("dest_port", json!(65536), false),
        ("protocol", json!("ICMP"), false),
        ("method", json!("icmp-echo"), false),
        ("flow_event", json!("opening"), false),
        ("rtt", json!(18_446_744_073_709_551_615_u64), true),
        ("dns_id", json!(7), false),
        ("side_rtt", json!(7), false),
        ("method", json!("tcp-seq"), true),
        ("method", json!("tcp-handshake"), true),
        ("method", json!("quic-spin"), false),
    ] {
        let mut record = sample.clone();
        record[name] = value;
        assert_eq!(validator.is_valid(&record), valid, "{record}");
    }
    for (method, fields, valid) in [
        ("dns", json!({ "dns_id": 65535 }), true),
        ("dns", json!({ "dns_id": 65536 }), false),
        ("dns", json!({}), false),
        ("dns", json!({ "dns_id": 1, "side_rtt": 5 }), false),
        ("quic-spin", json!({}), true),
        ("quic-spin", json!({ "side_rtt": 5 }), true),
        ("quic-spin", json!({ "side_rtt": 0 }), false),
        ("quic-spin", json!({ "dns_id": 1 }), false),
        ("quic-handshake", json!({}), true),
        ("quic-handshake", json!({ "side_rtt": 5 }), false),
        ("tcp-seq", json!({}), false),
    ] {
        let mut record = sample.clone();
        (record["method"], record["protocol"]) =
            (json!(method), json!(if method == "dns" { "DNS" } else { "QUIC" }));
        record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        assert_eq!(validator.is_valid(&record), valid, "{record}");
    }
}

//! `jsonl`: one JSON object a line. `json`: an array of them. `docs/schema/record.json` is their schema.

use super::encoder::Encoder;
use crate::{output::Framing, records::Record};

/// Writes JSON lines.
pub(super) struct Jsonl;

impl Encoder for Jsonl {
    fn encode(&mut self, record: &Record, out: &mut Vec<u8>) {
        if object(record, out) {
            out.push(b'\n');
        }
    }
}

/// Writes a JSON array.
pub(super) struct Json;

impl Encoder for Json {
    fn encode(&mut self, record: &Record, out: &mut Vec<u8>) {
        object(record, out);
    }

    fn framing(&self) -> Framing {
        Framing { begin: b"[\n", separator: b",\n", end: b"\n]\n", end_of_none: b"]\n" }
    }
}

/// The beginning of every object, up to the name of its type. The version increases with each change that could mislead a reader of the existing fields. Adding
/// a field is no such change.
const BEGINNING: &[u8] = br#"{"schema_version":1,"type":""#;

/// Appends a record as a JSON object. Returns whether that worked; if not, `out` is as before.
fn object(record: &Record, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    out.extend_from_slice(BEGINNING);
    out.extend_from_slice(record.type_name().as_bytes());
    out.push(b'"');
    let brace = out.len();
    // Neither a `Vec` nor these records can fail; a torn line would still be worse than none.
    let written = serde_json::to_writer(&mut *out, record).is_ok();
    // A comma replaces the brace of the record, so that its fields follow the beginning. Every record has fields.
    match out.get_mut(brace) {
        Some(first) if written && *first == b'{' => *first = b',',
        _ => out.truncate(start),
    }
    out.len() > start
}

/// The version that records begin with.
#[cfg(test)]
pub(in crate::records) fn schema_version() -> u64 {
    let beginning = [BEGINNING, b"\"}"].concat();
    let beginning: serde_json::Value = serde_json::from_slice(&beginning).unwrap();
    beginning["schema_version"].as_u64().unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::rtt::tests::example;

    #[test]
    fn sample_line_has_schema_version_and_epping_fields() {
        let mut out = b"before ".to_vec();
        Jsonl.encode(&Record::Rtt(example()), &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "before {\"schema_version\":1,\"type\":\"rtt\",\"timestamp\":1700000000000000042,\"src_ip\":\"10.11.1.1\",\"src_port\":5201,\
             \"dest_ip\":\"10.11.1.2\",\"dest_port\":59528,\"protocol\":\"TCP\",\"rtt\":5425440,\"min_rtt\":5000000,\
             \"sent_packets\":1,\"sent_bytes\":2,\"rec_packets\":3,\"rec_bytes\":4,\"match_on_egress\":false,\
             \"method\":\"tcp-ts\",\"interface\":\"eth0\",\"smoothed_rtt\":5200000}\n"
        );
    }
}

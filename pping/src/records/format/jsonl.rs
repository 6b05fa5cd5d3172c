//! `jsonl`: a JSON object a line, as `docs/schema/record.json` has them.

use super::Sink;
use crate::records::Record;

/// Writes JSON lines.
pub(super) struct Jsonl;

impl Sink for Jsonl {
    fn write(&mut self, record: &Record, out: &mut Vec<u8>) {
        if object(record, out) {
            out.push(b'\n');
        }
    }
}

/// Appends a record as a JSON object, and nothing if that fails.
pub(super) fn object(record: &Record, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let written = match record {
        Record::Rtt(record) => serde_json::to_writer(&mut *out, record),
        Record::Flow(record) => serde_json::to_writer(&mut *out, record),
        Record::FlowSummary(record) => serde_json::to_writer(&mut *out, record),
        Record::Aggregate(record) => serde_json::to_writer(&mut *out, record),
    };
    // Neither a `Vec` nor these records can fail; a torn line would still be worse than none.
    if written.is_err() {
        out.truncate(start);
    }
    written.is_ok()
}

//! `jsonl`: a JSON object a line, as `docs/schema/record.json` has them.

use super::Sink;
use crate::record::Record;

/// Writes JSON lines.
pub(super) struct Jsonl;

impl Sink for Jsonl {
    fn write(&mut self, record: &Record, out: &mut Vec<u8>) {
        let start = out.len();
        let written = match record {
            Record::Rtt(record) => serde_json::to_writer(&mut *out, record),
            Record::Flow(record) => serde_json::to_writer(&mut *out, record),
        };
        match written {
            Ok(()) => out.push(b'\n'),
            // Neither a `Vec` nor these records can fail; a torn line would still be worse than none.
            Err(_) => out.truncate(start),
        }
    }
}

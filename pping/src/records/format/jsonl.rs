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

/// Appends a record as a JSON object. Returns whether that worked; if not, `out` is as before.
fn object(record: &Record, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    // Neither a `Vec` nor these records can fail; a torn line would still be worse than none.
    let written = serde_json::to_writer(&mut *out, record);
    if written.is_err() {
        out.truncate(start);
    }
    written.is_ok()
}

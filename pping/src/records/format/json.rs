//! `json`: an array of the records that `jsonl` writes a line each.

use super::{Framing, Sink, jsonl};
use crate::records::Record;

/// Writes a JSON array.
pub(super) struct Json;

impl Sink for Json {
    fn write(&mut self, record: &Record, out: &mut Vec<u8>) {
        jsonl::object(record, out);
    }

    fn framing(&self) -> Framing {
        Framing { begin: b"[\n", separator: b",\n", end: b"\n]\n", end_of_none: b"]\n" }
    }
}

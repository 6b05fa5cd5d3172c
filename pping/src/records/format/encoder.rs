//! The trait of formats.

use crate::{
    output::{Batch, Framing},
    records::Record,
};

/// A format of records.
pub trait Encoder: Send {
    /// Appends a record to `out`, or nothing if the format has no such records.
    fn encode(&mut self, record: &Record, out: &mut Vec<u8>);

    /// The frame that a file needs around its records.
    fn framing(&self) -> Framing {
        Framing::LINES
    }

    /// Adds a record to a batch.
    fn append(&mut self, record: &Record, batch: &mut Batch) {
        batch.push(self.framing(), |out| self.encode(record, out));
    }
}

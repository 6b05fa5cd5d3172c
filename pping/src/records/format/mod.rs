//! The formats of records, one a file.

mod jsonl;
mod ppviz;
mod standard;

use super::Record;
use crate::{
    config::Format,
    output::{Batch, Framing},
};

/// A format of records.
pub trait Encoder: Send {
    /// Appends a record to `out`; nothing if the format does not have such records.
    fn encode(&mut self, record: &Record, out: &mut Vec<u8>);

    /// What a file needs around its records.
    fn framing(&self) -> Framing {
        Framing::LINES
    }

    /// Adds a record to a batch.
    fn append(&mut self, record: &Record, batch: &mut Batch) {
        batch.push(self.framing(), |out| self.encode(record, out));
    }
}

/// `none`: writes nothing.
struct Nothing;

impl Encoder for Nothing {
    fn encode(&mut self, _record: &Record, _out: &mut Vec<u8>) {}
}

/// The encoder of a format.
pub fn encoder(format: Format) -> Box<dyn Encoder> {
    match format {
        Format::Standard => Box::new(standard::Standard::default()),
        Format::Jsonl => Box::new(jsonl::Jsonl),
        Format::Json => Box::new(jsonl::Json),
        Format::Ppviz => Box::new(ppviz::Ppviz),
        Format::None => Box::new(Nothing),
    }
}

//! Where records go, one format a file: values in, octets out.

mod jsonl;
pub mod prometheus;
mod standard;

use crate::{cli::Format, record::Record};

/// A format of records.
pub trait Sink: Send {
    /// Appends a record to `out`, as one line.
    fn write(&mut self, record: &Record, out: &mut Vec<u8>);
}

/// The sink of a format, if it writes anything.
pub fn sink(format: Format) -> Option<Box<dyn Sink>> {
    match format {
        Format::Standard => Some(Box::new(standard::Standard::default())),
        Format::Jsonl => Some(Box::new(jsonl::Jsonl)),
        Format::None => None,
    }
}

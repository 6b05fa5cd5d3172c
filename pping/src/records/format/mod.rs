//! Where records go, one format a file: values in, bytes out.

mod json;
mod jsonl;
mod ppviz;
mod standard;

use crate::{cli::Format, records::Record};

/// A format of records.
pub trait Sink: Send {
    /// Appends a record to `out`; nothing, if the format has no place for such a record.
    fn write(&mut self, record: &Record, out: &mut Vec<u8>);

    /// What comes before, between and after records.
    fn framing(&self) -> Framing {
        Framing::LINES
    }
}

/// What a format has around its records. Who writes them puts it there, so that a file is whole whatever was dropped
/// on the way, and wherever it begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Before the first record of a file.
    pub begin: &'static [u8],
    /// Between two records.
    pub separator: &'static [u8],
    /// After the last record, if there is one.
    pub end: &'static [u8],
    /// After the beginning, if there is no record.
    pub end_of_none: &'static [u8],
}

impl Framing {
    /// Records are lines, each with its own end.
    pub const LINES: Self = Self { begin: b"", separator: b"", end: b"", end_of_none: b"" };

    /// Whether a file is more than its records, and cannot be gone on with once it was ended.
    pub fn is_closed(self) -> bool {
        self != Self::LINES
    }
}

/// Writes nothing.
struct Nothing;

impl Sink for Nothing {
    fn write(&mut self, _record: &Record, _out: &mut Vec<u8>) {}
}

/// The sink of a format.
pub fn sink(format: Format) -> Box<dyn Sink> {
    match format {
        Format::Standard => Box::new(standard::Standard::default()),
        Format::Jsonl => Box::new(jsonl::Jsonl),
        Format::Json => Box::new(json::Json),
        Format::Ppviz => Box::new(ppviz::Ppviz),
        Format::None => Box::new(Nothing),
    }
}

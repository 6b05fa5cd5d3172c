//! The formats of records, one per file.

mod encoder;
mod jsonl;
mod ppviz;
mod standard;

pub use self::encoder::Encoder;
#[cfg(test)]
pub(super) use self::jsonl::schema_version;
use super::Record;
use crate::config::Format;

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

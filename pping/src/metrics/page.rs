//! A page of metrics: the body of one scrape, plain or compressed.

use std::io::Write as _;

use axum::body::Bytes;
use flate2::{Compression, write::GzEncoder};

/// The text format of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// `OpenMetrics` 1.0.
    OpenMetrics,
    /// The older text format of Prometheus, version 0.0.4.
    Classic,
}

/// The content encoding of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// None.
    Identity,
    /// gzip (RFC 1952).
    Gzip,
}

/// The size of a chunk, bytes: small enough to be in the processor's cache still when it is compressed.
const CHUNK: usize = 256 << 10;

/// A whole page, in chunks.
#[derive(Debug)]
pub struct Page {
    chunks: Vec<Bytes>,
}

impl Page {
    /// The chunks.
    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks
    }

    /// The size, bytes.
    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(Bytes::len).sum()
    }

    /// The text of a page that is not compressed.
    pub fn text(&self) -> String {
        self.chunks.iter().map(|chunk| String::from_utf8_lossy(chunk)).collect()
    }
}

/// Writes a page.
pub(super) struct Writer {
    text: Text,
    /// The chunk in progress.
    chunk: Vec<u8>,
    done: Done,
}

/// The destination of finished chunks.
enum Done {
    Plain(Vec<Bytes>),
    Gzip(Box<GzEncoder<Vec<u8>>>),
}

/// The type of a metric family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
    Info,
}

impl Writer {
    pub(super) fn new(text: Text, encoding: Encoding) -> Self {
        let done = match encoding {
            Encoding::Identity => Done::Plain(Vec::new()),
            Encoding::Gzip => Done::Gzip(GzEncoder::new(Vec::new(), Compression::fast()).into()),
        };
        Self { text, chunk: Vec::with_capacity(CHUNK + CHUNK / 8), done }
    }

    /// Writes the comment lines of a family. `name` has no `_total` or `_info`, but its unit if it has one.
    pub(super) fn family(&mut self, name: &str, unit: Option<&str>, kind: Kind, help: &str) {
        let (suffix, kind) = match (self.text, kind) {
            (_, Kind::Gauge) => ("", "gauge"),
            (_, Kind::Histogram) => ("", "histogram"),
            (Text::OpenMetrics, Kind::Counter) => ("", "counter"),
            (Text::OpenMetrics, Kind::Info) => ("", "info"),
            (Text::Classic, Kind::Counter) => ("_total", "counter"),
            (Text::Classic, Kind::Info) => ("_info", "gauge"),
        };
        self.put(&["# HELP ", name, suffix, " ", help, ".\n# TYPE ", name, suffix, " ", kind, "\n"]);
        if let (Text::OpenMetrics, Some(unit)) = (self.text, unit) {
            self.put(&["# UNIT ", name, " ", unit, "\n"]);
        }
    }

    /// Writes a line with an integer value. `before` is the line up to `labels`, which all lines of a series share.
    #[inline]
    pub(super) fn integer(&mut self, before: &str, labels: &str, value: u64) {
        self.begin(before, labels);
        self.chunk.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        self.chunk.push(b'\n');
    }

    /// Writes a line with a time in nanoseconds as seconds with nine decimals.
    pub(super) fn seconds(&mut self, before: &str, labels: &str, nanoseconds: u128) {
        self.begin(before, labels);
        let (seconds, rest) = (nanoseconds / 1_000_000_000, (nanoseconds % 1_000_000_000) as u32);
        self.chunk.extend_from_slice(itoa::Buffer::new().format(seconds).as_bytes());
        // Ten digits, the first of which is a 1 that the point overwrites.
        let point = self.chunk.len();
        self.chunk.extend_from_slice(itoa::Buffer::new().format(1_000_000_000 + rest).as_bytes());
        self.chunk[point] = b'.';
        self.chunk.push(b'\n');
    }

    /// Completes the page.
    pub(super) fn finish(mut self) -> Page {
        if self.text == Text::OpenMetrics {
            self.put(&["# EOF\n"]);
        }
        self.end_chunk();
        let chunks = match self.done {
            Done::Plain(chunks) => chunks,
            // Writing to memory does not fail.
            Done::Gzip(gzip) => vec![gzip.finish().unwrap_or_default().into()],
        };
        Page { chunks }
    }

    /// Writes text as it is.
    pub(super) fn put(&mut self, parts: &[&str]) {
        for part in parts {
            self.chunk.extend_from_slice(part.as_bytes());
        }
    }

    #[inline]
    fn begin(&mut self, before: &str, labels: &str) {
        if self.chunk.len() >= CHUNK {
            self.end_chunk();
        }
        self.chunk.extend_from_slice(before.as_bytes());
        self.chunk.extend_from_slice(labels.as_bytes());
    }

    fn end_chunk(&mut self) {
        match &mut self.done {
            Done::Plain(chunks) => {
                let room = Vec::with_capacity(self.chunk.capacity());
                chunks.push(std::mem::replace(&mut self.chunk, room).into());
            }
            Done::Gzip(gzip) => {
                // Writing to memory does not fail.
                gzip.write_all(&self.chunk).ok();
                self.chunk.clear();
            }
        }
    }
}

/// A number as Prometheus writes it, in the value of a label too: there it is text, and other text would be another series.
pub(super) fn float(number: f64) -> String {
    if number != 0.0 && number.abs() < 1e-4 {
        let text = format!("{number:e}");
        // The exponent has two digits.
        return match text.split_once("e-") {
            Some((mantissa, exponent)) if exponent.len() < 2 => format!("{mantissa}e-0{exponent}"),
            _ => text,
        };
    }
    number.to_string()
}

/// Appends a label with its value escaped.
pub(super) fn label(labels: &mut String, name: &str, value: &str) {
    if !labels.is_empty() {
        labels.push(',');
    }
    labels.push_str(name);
    labels.push_str("=\"");
    for character in value.chars() {
        match character {
            '\\' => labels.push_str("\\\\"),
            '"' => labels.push_str("\\\""),
            '\n' => labels.push_str("\\n"),
            other => labels.push(other),
        }
    }
    labels.push('"');
}

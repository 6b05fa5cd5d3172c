//! A page of metrics: what one scrape gets, plain or compressed.

use std::io::Write as _;

use axum::body::Bytes;
use flate2::{Compression, write::GzEncoder};

/// The text format of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// `OpenMetrics` 1.0.
    OpenMetrics,
    /// That of Prometheus from before, which everybody reads.
    Classic,
}

/// How a page is encoded for the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Not at all.
    Identity,
    /// By gzip (RFC 1952).
    Gzip,
}

/// Bytes after which text is handed on: few enough to still be in the processor's cache when it is compressed.
const CHUNK: usize = 256 << 10;

/// A whole page, in pieces.
#[derive(Debug)]
pub struct Page {
    chunks: Vec<Bytes>,
}

impl Page {
    /// Its pieces.
    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks
    }

    /// Its bytes.
    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(Bytes::len).sum()
    }

    /// All of it, if it is not compressed.
    pub fn text(&self) -> String {
        self.chunks.iter().map(|chunk| String::from_utf8_lossy(chunk)).collect()
    }
}

/// Writes a page.
pub(super) struct Writer {
    text: Text,
    waiting: Vec<u8>,
    done: Done,
}

/// Where finished chunks go.
enum Done {
    Plain(Vec<Bytes>),
    Gzip(Box<GzEncoder<Vec<u8>>>),
}

/// What kind of metric a family is of.
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
        Self { text, waiting: Vec::with_capacity(CHUNK + CHUNK / 8), done }
    }

    /// The lines before a family. `name` is without `_total` and `_info`, and with its unit if it has one.
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

    /// A line whose value is a whole number. `before` ends where labels that all lines of a series share begin.
    #[inline]
    pub(super) fn whole(&mut self, before: &str, labels: &str, value: u64) {
        self.begin(before, labels);
        self.waiting.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        self.waiting.push(b'\n');
    }

    /// A line whose value is a time in nanoseconds, told in seconds to the last digit.
    pub(super) fn seconds(&mut self, before: &str, labels: &str, nanoseconds: u128) {
        self.begin(before, labels);
        let (seconds, rest) = (nanoseconds / 1_000_000_000, (nanoseconds % 1_000_000_000) as u32);
        self.waiting.extend_from_slice(itoa::Buffer::new().format(seconds).as_bytes());
        // Nine digits, with a 1 in front of them that is overwritten by the point.
        let point = self.waiting.len();
        self.waiting.extend_from_slice(itoa::Buffer::new().format(1_000_000_000 + rest).as_bytes());
        self.waiting[point] = b'.';
        self.waiting.push(b'\n');
    }

    /// What is text already.
    pub(super) fn text(&mut self, text: &str) {
        self.put(&[text]);
    }

    /// Ends the page.
    pub(super) fn finish(mut self) -> Page {
        if self.text == Text::OpenMetrics {
            self.put(&["# EOF\n"]);
        }
        self.hand_on();
        let chunks = match self.done {
            Done::Plain(chunks) => chunks,
            // It writes to memory, which does not fail.
            Done::Gzip(gzip) => vec![gzip.finish().unwrap_or_default().into()],
        };
        Page { chunks }
    }

    fn put(&mut self, parts: &[&str]) {
        for part in parts {
            self.waiting.extend_from_slice(part.as_bytes());
        }
    }

    #[inline]
    fn begin(&mut self, before: &str, labels: &str) {
        if self.waiting.len() >= CHUNK {
            self.hand_on();
        }
        self.waiting.extend_from_slice(before.as_bytes());
        self.waiting.extend_from_slice(labels.as_bytes());
    }

    fn hand_on(&mut self) {
        match &mut self.done {
            Done::Plain(chunks) => {
                let room = Vec::with_capacity(self.waiting.capacity());
                chunks.push(std::mem::replace(&mut self.waiting, room).into());
            }
            Done::Gzip(gzip) => {
                // It writes to memory, which does not fail.
                gzip.write_all(&self.waiting).ok();
                self.waiting.clear();
            }
        }
    }
}

/// Appends a label to others, its value escaped.
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

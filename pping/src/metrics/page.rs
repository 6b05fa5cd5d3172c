//! A page of metrics: the body of one scrape, plain or compressed.

use std::io::Write as _;

use axum::body::Bytes;
use flate2::{Compression, write::GzEncoder};

/// The format of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFormat {
    /// `OpenMetrics` 1.0.
    OpenMetrics,
    /// The older text format of Prometheus, version 0.0.4.
    Classic,
    /// Messages `io.prometheus.client.MetricFamily`, each after its length. Only this format has native histograms.
    Protobuf,
}

impl PageFormat {
    /// The number of variants.
    pub(super) const COUNT: usize = 3;
}

/// The content encoding of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// None.
    Identity,
    /// gzip (RFC 1952).
    Gzip,
}

impl Encoding {
    /// The number of variants.
    pub(super) const COUNT: usize = 2;
}

/// The size of a chunk, bytes: small enough to still be in the processor's cache when it is compressed.
pub(super) const CHUNK: usize = 256 << 10;

/// A whole page, in chunks.
#[derive(Debug)]
pub struct Page {
    chunks: Vec<Bytes>,
}

impl Page {
    /// Returns the chunks.
    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks
    }

    /// Returns the size, bytes.
    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(Bytes::len).sum()
    }

    /// Returns the text of an uncompressed page in a text format.
    pub fn text(&self) -> String {
        self.chunks.iter().map(|chunk| String::from_utf8_lossy(chunk)).collect()
    }
}

/// Collects what is written into chunks.
pub(super) struct Body {
    /// The chunk in progress.
    chunk: Vec<u8>,
    done: Done,
}

/// The destination of finished chunks.
enum Done {
    Plain(Vec<Bytes>),
    Gzip(Box<GzEncoder<Vec<u8>>>),
}

impl Body {
    pub(super) fn new(encoding: Encoding) -> Self {
        let done = match encoding {
            Encoding::Identity => Done::Plain(Vec::new()),
            Encoding::Gzip => Done::Gzip(GzEncoder::new(Vec::new(), Compression::fast()).into()),
        };
        Self { chunk: Vec::with_capacity(CHUNK + CHUNK / 8), done }
    }

    /// Returns the end of the page, for appending about a line.
    #[inline]
    pub(super) fn end(&mut self) -> &mut Vec<u8> {
        if self.chunk.len() >= CHUNK {
            self.end_chunk();
        }
        &mut self.chunk
    }

    /// Appends bytes. Half a chunk or more is not copied.
    pub(super) fn append(&mut self, bytes: Vec<u8>) {
        if bytes.len() < CHUNK / 2 {
            self.end().extend_from_slice(&bytes);
            return;
        }
        self.end_chunk();
        match &mut self.done {
            Done::Plain(chunks) => chunks.push(bytes.into()),
            // Writing to memory does not fail.
            Done::Gzip(gzip) => drop(gzip.write_all(&bytes)),
        }
    }

    /// Completes the page.
    pub(super) fn finish(mut self) -> Page {
        self.end_chunk();
        let chunks = match self.done {
            Done::Plain(chunks) => chunks,
            // Writing to memory does not fail.
            Done::Gzip(gzip) => vec![gzip.finish().unwrap_or_default().into()],
        };
        Page { chunks }
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

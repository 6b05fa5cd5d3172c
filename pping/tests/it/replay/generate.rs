//! Captures of every shape that pping reads, small enough for the repository.

mod compressed;
mod dialogue;
mod formats;
mod ip;
mod layers;
mod links;
mod pcap;
mod pcapng;
mod sections;
mod tcp;
mod times;
mod tunnels;

/// A capture of the folder `golden`.
pub(super) struct Golden {
    pub(super) name: String,
    /// The file of its samples, but for the ending. Several captures may have the same.
    pub(super) samples: String,
    /// The kind of tunnels in it, which are looked into in a second reading.
    pub(super) decap: Option<&'static str>,
    pub(super) bytes: Vec<u8>,
}

impl Golden {
    fn new(name: &str, bytes: Vec<u8>) -> Self {
        let (samples, _) = name.split_once('.').unwrap_or((name, ""));
        Self { name: name.to_owned(), samples: samples.to_owned(), decap: None, bytes }
    }

    /// It has the samples of another.
    fn with_samples(self, samples: &str) -> Self {
        Self { samples: samples.to_owned(), ..self }
    }
}

/// A frame of a capture. Where the capture has less of it than there was, `bytes` is cut and `len` is not.
#[derive(Clone)]
struct Frame {
    /// Nanoseconds since 1970.
    at: u64,
    len: usize,
    bytes: Vec<u8>,
}

impl Frame {
    fn cut(mut self, captured: usize) -> Self {
        self.bytes.truncate(captured);
        self
    }
}

/// All captures.
pub(super) fn all() -> Vec<Golden> {
    [
        formats::captures(),
        sections::captures(),
        links::captures(),
        layers::captures(),
        tunnels::captures(),
        ip::captures(),
        tcp::captures(),
        times::captures(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

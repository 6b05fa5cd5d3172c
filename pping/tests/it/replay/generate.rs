//! Captures of everything that pping can read, small enough for the repository.

pub(super) mod again;
mod compressed;
mod dialogue;
pub(super) mod forged;
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

/// A capture in the folder `golden`.
pub(super) struct Golden {
    pub(super) name: String,
    /// The name of the file with its samples, without extension. Several captures may share a file.
    pub(super) samples: String,
    /// The kind of tunnels in the capture. A second reading parses them.
    pub(super) decap: Option<&'static str>,
    pub(super) bytes: Vec<u8>,
}

impl Golden {
    fn new(name: &str, bytes: Vec<u8>) -> Self {
        let (samples, _) = name.split_once('.').unwrap_or((name, ""));
        Self { name: name.to_owned(), samples: samples.to_owned(), decap: None, bytes }
    }

    /// Sets another capture whose samples this one shares.
    fn with_samples(self, samples: &str) -> Self {
        Self { samples: samples.to_owned(), ..self }
    }
}

/// A frame of a capture. If the capture cut it, `bytes` is shorter than `len`.
#[derive(Clone)]
struct Frame {
    /// In ns since 1970.
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

//! What measuring a packet comes to.

use crate::method::Method;

/// One round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// How it was measured.
    pub method: Method,
    /// What was echoed: the `TSval`, or a sequence number.
    pub identifier: u32,
    /// From the recording to the echo, ns.
    pub rtt: u64,
    /// The part of it beyond the host that replied, ns, where the method tells; else 0.
    pub side_rtt: u64,
}

/// What a packet matched and recorded. Flat, as [`crate::parse::Frame`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Whether it echoed something that waited.
    pub has_sample: bool,
    /// The sample, if it did.
    pub sample: Sample,
    /// It should have been recorded, but all slots wait.
    pub pending_full: bool,
}

impl Measured {
    /// Neither.
    pub const NOTHING: Self = Self {
        has_sample: false,
        sample: Sample { method: Method::TcpTs, identifier: 0, rtt: 0, side_rtt: 0 },
        pending_full: false,
    };

    /// The sample, if there is one.
    pub fn sample(&self) -> Option<Sample> {
        self.has_sample.then_some(self.sample)
    }
}

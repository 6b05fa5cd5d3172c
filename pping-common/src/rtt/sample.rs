//! Samples, and the outcome of measuring a packet.

use crate::method::Method;

/// One round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The method.
    pub method: Method,
    /// The identifier that was echoed: a `TSval`, a sequence number, or that of another method.
    pub identifier: u32,
    /// From the recording to the echo, ns.
    pub rtt: u64,
    /// The part of the RTT on the side of the host that replied, ns; 0 if the method does not measure it.
    pub side_rtt: u64,
}

/// The outcome of measuring a packet: its sample, and what was given up. Flat like [`crate::parse::Frame`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact that is counted by itself")]
pub struct Measured {
    /// Whether the packet gave a sample.
    pub has_sample: bool,
    /// The sample, if `has_sample`.
    pub sample: Sample,
    /// True if there was no room: the packet was not recorded, or, among echo requests, an earlier one was given up.
    pub pending_full: bool,
    /// True if an earlier packet gave way: it had waited for long, or a later one had been answered.
    pub gave_way: bool,
    /// True if the packet is an echo request that was recorded, and was not pending before.
    pub asked: bool,
    /// True if the packet answered a pending echo request, whether or not it gave a sample.
    pub answered: bool,
    /// True if an earlier echo request was given up although its reply could still come.
    pub not_awaited: bool,
    /// True if the packet was not recorded because it goes to an address of this host.
    pub to_this_host: bool,
}

impl Measured {
    /// No sample and no recording.
    pub const NOTHING: Self = Self {
        has_sample: false,
        sample: Sample { method: Method::TcpTs, identifier: 0, rtt: 0, side_rtt: 0 },
        pending_full: false,
        gave_way: false,
        asked: false,
        answered: false,
        not_awaited: false,
        to_this_host: false,
    };

    /// The sample, if there is one.
    pub fn sample(&self) -> Option<Sample> {
        self.has_sample.then_some(self.sample)
    }
}

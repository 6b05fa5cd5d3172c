//! The plan of one pass over a packet: what its echo frees, and what it records.

use crate::method::Method;

/// A segment is measured by timestamps and by sequence numbers one after the other where both are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// All that is wanted but for the second.
    First,
    /// Sequence numbers, where timestamps had the first.
    Second,
}

/// What is to be done about a packet, and then what was found. Flat, as [`crate::parse::Frame`] is.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Work {
    /// Since when that waited which the packet echoes, ns; 0 when it echoes nothing.
    pub(super) since: u64,
    /// When what it echoes was seen on its way to the host that replied, ns; 0 when nobody knows.
    pub(super) turned: u64,
    /// What of the sender's own may be ambiguous now: from `pivot` on to so much above it.
    pub(crate) span: u64,
    /// What was found: the identifier of the sample.
    pub(super) found: u32,
    /// What the packet echoes.
    pub(crate) echoed: u32,
    /// What waits for so much less than `echoed`, modulo 2^32, is freed: 0 for nothing, 1 for what is equal.
    pub(crate) reach: u32,
    /// The nearest of what waits for so much less gives a sample.
    pub(crate) gives: u32,
    /// See `span`.
    pub(super) pivot: u32,
    /// What is to wait for its echo,
    pub(crate) identifier: u32,
    /// if this is not 0.
    pub(crate) records: u32,
    /// Whether the packet replied to a leg of a handshake: not 0 if it did.
    pub(crate) replied: u32,
    /// How a sample is measured.
    pub(crate) method: Method,
    /// Fills up to a multiple of 8.
    reserved: [u8; 3],
}

impl Work {
    /// Nothing.
    pub const NOTHING: Self = Self {
        since: 0,
        turned: 0,
        span: 0,
        found: 0,
        echoed: 0,
        reach: 0,
        gives: 0,
        pivot: 0,
        identifier: 0,
        records: 0,
        replied: 0,
        method: Method::TcpTs,
        reserved: [0; 3],
    };

    /// Begins a pass. What the first one replied to is known to the second.
    #[inline(always)]
    pub(crate) fn begin(&mut self, pass: Pass) {
        let replied = if pass == Pass::First { 0 } else { self.replied };
        *self = Self { replied, ..Self::NOTHING };
    }
}

/// What the steps could change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Nothing,
    /// The newest `TSval`, and that something waits for its echo, unless no recording is allowed.
    Tsval,
    /// That something waits for its acknowledgement, unless no recording is allowed.
    Sequence,
    /// More than that.
    Anything,
}

//! The plan of one pass over a packet: what its echo frees, and what it records.

use crate::method::Method;

/// A pass over a packet. A TCP segment that is measured by both its timestamps and its sequence numbers takes two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// All methods, except sequence numbers if timestamps come first.
    First,
    /// Sequence numbers, after timestamps.
    Second,
}

/// The plan of a pass: which pending identifiers the packet frees, which of them gives a sample, and what the packet
/// records. Flat like [`crate::parse::Frame`], for the verifier.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MatchPlan {
    /// When the identifier that gives the sample was recorded, ns; 0 for no sample.
    pub(crate) recorded_at: u64,
    /// When the other direction answered in between, ns; 0 if unknown. It splits the RTT at this host.
    pub(crate) midpoint_at: u64,
    /// How many of the sender's identifiers, from `voided_from` on, the packet makes ambiguous.
    pub(crate) voided_span: u64,
    /// The identifier of the sample.
    pub(crate) matched: u32,
    /// The identifier that the packet echoes.
    pub(crate) echoed: u32,
    /// Pending identifiers that lie less than this below `echoed`, modulo 2^32, are freed: 0 frees none, 1 only an equal
    /// one.
    pub(crate) freed_below: u32,
    /// Among the freed identifiers that lie less than this below `echoed`, the nearest gives the sample.
    pub(crate) sample_below: u32,
    /// The first ambiguous identifier, see `voided_span`.
    pub(crate) voided_from: u32,
    /// The identifier to record.
    pub(crate) identifier: u32,
    /// Not 0 if `identifier` is to be recorded.
    pub(crate) should_record: u32,
    /// Not 0 if the packet completed a leg of a handshake.
    pub(crate) completes_leg: u32,
    /// The method of a sample.
    pub(crate) method: Method,
    /// Not 0 if the packet may be a copy of the one that was recorded, which makes nothing ambiguous.
    pub(crate) may_be_copy: u8,
    /// Not 0 if the packet was sent before and was still pending: it takes the place of the pending timestamp.
    pub(crate) renews: u8,
    /// Not 0 if the packet answers a pending echo request, whether or not that gives a sample.
    pub(crate) answers: u8,
    /// Not 0 if the packet would be recorded, but goes to an address of this host.
    pub(crate) to_this_host: u8,
    /// Not 0 if the packet asks for a reply by the leg of a handshake that it begins.
    pub(crate) asks_by_leg: u8,
    /// Fills up to a multiple of 8.
    reserved: [u8; 2],
}

impl MatchPlan {
    /// A plan that frees and records nothing.
    pub const NOTHING: Self = Self {
        recorded_at: 0,
        midpoint_at: 0,
        voided_span: 0,
        matched: 0,
        echoed: 0,
        freed_below: 0,
        sample_below: 0,
        voided_from: 0,
        identifier: 0,
        should_record: 0,
        completes_leg: 0,
        method: Method::TcpTs,
        may_be_copy: 0,
        renews: 0,
        answers: 0,
        to_this_host: 0,
        asks_by_leg: 0,
        reserved: [0; 2],
    };

    /// Whether the packet is to be recorded, unless a limit forbids it.
    #[inline(always)]
    pub fn records(&self) -> bool {
        self.should_record != 0
    }

    /// Clears the plan for a pass. The second pass still knows whether the first completed a leg.
    #[inline(always)]
    pub(crate) fn begin(&mut self, pass: Pass) {
        let completes_leg = if pass == Pass::First { 0 } else { self.completes_leg };
        *self = Self { completes_leg, ..Self::NOTHING };
    }
}

/// What a packet may change in its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PossibleChange {
    /// Nothing.
    Nothing,
    /// The newest `TSval`, and its recording unless the rate limit forbids it.
    Tsval,
    /// A recording of a sequence number, unless the rate limit forbids it.
    Sequence,
    /// Anything else: a match, or an opening or closing.
    Anything,
}

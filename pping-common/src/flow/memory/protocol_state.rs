//! What is known of a flow's protocol, in one byte.

use crate::{
    flow::key::Endpoint,
    layout::layout,
    rtt::{SpinTrust, TimestampOption},
};

/// What is known of a flow's protocol. TCP: whether segments carry timestamps that can be used, and what speaks against it.
/// UDP: whether the flow is QUIC, and how far its spin bits are trusted.
///
/// The two lowest bits of TCP are the [`TimestampOption`]. While it is unknown, the others count segments without
/// timestamps. Then each endpoint has a count of segments in a row without a usable timestamp (two bits), and a bit that
/// says whether its clock was seen to move. Once timestamps are given up, that bit says whether the endpoint's are at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct ProtocolState(pub u8);

layout!(ProtocolState { 0 });

impl ProtocolState {
    /// Nothing is known yet.
    pub const UNKNOWN: Self = Self(0);

    /// Whether the segments of the flow carry timestamps that can be used.
    #[inline(always)]
    pub fn timestamps(self) -> TimestampOption {
        TimestampOption(self.0 & 3)
    }

    const LACKING_SHIFT: u8 = 2;
    const LACKING: u8 = 3;
    const CLOCK_SHIFT: u8 = 6;

    /// Replaces the first, and clears all else.
    #[inline(always)]
    pub(in crate::flow) fn set_timestamps(&mut self, option: TimestampOption) {
        self.0 = option.0;
    }

    /// Gives timestamps up: those of `endpoint` cannot be used.
    #[inline(always)]
    pub(in crate::flow) fn give_up_timestamps(&mut self, endpoint: Endpoint) {
        self.0 = TimestampOption::UNUSABLE.0 | Self::clock(endpoint);
    }

    #[inline(always)]
    fn clock(endpoint: Endpoint) -> u8 {
        1 << Self::CLOCK_SHIFT << endpoint as u8
    }

    /// Whether timestamps were given up because of this endpoint's.
    #[inline(always)]
    pub fn has_unusable(self, endpoint: Endpoint) -> bool {
        self.timestamps() == TimestampOption::UNUSABLE && self.0 & Self::clock(endpoint) != 0
    }

    /// Whether nothing speaks against the timestamps of an endpoint of a flow with timestamps.
    #[inline(always)]
    pub(in crate::flow) fn is_settled(self, endpoint: Endpoint) -> bool {
        self.has_moved(endpoint) && self.lacking(endpoint) == 0
    }

    /// Whether the clock of an endpoint of a flow with timestamps was seen to move.
    #[inline(always)]
    pub(in crate::flow) fn has_moved(self, endpoint: Endpoint) -> bool {
        self.0 & Self::clock(endpoint) != 0
    }

    #[inline(always)]
    pub(in crate::flow) fn set_moved(&mut self, endpoint: Endpoint, has_moved: bool) {
        self.0 = self.0 & !Self::clock(endpoint) | if has_moved { Self::clock(endpoint) } else { 0 };
    }

    /// How many segments in a row of an endpoint lacked a usable timestamp, in a flow with timestamps.
    #[inline(always)]
    pub(in crate::flow) fn lacking(self, endpoint: Endpoint) -> u8 {
        self.0 >> (Self::LACKING_SHIFT + 2 * endpoint as u8) & Self::LACKING
    }

    #[inline(always)]
    pub(in crate::flow) fn set_lacking(&mut self, endpoint: Endpoint, segments: u8) {
        let shift = Self::LACKING_SHIFT + 2 * endpoint as u8;
        self.0 = self.0 & !(Self::LACKING << shift) | segments << shift;
    }

    /// Counts a segment without timestamps while it is unknown whether the flow has them. Returns the number of such
    /// segments.
    #[inline(always)]
    pub(in crate::flow) fn count_without_timestamps(&mut self) -> u8 {
        self.0 = self.0.wrapping_add(1 << 2);
        self.0 >> 2
    }

    /// Whether the flow is QUIC, and how far its spin bits are trusted.
    #[inline(always)]
    pub fn spin_trust(self) -> SpinTrust {
        SpinTrust(self.0)
    }

    #[inline(always)]
    pub(in crate::flow) fn set_spin_trust(&mut self, trust: SpinTrust) {
        self.0 = trust.0;
    }
}

//! How often timestamps are recorded.

use super::Methods;
use crate::flow::FlowDirection;

/// Which RTT of a flow direction `--rtt-rate` multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Basis {
    /// The smoothed one.
    Smoothed,
    /// The lowest one.
    Min,
}

/// What the user asked for, fixed when the programs are loaded.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Rules {
    /// Nanoseconds between two recordings of a flow direction; 0 is no limit.
    pub rate_limit: u64,
    /// RTTs between two recordings of a flow direction, in units of 2^-16; 0 is no limit.
    pub rtt_rate: u64,
    /// Which RTT `rtt_rate` counts in.
    pub rtt_basis: Basis,
    /// Whether packets to this host itself are timed.
    pub include_local: bool,
    /// Fills up to a multiple of 8.
    pub reserved: u8,
    /// How to measure.
    pub methods: Methods,
}

impl Rules {
    /// No limit, all methods, and packets to this host left out.
    pub const UNLIMITED: Self = Self {
        rate_limit: 0,
        rtt_rate: 0,
        rtt_basis: Basis::Smoothed,
        include_local: false,
        reserved: 0,
        methods: Methods::ALL,
    };

    /// Whether `direction` may not record before `end`, and not at it either.
    #[inline(always)]
    pub(crate) fn forbid(&self, direction: &FlowDirection, end: u64) -> bool {
        direction.recorded_at != 0 && end.saturating_sub(direction.recorded_at) < self.rate_limit
    }

    /// Whether `direction` may record at `now`. The stricter limit wins.
    #[inline(always)]
    pub(super) fn allow(&self, direction: &FlowDirection, now: u64) -> bool {
        let since = now.saturating_sub(direction.recorded_at);
        // At the same moment: what is measured by two methods is recorded for both.
        if direction.recorded_at == 0 || self.methods.has_both() && direction.recorded_at == now {
            return true;
        }
        if since < self.rate_limit {
            return false;
        }
        if self.rtt_rate == 0 || direction.min_rtt == FlowDirection::NO_RTT {
            return true;
        }
        let rtt = match self.rtt_basis {
            Basis::Smoothed => direction.smoothed_rtt,
            Basis::Min => direction.min_rtt,
        };
        // RTTs beyond 2^40 ns (18 minutes) count as that, so that the product stays in range.
        let rtt = if rtt < 1 << 40 { rtt } else { 1 << 40 };
        since >= (rtt * (self.rtt_rate & 0x00ff_ffff)) >> 16
    }
}

const _: () = assert!(size_of::<Rules>() == 24);

//! The rules of measuring: methods, and limits on recording.

use crate::{
    limits::{COPY_WITHIN, STILL_CLOCK},
    method::Methods,
};

/// Which RTT of a flow direction `--rtt-rate` multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RttBasis {
    /// The smoothed RTT.
    Smoothed,
    /// The lowest RTT.
    Min,
}

/// The user's options for measuring, fixed when the programs are loaded.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Rules {
    /// Nanoseconds between two recordings of a flow direction; 0 is no limit.
    pub rate_limit: u64,
    /// RTTs between two recordings of a flow direction, in units of 2^-16; 0 is no limit.
    pub rtt_rate: u64,
    /// Nanoseconds within which a segment that passes again is a copy; 0 if none is.
    pub copy_within: u64,
    /// Nanoseconds for which the clock behind the timestamps of an end may stand still.
    pub still_clock: u64,
    /// Which RTT `rtt_rate` multiplies.
    pub rtt_basis: RttBasis,
    /// Whether packets to addresses of this host are timed.
    pub include_local: bool,
    /// Fills up to a multiple of 8.
    pub reserved: u8,
    /// The methods to measure with.
    pub methods: Methods,
}

impl Rules {
    /// No limits, all methods, and packets to this host not timed.
    pub const UNLIMITED: Self = Self {
        rate_limit: 0,
        rtt_rate: 0,
        copy_within: COPY_WITHIN,
        still_clock: STILL_CLOCK,
        rtt_basis: RttBasis::Smoothed,
        include_local: false,
        reserved: 0,
        methods: Methods::ALL,
    };

    /// Nanoseconds within which a segment that passes again is a copy, for a flow direction with these RTTs. A retransmission
    /// for want of an acknowledgement takes at least the lowest RTT.
    #[inline(always)]
    pub(crate) fn copy_within(&self, rtt: &RttSummary) -> u64 {
        if rtt.min < self.copy_within { rtt.min } else { self.copy_within }
    }

    /// Whether a flow direction may record at `now`. The stricter limit wins.
    #[inline(always)]
    pub(crate) fn allow(&self, rtt: &RttSummary, now: u64) -> bool {
        let since = now.saturating_sub(rtt.recorded_at);
        // A segment that is measured by two methods is recorded for both at the same time.
        if rtt.recorded_at == 0 || self.methods.has_both() && rtt.recorded_at == now {
            return true;
        }
        if since < self.rate_limit {
            return false;
        }
        if self.rtt_rate == 0 || rtt.min == RttSummary::NO_RTT {
            return true;
        }
        let basis = match self.rtt_basis {
            RttBasis::Smoothed => rtt.smoothed,
            RttBasis::Min => rtt.min,
        };
        // RTTs are capped at 2^40 ns (18 minutes), so that the product stays in range.
        let basis = if basis < 1 << 40 { basis } else { 1 << 40 };
        since >= (basis * (self.rtt_rate & 0x00ff_ffff)) >> 16
    }
}

/// The RTTs of the packets that one endpoint sends, and its last recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttSummary {
    /// When the last identifier was recorded, ns; 0 before the first.
    pub recorded_at: u64,
    /// The lowest RTT, ns; [`RttSummary::NO_RTT`] before the first.
    pub min: u64,
    /// The smoothed RTT (RFC 6298, 2), ns; 0 before the first.
    pub smoothed: u64,
}

impl RttSummary {
    /// The value of `min` before the first sample. It is not 0, because a capture with a coarse clock has RTTs of 0.
    pub const NO_RTT: u64 = u64::MAX;

    /// Nothing was recorded yet.
    pub const EMPTY: Self = Self { recorded_at: 0, min: Self::NO_RTT, smoothed: 0 };

    /// Adds a sample, ns.
    #[inline(always)]
    pub(crate) fn take_sample(&mut self, rtt: u64) {
        // RFC 6298, 2: the first sample counts as it is, each later one moves the smoothed RTT by 1/8 of the difference.
        self.smoothed = match self.min {
            Self::NO_RTT => rtt,
            _ => self.smoothed - self.smoothed / 8 + rtt / 8,
        };
        if rtt < self.min {
            self.min = rtt;
        }
    }
}

const _: () = {
    assert!(size_of::<Rules>() == 40);
};

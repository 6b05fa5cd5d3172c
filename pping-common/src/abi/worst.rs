//! The flow directions that the sweep reports as candidates for the worst.

use super::{Endpoints, SeriesSelector};
use crate::{
    flow::{Endpoint, FlowKey},
    layout::listed,
    method::Method,
    parse::Address,
    rtt::RttSummary,
    series::{SeriesRef, Traffic},
};

listed! {
    /// A figure that flow directions are ranked by.
    pub enum Figure {
        /// The smoothed RTT, ns.
        Rtt,
        /// How far the smoothed RTT is above the flow direction's lowest RTT, ns.
        Inflation,
        /// TCP segments retransmitted, in millionths of all packets that the endpoint sent.
        Retransmissions,
        /// Bytes above the transport header that the endpoint sent since the last sweep.
        Bytes,
    }
}

impl Figure {
    /// The number of figures.
    pub const COUNT: usize = Self::ALL.len();
}

/// 100 % in [`Figure::Retransmissions`].
pub const MILLION: u64 = 1_000_000;

/// The threshold: what a flow direction has to exceed to be a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Threshold {
    /// The value to exceed, by [`Figure`].
    pub above: [u64; Figure::COUNT],
    /// The number of packets that each endpoint must have sent; 0 if no candidates are wanted.
    pub packets: u64,
}

impl Threshold {
    /// No candidates.
    pub const NONE: Self = Self { above: [u64::MAX; Figure::COUNT], packets: 0 };

    /// Whether any figure exceeds the threshold.
    #[inline(always)]
    pub fn is_exceeded(&self, figures: &[u64; Figure::COUNT]) -> bool {
        figures[0] > self.above[0]
            || figures[1] > self.above[1]
            || figures[2] > self.above[2]
            || figures[3] > self.above[3]
    }
}

/// A flow direction that may be among the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Candidate {
    /// The two ends; the packets of `destination` are timed.
    pub endpoints: Endpoints,
    /// The values by [`Figure`]; 0 if there is none.
    pub figures: [u64; Figure::COUNT],
    /// The lowest RTT, ns; [`RttSummary::NO_RTT`] if there is none.
    pub min_rtt: u64,
    /// Packets that the endpoint has sent so far.
    pub packets: u64,
    /// The series of its samples.
    pub series: SeriesRef,
    /// The [`Method`] as a number.
    pub method: u8,
    /// The number of the [`Direction`](crate::parse::Direction) that matches.
    pub direction: u8,
    /// Fills up to a multiple of 8.
    pub reserved: [u8; 6],
}

impl Candidate {
    /// Creates the candidate for the flow direction whose sender is `timed`. `figures` are those of [`Self::figures`].
    #[inline(always)]
    pub fn new<A: Address>(
        (key, timed): (&FlowKey<A>, Endpoint),
        figures: [u64; Figure::COUNT],
        min_rtt: u64,
        packets: u64,
        series: SeriesRef,
        selector: &SeriesSelector,
    ) -> Self {
        Self {
            endpoints: Endpoints::of_flow(key, timed),
            figures,
            min_rtt,
            packets,
            series,
            method: selector.method,
            direction: selector.direction,
            reserved: [0; 6],
        }
    }

    /// Returns the figures of a flow direction, from its lowest and smoothed RTT, its packets and retransmissions so far,
    /// and its traffic since the last sweep.
    #[inline(always)]
    pub fn figures(
        method: u8,
        (min, smoothed): (u64, u64),
        (packets, retransmissions): (u64, u32),
        since: &Traffic,
    ) -> [u64; Figure::COUNT] {
        let has_rtt = min != RttSummary::NO_RTT && Self::has_rtts(method);
        let (rtt, inflation) = if has_rtt { (smoothed, smoothed.saturating_sub(min)) } else { (0, 0) };
        [rtt, inflation, Self::share(retransmissions.into(), packets), since.bytes]
    }

    /// Whether RTTs of this method are those of the network. Those of spin bits are not: pauses of an application
    /// lengthen them.
    #[inline(always)]
    pub fn has_rtts(method: u8) -> bool {
        method != Method::QuicSpin as u8
    }

    /// The share of retransmissions, in millionths.
    #[inline(always)]
    pub fn share(retransmissions: u64, packets: u64) -> u64 {
        // The sweep counts packets a moment before it reads the retransmissions.
        (retransmissions.min(packets) * MILLION).checked_div(packets).unwrap_or(0)
    }
}

const _: () = {
    assert!(size_of::<Threshold>() == 40);
    assert!(size_of::<Candidate>() == 104);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_of_the_flow_and_of_the_last_second() {
        let since = Traffic { packets: 2, bytes: 1500, retransmissions: 1, ce: 0 };
        let figures = |method: Method, rtts| Candidate::figures(method as u8, rtts, (200, 3), &since);
        assert_eq!(figures(Method::TcpTs, (20, 50)), [50, 30, 15_000, 1500]);
        assert_eq!(figures(Method::TcpTs, (RttSummary::NO_RTT, 0)), [0, 0, 15_000, 1500]);
        assert_eq!(figures(Method::QuicSpin, (20, 50)), [0, 0, 15_000, 1500]);
        assert_eq!(Candidate::figures(0, (20, 50), (0, 0), &Traffic::default()), [50, 30, 0, 0]);
    }

    #[test]
    fn one_figure_that_exceeds_the_bar_is_enough() {
        let threshold = Threshold { above: [10, 20, 30, 40], packets: 1 };
        assert!(!threshold.is_exceeded(&[10, 20, 30, 40]));
        for figure in Figure::ALL.map(|figure| figure as usize) {
            let mut figures = [0; Figure::COUNT];
            figures[figure] = threshold.above[figure] + 1;
            assert!(threshold.is_exceeded(&figures));
        }
        assert!(!Threshold::NONE.is_exceeded(&[u64::MAX; Figure::COUNT]));
    }
}

//! A flow direction among the worst.

use std::sync::Arc;

use pping_common::abi::{Candidate, Figure, MILLION};

use super::ranking::Ranked;
use crate::membership::Membership;

/// A flow direction among the worst, with its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorstFlow {
    /// The flow direction with its figures, as the sweep reported it.
    pub candidate: Candidate,
    /// The interface, if it has a name.
    pub interface: Option<Arc<str>>,
    /// What its series says of the host that replies.
    pub of: Membership,
}

/// The RTTs of a flow direction, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRtts {
    /// The smoothed RTT.
    pub smoothed: u64,
    /// The lowest RTT.
    pub min: u64,
    /// The difference of the two.
    pub inflation: u64,
}

impl WorstFlow {
    /// The RTTs; `None` without samples, and for spin bits.
    pub fn rtts(&self) -> Option<FlowRtts> {
        let Candidate { figures: [smoothed, inflation, ..], min_rtt: min, .. } = self.candidate;
        (smoothed > 0).then_some(FlowRtts { smoothed, min, inflation })
    }

    /// The share of packets that were retransmitted.
    pub fn retransmissions(&self) -> f64 {
        from_millionths(self.candidate.figures[Figure::Retransmissions as usize])
    }
}

/// Converts millionths to a share.
pub fn from_millionths(millionths: u64) -> f64 {
    millionths as f64 / MILLION as f64
}

impl Ranked for WorstFlow {
    fn figures(&self) -> &[u64; Figure::COUNT] {
        self.candidate.figures()
    }

    fn is_same(&self, other: &Self) -> bool {
        self.candidate.is_same(&other.candidate)
    }
}

//! The worst flows and groups: see docs/groups.md.

mod by;
mod flow;
mod group;
mod hosts;
mod ranking;

pub use self::{
    by::By,
    flow::{FlowRtts, WorstFlow, from_millionths},
    group::{EXPECTED_RTT, MeasuredGroup, expected_rtt},
    hosts::Hosts,
    ranking::{Ranked, Ranking},
};

/// The highest number of the worst that a screen can show.
pub const MAX_SHOWN: usize = 100;

/// The default minimum to be among the worst: packets that each end of a flow has sent, or samples or packets of a group.
pub const DEFAULT_MIN_SAMPLES: u64 = 20;

//! The worst flows and groups: see docs/worst.md.

mod by;
mod flow;
mod group;
mod hosts;
mod ranking;

pub use self::{
    by::By,
    flow::{FlowRtts, WorstFlow, share},
    group::{EXPECTED_RTT, Measured, expected_rtt},
    hosts::Hosts,
    ranking::{Ranked, Ranking},
};

/// How many of the worst screens can have.
pub const SHOWN: usize = 100;

/// The evidence unless set otherwise: the packets that both ends of a flow have to have sent, or the samples or packets of a group, for it
/// to be among the worst.
pub const EVIDENCE: u64 = 20;

//! The records of the worst flows and groups of an interval.

use std::sync::Arc;

use pping_common::{abi::Figure, method::Method, parse::Direction};
use serde::Serialize;

use super::tuple::Tuple;
use crate::{
    labels::{serialize_is_egress, serialize_method},
    worst::{By, WorstFlow},
};

/// The rank of a record among the worst of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rank {
    /// The end of the interval, ns since the Unix epoch.
    pub timestamp: u64,
    /// The length of the interval, ns.
    pub window: u64,
    /// The figure of the ranking.
    pub worst: By,
    /// The rank, from 1 for the worst.
    pub rank: usize,
}

/// A flow direction among the worst of an interval, at the moment when its ranked figure was highest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorstFlowRecord {
    /// The rank.
    #[serde(flatten)]
    pub rank: Rank,
    /// The flow direction.
    #[serde(flatten)]
    pub tuple: Tuple,
    /// The smoothed RTT, ns; `None` without samples, and for spin bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoothed_rtt: Option<u64>,
    /// The lowest RTT, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rtt: Option<u64>,
    /// The difference of the two, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inflation: Option<u64>,
    /// The share of its packets that `dest_ip` retransmitted.
    pub retransmission_ratio: f64,
    /// Packets that `dest_ip` sent since the flow began.
    pub sent_packets: u64,
    /// Bytes of payload that it sent in the second before that moment; in a capture, in the interval.
    pub bytes: u64,
    /// The method.
    #[serde(serialize_with = "serialize_method")]
    pub method: Method,
    /// The direction in which echoes pass the interface, if known.
    #[serde(
        rename = "match_on_egress",
        serialize_with = "serialize_is_egress",
        skip_serializing_if = "Option::is_none"
    )]
    pub matched: Option<Direction>,
    /// The interface, if it has a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<Arc<str>>,
    /// The label of the group, if it is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Arc<str>>,
}

/// A group among the worst of an interval, with the series that put it there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorstGroupRecord {
    /// The rank.
    #[serde(flatten)]
    pub rank: Rank,
    /// The label of the group.
    pub group: Arc<str>,
    /// The number of samples.
    pub count: u64,
    /// The estimated number of hosts that replied; `None` without groups or without samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<u64>,
    /// The 95th percentile, ns, if there are enough samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95: Option<u64>,
    /// The RTT that ranks the group, ns: the percentile, limited to an RTT that enough hosts had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranked_rtt: Option<u64>,
    /// The RTT that it is compared with, ns: the expected RTT of the group, or else the lowest of the interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<u64>,
    /// The excess of the ranked RTT over the baseline, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inflation: Option<u64>,
    /// The share of packets of both sides that were retransmitted; `None` with too few packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmission_ratio: Option<f64>,
    /// Bytes of payload of both sides.
    pub bytes: u64,
    /// The method.
    #[serde(serialize_with = "serialize_method")]
    pub method: Method,
    /// The direction in which echoes passed the interface, if known.
    #[serde(
        rename = "match_on_egress",
        serialize_with = "serialize_is_egress",
        skip_serializing_if = "Option::is_none"
    )]
    pub matched: Option<Direction>,
    /// The interface, if it has a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<Arc<str>>,
}

impl WorstFlowRecord {
    /// The record of a flow direction; `None` for one that pping's programs do not report.
    pub(super) fn new(flow: &WorstFlow, rank: Rank) -> Option<Self> {
        let candidate = &flow.candidate;
        let rtts = flow.rtts();
        Some(Self {
            rank,
            tuple: Tuple::new(&candidate.endpoints)?,
            smoothed_rtt: rtts.map(|rtts| rtts.smoothed),
            min_rtt: rtts.map(|rtts| rtts.min),
            inflation: rtts.map(|rtts| rtts.inflation),
            retransmission_ratio: flow.retransmissions(),
            sent_packets: candidate.packets,
            bytes: candidate.figures[Figure::Bytes as usize],
            method: Method::from_number(candidate.method)?,
            matched: Direction::from_number(candidate.direction),
            interface: flow.interface.clone(),
            group: flow.group.clone(),
        })
    }
}

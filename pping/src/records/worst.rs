//! The records of the worst flows and groups of an interval.

use std::sync::Arc;

use pping_common::{abi::Figure, group::Side, method::Method, parse::Direction};
use serde::Serialize;

#[cfg(test)]
use super::schema;
use super::tuple::Tuple;
#[cfg(test)]
use crate::schemas;
use crate::{
    labels::{serialize_is_egress, serialize_method, serialize_side},
    worst::{By, WorstFlow},
};

/// The rank of a record among the worst of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Rank {
    /// When the interval ended, ns since the Unix epoch.
    pub timestamp: u64,
    /// Length of the interval, ns.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub window: u64,
    /// Figure that ranks the flows or groups.
    pub worst: By,
    /// Rank; 1 is the worst. Flows, groups and each level of the tree of groups are ranked separately.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub rank: usize,
}

/// One of the worst flow directions of an interval (`--worst` with `--aggregate`). Its figures are those of the second in which
/// the figure that ranks it (`worst`) was highest; for a capture, those at the end of the interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(transform = schema::begin(Self::TYPE)))]
#[cfg_attr(test, schemars(extend("dependentRequired" = { "smoothed_rtt": ["min_rtt", "inflation"] })))]
pub struct WorstFlowRecord {
    /// The rank.
    #[serde(flatten)]
    pub rank: Rank,
    /// The flow direction.
    #[serde(flatten)]
    pub tuple: Tuple,
    /// Smoothed RTT (RFC 6298), ns; absent without samples, and with the method `quic-spin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoothed_rtt: Option<u64>,
    /// Lowest RTT so far, ns; absent without `smoothed_rtt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rtt: Option<u64>,
    /// Excess of `smoothed_rtt` over `min_rtt`, ns; absent without `smoothed_rtt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inflation: Option<u64>,
    /// Share of the packets from `dest_ip` that were retransmissions, since the flow began.
    #[cfg_attr(test, schemars(range(max = 1)))]
    pub retransmission_ratio: f64,
    /// Packets that `dest_ip` sent since the flow began.
    pub sent_packets: u64,
    /// Bytes of payload that `dest_ip` sent in the second in which the figure that ranks the flow was highest; for a capture, in
    /// the interval. Only in the ranking by `bytes` is this its busiest second.
    pub bytes: u64,
    /// Method that measured the RTTs (docs/methods.md).
    #[serde(serialize_with = "serialize_method")]
    #[cfg_attr(test, schemars(with = "schemas::MethodName"))]
    pub method: Method,
    /// Direction in which echoes pass the interface: true for egress. Absent if the capture has no directions.
    #[serde(
        rename = "match_on_egress",
        serialize_with = "serialize_is_egress",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(test, schemars(with = "Option<bool>"))]
    pub matched: Option<Direction>,
    /// Side of the network that the host that replies is on; absent without `--inside`.
    #[serde(serialize_with = "serialize_side", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<schemas::SideName>"))]
    pub side: Option<Side>,
    /// Name of the interface; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<schemas::InterfaceName>"))]
    pub interface: Option<Arc<str>>,
    /// Label of the group; absent without groups, or if the flow is in none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub group: Option<Arc<str>>,
}

/// One of the worst groups of an interval (`--worst` with `--aggregate`), or of the worst nodes of a level, with the interface, method and direction in which it is
/// worst.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(transform = schema::begin(Self::TYPE)))]
#[cfg_attr(test, schemars(extend("dependentRequired" = { "p95": ["ranked_rtt", "baseline", "inflation"] })))]
#[cfg_attr(test, schemars(transform = schema::of_group_or_node))]
pub struct WorstGroupRecord {
    /// The rank.
    #[serde(flatten)]
    pub rank: Rank,
    /// Label of the group; absent in the record of a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub group: Option<Arc<str>>,
    /// Level of a node of the tree of groups (`--roll-up`). The nodes of each level are ranked separately. Absent in the record
    /// of a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub level: Option<Arc<str>>,
    /// Path of a node: the values of its level and of the levels above it, the outermost first, joined by `/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub path: Option<Arc<str>>,
    /// Number of samples.
    pub count: u64,
    /// Estimated number of hosts that replied with these samples, at most 266. Absent without samples, and without groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<u64>,
    /// The 95th percentile, ns, accurate to within 4.4 %; absent with fewer samples than `--worst-min-samples`, and with the
    /// method `quic-spin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95: Option<u64>,
    /// RTT that ranks the group, ns: `p95`, limited to an RTT that enough hosts had. Enough is one host in twenty, and at least
    /// two if the group has two or more. The limit is the end of the highest octave in or above which that many hosts had
    /// samples. Absent without `p95`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranked_rtt: Option<u64>,
    /// RTT that `ranked_rtt` is compared with, ns: the `expected_rtt` of the group, or else its lowest RTT of the interval.
    /// Absent without `p95`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<u64>,
    /// Excess of `ranked_rtt` over `baseline`, ns; 0 if it is lower. Absent without `p95`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inflation: Option<u64>,
    /// Share of the packets in both flow directions that were retransmissions; absent with fewer packets than
    /// `--worst-min-samples`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(range(max = 1)))]
    pub retransmission_ratio: Option<f64>,
    /// Bytes of payload in both flow directions.
    pub bytes: u64,
    /// Method that measured the RTTs (docs/methods.md).
    #[serde(serialize_with = "serialize_method")]
    #[cfg_attr(test, schemars(with = "schemas::MethodName"))]
    pub method: Method,
    /// Direction in which echoes passed the interface: true for egress. Absent if the capture has no directions.
    #[serde(
        rename = "match_on_egress",
        serialize_with = "serialize_is_egress",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(test, schemars(with = "Option<bool>"))]
    pub matched: Option<Direction>,
    /// Side of the network that the hosts that replied are on; absent without `--inside`.
    #[serde(serialize_with = "serialize_side", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<schemas::SideName>"))]
    pub side: Option<Side>,
    /// Name of the interface; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<schemas::InterfaceName>"))]
    pub interface: Option<Arc<str>>,
}

impl WorstGroupRecord {
    /// The value of `type` in JSON.
    pub(super) const TYPE: &str = WorstFlowRecord::TYPE;
}

impl WorstFlowRecord {
    /// The value of `type` in JSON.
    pub(super) const TYPE: &str = "worst";

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
            side: flow.of.side,
            interface: flow.interface.clone(),
            group: flow.of.group.clone(),
        })
    }
}

//! The record of a group in an interval.

#[cfg(test)]
use std::collections::BTreeMap;
use std::sync::Arc;

#[cfg(test)]
use pping_common::hist::BINS;
use pping_common::{group::Side, method::Method, parse::Direction};
use serde::{Serialize, Serializer, ser::SerializeMap as _};

#[cfg(test)]
use super::schema;
#[cfg(test)]
use crate::schemas;
use crate::{
    aggregate::Distribution,
    groups::{Columns, SeriesName},
    labels::{serialize_is_egress, serialize_method, serialize_side},
    quality::Scores,
};

/// RTTs and traffic of a group in an interval (`--aggregate`), or of a node of the tree of groups (`--roll-up`), for one interface, one method and one direction in which echoes
/// passed. Timed hosts are the hosts whose packets are timed, like `dest_ip` in an RTT record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(transform = schema::begin(Self::TYPE), transform = schema::with_values::<Quantiles>))]
#[cfg_attr(test, schemars(transform = schema::of_group_or_node))]
pub struct AggregateRecord {
    /// When the interval ended, ns since the Unix epoch.
    pub timestamp: u64,
    /// Length of the interval, ns. The first and the last interval are shorter than `--aggregate` says.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub interval: u64,
    /// Name of the interface; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<schemas::InterfaceName>"))]
    pub interface: Option<Arc<str>>,
    /// Label of the group: `all` without groups, `other` for groups beyond --max-groups, `unlisted` for hosts that the groups
    /// file does not list. Absent in the record of a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub group: Option<Arc<str>>,
    /// Level of a node: the column of the groups file by which its groups are added up (`--roll-up`). Absent in the record of a
    /// group. Each sample is in one record of a group, and in one of each level.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub level: Option<Arc<str>>,
    /// Path of a node: the values of its level and of the levels above it, the outermost first, joined by `/`. `labels` has them
    /// one by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub path: Option<Arc<str>>,
    /// Prefix of the group; absent if it has none. Two prefixes are joined by `+`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(pattern("^[0-9a-f.:]+/[0-9]+([+][0-9a-f.:]+/[0-9]+)?$")))]
    pub prefix: Option<Arc<str>>,
    /// Differentiated services codepoint of the group; only with --group-by dscp.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(range(max = 63)))]
    pub dscp: Option<u8>,
    /// Values of the other columns of the groups file, by column; absent if there are none. Those of a node are its level and the
    /// levels above.
    #[serde(serialize_with = "serialize_columns", skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, schemas::Text>", extend("minProperties" = 1)))]
    pub labels: Columns,
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
    /// Number of samples. If it is 0, the fields from `min` to `max` are absent.
    pub count: u64,
    /// The RTTs; absent without samples.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub rtts: Option<Quantiles>,
    /// Bins that have samples, in ascending order.
    #[cfg_attr(test, schemars(with = "Vec<schemas::Bin>", length(max = BINS)))]
    pub histogram: Vec<(u64, u64)>,
    /// Packets that timed hosts sent in flows of the group.
    pub sent_packets: u64,
    /// Bytes of payload that timed hosts sent.
    pub sent_bytes: u64,
    /// Packets that timed hosts received.
    pub rec_packets: u64,
    /// Bytes of payload that timed hosts received.
    pub rec_bytes: u64,
    /// TCP segments that timed hosts retransmitted.
    pub sent_retransmissions: u64,
    /// TCP segments that were retransmitted to timed hosts.
    pub rec_retransmissions: u64,
    /// Packets with the ECN mark CE, congestion experienced (RFC 3168), that timed hosts sent.
    pub sent_ce_packets: u64,
    /// Packets with the ECN mark CE that timed hosts received.
    pub rec_ce_packets: u64,
    /// Score for each profile (docs/groups.md), from 0 (unacceptable) to 100 (optimal); null if it is unknown. Absent without
    /// profiles.
    #[serde(skip_serializing_if = "Scores::is_empty")]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Option<schemas::Score>>", extend("minProperties" = 1)))]
    pub quality: Scores,
}

/// RTTs, ns. Percentiles are accurate to within 4.4 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Quantiles {
    /// The lowest RTT, ns.
    pub min: u64,
    /// The mean, ns.
    pub mean: u64,
    /// The median, ns. Percentiles are accurate to within 4.4 %.
    pub p50: u64,
    /// The 90th percentile, ns.
    pub p90: u64,
    /// The 95th percentile, ns.
    pub p95: u64,
    /// The 99th percentile, ns.
    pub p99: u64,
    /// The highest RTT, ns.
    pub max: u64,
}

impl AggregateRecord {
    /// The label of the group, or the path of the node.
    pub(super) fn name(&self) -> &str {
        self.group.as_deref().or(self.path.as_deref()).unwrap_or_default()
    }

    /// The value of `type` in JSON.
    pub(super) const TYPE: &str = "aggregate";

    /// The record of a series for the interval of `interval` ns that ended at `timestamp`.
    pub fn new(
        name: &SeriesName,
        distribution: &Distribution,
        timestamp: u64,
        interval: u64,
        quality: Scores,
    ) -> Self {
        let Distribution { sent, received, .. } = distribution;
        let label = Some(Arc::clone(&name.group.label));
        let level = name.group.level.clone();
        let (group, path) = if level.is_none() { (label, None) } else { (None, label) };
        Self {
            timestamp,
            interval,
            interface: name.interface.clone(),
            group,
            level,
            path,
            prefix: name.group.prefix.clone(),
            dscp: name.group.dscp,
            labels: name.group.columns.clone(),
            method: name.method,
            matched: name.matched,
            side: name.side,
            count: distribution.count(),
            rtts: Quantiles::of(distribution),
            histogram: distribution.filled().collect(),
            sent_packets: sent.packets,
            sent_bytes: sent.bytes,
            rec_packets: received.packets,
            rec_bytes: received.bytes,
            sent_retransmissions: sent.retransmissions,
            rec_retransmissions: received.retransmissions,
            sent_ce_packets: sent.ce,
            rec_ce_packets: received.ce,
            quality,
        }
    }
}

impl Quantiles {
    fn of(distribution: &Distribution) -> Option<Self> {
        let (min, max) = distribution.range?;
        let [p50, p90, p95, p99] = distribution.quantiles([0.5, 0.9, 0.95, 0.99])?;
        Some(Self { min, mean: distribution.mean()?, p50, p90, p95, p99, max })
    }
}

fn serialize_columns<S: Serializer>(columns: &Columns, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(columns.len()))?;
    for (column, value) in columns {
        map.serialize_entry(column, value)?;
    }
    map.end()
}

//! The record of a group in an interval.

use std::sync::Arc;

use pping_common::{method::Method, parse::Direction};
use serde::{Serialize, Serializer, ser::SerializeMap as _};

use crate::{
    aggregate::Distribution,
    groups::{Columns, SeriesName},
    labels::{serialize_is_egress, serialize_method},
    quality::Scores,
};

/// The RTTs of a group in an interval, by one method and in one direction. Without samples the record has no RTTs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AggregateRecord {
    /// The end of the interval, ns since the Unix epoch.
    pub timestamp: u64,
    /// Its length, ns.
    pub interval: u64,
    /// The interface, if it has a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<Arc<str>>,
    /// The label of the group.
    pub group: Arc<str>,
    /// The prefix of the group, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Arc<str>>,
    /// The differentiated services codepoint, if it separates groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// The other columns of the groups file.
    #[serde(serialize_with = "serialize_columns", skip_serializing_if = "Vec::is_empty")]
    pub labels: Columns,
    /// The method that measured the RTTs.
    #[serde(serialize_with = "serialize_method")]
    pub method: Method,
    /// The direction in which echoes passed the interface, if known.
    #[serde(
        rename = "match_on_egress",
        serialize_with = "serialize_is_egress",
        skip_serializing_if = "Option::is_none"
    )]
    pub matched: Option<Direction>,
    /// The number of samples.
    pub count: u64,
    /// The RTTs, if there are samples.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub rtts: Option<Quantiles>,
    /// For each bin that has samples: its upper bound, ns, and the number of its samples.
    pub histogram: Vec<(u64, u64)>,
    /// Packets sent by the hosts whose packets are timed.
    pub sent_packets: u64,
    /// Bytes of payload that they sent.
    pub sent_bytes: u64,
    /// Packets that they received.
    pub rec_packets: u64,
    /// Bytes of payload that they received.
    pub rec_bytes: u64,
    /// TCP segments that they retransmitted.
    pub sent_retransmissions: u64,
    /// TCP segments retransmitted to them.
    pub rec_retransmissions: u64,
    /// Packets that they sent, with the ECN mark CE.
    pub sent_ce_packets: u64,
    /// Packets that they received, with the ECN mark CE.
    pub rec_ce_packets: u64,
    /// The score by each profile, from 0 to 100; `None` is unknown.
    #[serde(skip_serializing_if = "Scores::is_empty")]
    pub quality: Scores,
}

/// RTTs, ns; percentiles are within half a bin, 4.4 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    /// The shortest.
    pub min: u64,
    /// The mean.
    pub mean: u64,
    /// The median.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 95th percentile.
    pub p95: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

impl AggregateRecord {
    /// The record of a series for the interval of `interval` ns that ended at `timestamp`.
    pub fn new(
        name: &SeriesName,
        distribution: &Distribution,
        timestamp: u64,
        interval: u64,
        quality: Scores,
    ) -> Self {
        let Distribution { sent, received, .. } = distribution;
        Self {
            timestamp,
            interval,
            interface: name.interface.clone(),
            group: Arc::clone(&name.group.label),
            prefix: name.group.prefix.clone(),
            dscp: name.group.dscp,
            labels: name.group.columns.clone(),
            method: name.method,
            matched: name.matched,
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

//! Distributions and traffic in the answers.

use pping_common::series::Traffic;
use serde::{Deserialize, Serialize};

use crate::aggregate::RttSummary;

/// A distribution of RTTs, ns. Percentiles are accurate to within 4.4 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Rtt"))]
pub struct RttAnswer {
    /// Number of samples.
    pub count: u64,
    /// The lowest.
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
    /// The highest.
    pub max: u64,
}

/// Traffic of one flow direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Traffic"))]
pub struct TrafficAnswer {
    /// Packets.
    pub packets: u64,
    /// Bytes of payload above the transport header.
    pub bytes: u64,
    /// Retransmitted TCP segments.
    pub retransmissions: u64,
}

impl From<RttSummary> for RttAnswer {
    fn from(rtts: RttSummary) -> Self {
        let RttSummary { count, min, mean, max, percentiles: [p50, p90, p95, p99] } = rtts;
        Self { count, min, mean, p50, p90, p95, p99, max }
    }
}

impl From<Traffic> for TrafficAnswer {
    fn from(traffic: Traffic) -> Self {
        let Traffic { packets, bytes, retransmissions, .. } = traffic;
        Self { packets, bytes, retransmissions }
    }
}

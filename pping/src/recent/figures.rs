//! Distributions and traffic in the answers.

use serde::{Deserialize, Serialize};

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

//! The records of `--format jsonl`.

use std::{net::IpAddr, time::Duration};

use serde::Deserialize;

/// A flow direction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub(crate) struct Tuple {
    pub(crate) src_ip: IpAddr,
    pub(crate) src_port: u16,
    pub(crate) dest_ip: IpAddr,
    pub(crate) dest_port: u16,
}

/// The fields of an RTT record that a capture also shows.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Sample {
    pub(super) timestamp: u64,
    #[serde(flatten)]
    pub(super) tuple: Tuple,
    pub(super) protocol: String,
    pub(super) rtt: u64,
    pub(super) method: String,
    pub(super) match_on_egress: bool,
    pub(super) interface: String,
    pub(super) dns_id: Option<u16>,
    pub(super) side_rtt: Option<u64>,
}

impl Sample {
    pub(super) fn rtt(&self) -> Duration {
        Duration::from_nanos(self.rtt)
    }

    /// Returns when the echoed packet passed, in ns since the epoch.
    pub(super) fn recorded_at(&self) -> u64 {
        self.timestamp - self.rtt
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct FlowEvent {
    #[serde(flatten)]
    pub(super) tuple: Tuple,
    pub(super) protocol: String,
    #[serde(rename = "flow_event")]
    pub(super) kind: String,
    pub(super) reason: String,
    pub(super) triggered_by: String,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Record {
    Flow(FlowEvent),
    Rtt(Sample),
}

/// Everything that pping wrote, in order.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) samples: Vec<Sample>,
    pub(super) flow_events: Vec<FlowEvent>,
}

impl Records {
    pub(super) fn parse(lines: &str) -> Self {
        let mut records = Self::default();
        for line in lines.lines() {
            match serde_json::from_str(line) {
                Ok(Record::Rtt(sample)) => records.samples.push(sample),
                Ok(Record::Flow(event)) => records.flow_events.push(event),
                Err(error) => panic!("not a record ({error}): {line}"),
            }
        }
        records
    }
}

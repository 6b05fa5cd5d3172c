//! A record of any kind.

use serde::Serialize;

use super::{
    aggregate::AggregateRecord,
    flow::{FlowRecord, FlowSummaryRecord},
    residence::ResidenceRecord,
    rtt::RttRecord,
    worst::{WorstFlowRecord, WorstGroupRecord},
};

/// One record of the output.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Record {
    /// A sample.
    Rtt(RttRecord),
    /// A flow direction opened or closed.
    Flow(FlowRecord),
    /// A flow ended.
    FlowSummary(Box<FlowSummaryRecord>),
    /// The RTTs of a group in an interval.
    Aggregate(Box<AggregateRecord>),
    /// A flow direction among the worst of an interval.
    WorstFlow(Box<WorstFlowRecord>),
    /// A group among the worst of an interval.
    WorstGroup(Box<WorstGroupRecord>),
    /// The times in this host of an interface's packets in an interval.
    Residence(Box<ResidenceRecord>),
}

impl Record {
    /// Its kind: the value of `type` in JSON.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Rtt(_) => "rtt",
            Self::Flow(_) | Self::FlowSummary(_) => "flow",
            Self::Aggregate(_) => "aggregate",
            Self::WorstFlow(_) | Self::WorstGroup(_) => "worst",
            Self::Residence(_) => "residence",
        }
    }

    /// When it happened, ns since the Unix epoch.
    pub(super) fn timestamp(&self) -> u64 {
        match self {
            Self::Rtt(record) => record.timestamp,
            Self::Flow(record) => record.timestamp,
            Self::FlowSummary(record) => record.timestamp,
            Self::Aggregate(record) => record.timestamp,
            Self::WorstFlow(record) => record.rank.timestamp,
            Self::WorstGroup(record) => record.rank.timestamp,
            Self::Residence(record) => record.timestamp,
        }
    }
}

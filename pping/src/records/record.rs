//! A record of any kind.

use serde::Serialize;

use super::{
    aggregate::AggregateRecord,
    flow::{FlowRecord, FlowSummaryRecord},
    residence::ResidenceRecord,
    rtt::RttRecord,
    worst::{WorstFlowRecord, WorstGroupRecord},
};
use crate::groups::Networks;

/// One line of `pping --format jsonl`, or one element of the array of `--format json`. Times are integer nanoseconds; a timestamp
/// counts from the Unix epoch.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(title = "pping record"))]
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
            Self::Rtt(_) => RttRecord::TYPE,
            Self::Flow(_) => FlowRecord::TYPE,
            Self::FlowSummary(_) => FlowSummaryRecord::TYPE,
            Self::Aggregate(_) => AggregateRecord::TYPE,
            Self::WorstFlow(_) => WorstFlowRecord::TYPE,
            Self::WorstGroup(_) => WorstGroupRecord::TYPE,
            Self::Residence(_) => ResidenceRecord::TYPE,
        }
    }

    /// Names the networks of both ends, if it is of a flow.
    pub(super) fn name_networks(&mut self, networks: &Networks) {
        let tuple = match self {
            Self::Rtt(record) => &mut record.tuple,
            Self::Flow(record) => &mut record.tuple,
            Self::FlowSummary(record) => &mut record.tuple,
            Self::WorstFlow(record) => &mut record.tuple,
            Self::Aggregate(_) | Self::WorstGroup(_) | Self::Residence(_) => return,
        };
        tuple.name_networks(networks);
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

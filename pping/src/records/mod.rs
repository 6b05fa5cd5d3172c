//! Records: samples, flow events, flow summaries, aggregates and the worst, with names and addresses instead of numbers.
//!
//! [`Reporter`] makes them, [`format`](mod@format) encodes them. docs/output.md describes their fields.

mod aggregate;
mod flow;
pub mod format;
mod hdr_log;
mod ranks;
mod record;
mod reporter;
mod residence;
mod rtt;
#[cfg(test)]
mod schema;
mod tuple;
mod worst;

pub use self::{
    aggregate::AggregateRecord,
    flow::{FlowRecord, FlowSummaryRecord},
    record::Record,
    reporter::Reporter,
    residence::{FollowedPackets, ResidenceRecord, TimeQuantiles},
    rtt::RttRecord,
    tuple::Tuple,
    worst::{Rank, WorstFlowRecord, WorstGroupRecord},
};

//! Records: samples, flow events, flow summaries and aggregates, with names and addresses instead of numbers.
//!
//! [`Reporter`] makes them, [`format`](mod@format) encodes them. docs/output.md describes their fields.

mod aggregate;
mod flow;
pub mod format;
mod hdr_log;
mod names;
mod record;
mod reporter;
mod rtt;
mod tuple;

pub(crate) use self::names::untracked_name;
pub use self::{
    aggregate::AggregateRecord,
    flow::{FlowRecord, FlowSummaryRecord},
    names::{direction_name, method_name},
    record::Record,
    reporter::Reporter,
    rtt::RttRecord,
    tuple::Tuple,
};

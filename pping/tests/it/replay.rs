//! `pping -r` as users run it. Needs neither root nor the kernel programs; the reference needs tshark.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy only knows the functions that are tests themselves"
)]

mod again;
mod aggregates;
mod captures;
mod clickhouse;
mod dns;
mod field;
mod forged;
mod formats;
mod generate;
mod golden;
mod hostile;
pub(crate) mod made;
mod missing;
mod networks;
mod program;
mod quality;
mod reading;
mod reference;
mod samples;
mod schema;
mod streams;
mod times;
mod tracker;
mod usage;
mod worst;

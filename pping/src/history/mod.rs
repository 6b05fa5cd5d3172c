//! The history: months of measurements, in files of Parquet that every engine reads.
//!
//! [`HistoryWriter`] is what the agent feeds once a second. Its thread writes a file for each minute, and [`upkeep`] merges them into
//! hours and days of three resolutions ([`Tier`]). [`archive`] answers questions about the past, to the HTTP server and to
//! `pping history`. docs/history.md describes the files.

mod archive;
mod columns;
mod command;
mod counts;
mod error;
mod export;
mod found;
mod inspect;
mod line;
mod merge;
mod nothing;
mod piece;
mod place;
mod print;
mod read;
mod row;
mod store;
mod sums;
mod tier;
mod time;
mod upkeep;
mod write;
mod writer;

pub use self::{
    archive::{Archive, Asked},
    command::{DEFAULT_DIRECTORY, HistoryArguments, perform},
    counts::Counts,
    error::Error,
    line::Line,
    tier::Tier,
    time::{DAY, HOUR, Moment, local, moment, now},
    writer::{HistoryWriter, Settings, State},
};

pub(crate) use self::{
    archive::Survey,
    counts::{PACKETS, SECONDS, UNTRACKED},
    place::Place,
};

#[cfg(test)]
mod tests;

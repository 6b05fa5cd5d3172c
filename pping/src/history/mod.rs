//! The history: months of measurements, in files of Parquet that every engine reads.
//!
//! [`Keeper`] is what the agent feeds once a second. Its thread writes a file for each minute, and [`upkeep`] merges them into
//! hours and days of three resolutions ([`Tier`]). [`archive`] answers questions about the past, to the HTTP server and to
//! `pping history`. docs/history.md describes the files.

mod archive;
mod columns;
mod command;
mod error;
mod export;
mod inspect;
mod keeper;
mod line;
mod merge;
mod piece;
mod print;
mod read;
mod row;
mod store;
mod tier;
mod time;
mod upkeep;
mod write;

pub use self::{
    archive::{Archive, Asked},
    command::{DEFAULT_DIRECTORY, HistoryArguments, perform},
    error::Error,
    keeper::{Keeper, Settings, State},
    line::Line,
    tier::Tier,
    time::{Moment, local, moment, now},
};

#[cfg(test)]
mod tests;

//! The agent as its users meet it: what they type, read and scrape, and what remains when it ends. Needs root.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests; clippy only knows the functions that are tests themselves"
)]

mod api;
mod bpf;
pub(crate) mod bpffs;
mod check;
mod churn;
mod clickhouse;
mod clocks;
mod clsact;
mod configuration;
mod containers;
mod copy;
mod deployment;
mod disk;
mod documentation;
mod documents;
mod endings;
mod every_second;
mod files;
mod foreign;
mod formats;
mod groups;
mod help;
mod history;
mod host;
mod http;
mod integrations;
mod interfaces;
mod lease;
mod leftovers;
mod metrics;
mod monitor;
mod monitoring;
mod neighbours;
mod networks;
mod otlp;
mod packet_cost;
mod page;
mod pins;
mod privileges;
mod profile;
mod quality;
mod reloading;
mod residence;
mod rotation;
mod sandbox;
mod schema;
mod service;
mod sides;
mod start;
mod top;
mod tree;
mod unit;
mod usage;
mod web;
mod xdp;

//! The agent loads the kernel programs and attaches them to interfaces. It aggregates, writes and serves what they
//! measure. It can also read a capture, and measures that by the same rules.
//!
//! [`commands`] performs the commands. [`cli`] parses the command line, [`config`] makes the
//! configuration from it, the environment and a file, and [`generate`] writes pages from the options. `agent` watches
//! interfaces, and talks to the kernel through `kernel`. [`capture`] reads files, and [`replay`] measures them.
//! [`aggregate`] keeps the statistics of both. [`records`] writes them in each format, `metrics` shows them to
//! Prometheus, `recent` to people, `http` serves both, and `otlp` pushes metrics.
//!
//! Without the feature `live` the crate only reads captures, and needs nothing of the kernel. The features `top`, `page`
//! and `otlp` are parts of watching that can be left out; [`features`] says which this build has.

#[cfg(feature = "live")]
pub mod agent;
pub mod aggregate;
#[cfg(feature = "live")]
mod capabilities;
pub mod capture;
#[cfg(feature = "live")]
mod check;
pub mod cli;
#[cfg(feature = "top")]
pub mod client;
pub mod commands;
pub mod config;
#[cfg(feature = "live")]
mod deferred;
mod error;
pub mod event;
pub mod features;
mod fingerprint;
mod foreign_text;
pub mod generate;
pub mod groups;
#[cfg(feature = "live")]
pub mod groups_command;
#[cfg(feature = "history")]
pub mod history;
#[cfg(feature = "live")]
pub mod http;
#[cfg(any(feature = "otlp", feature = "top"))]
mod http_client;
#[cfg(feature = "live")]
pub mod kernel;
mod labels;
mod log;
pub mod membership;
#[cfg(feature = "live")]
mod memory;
#[cfg(feature = "live")]
pub mod metrics;
#[cfg(feature = "live")]
mod notify;
#[cfg(feature = "otlp")]
pub mod otlp;
pub mod output;
mod packet_cost;
mod placement;
pub mod quality;
pub mod reasons;
#[cfg(feature = "live")]
pub mod recent;
pub mod records;
pub mod replay;
#[cfg(feature = "history")]
pub mod report;
pub mod residence;
#[cfg(test)]
mod schemas;
#[cfg(feature = "live")]
mod service;
#[cfg(feature = "live")]
pub mod snapshot;
#[cfg(feature = "live")]
pub mod sources;
mod spelling;
mod summary;
pub mod text;
#[cfg(feature = "top")]
pub mod top;
#[cfg(feature = "live")]
mod trust;
pub mod worst;

pub use error::Error;
pub use log::{init_log, say_error, set_verbosity};
pub use replay::Replayed;
pub use summary::Summary;

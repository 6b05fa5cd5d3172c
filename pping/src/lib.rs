//! The agent: loads the kernel programs, attaches them, drains what they report, aggregates it, and
//! writes and serves it.
//!
//! [`cli`] is what was typed, [`config`] what it means. [`source`] is everything that talks to the kernel,
//! [`aggregate`] what is kept over time, [`sinks`] one file per format, [`http`] the server. [`run`] is the
//! program.

pub mod aggregate;
pub mod cli;
pub mod config;
mod error;
pub mod http;
mod output;
pub mod record;
mod run;
pub mod shutdown;
pub mod sinks;
pub mod source;
mod summary;

pub use error::Error;
pub use run::run;
pub use summary::Summary;
use tracing::level_filters::LevelFilter;

/// Sends log lines to standard error: warnings and worse, or more with `verbosity` 1, 2 and 3.
pub fn init_log(verbosity: u8) {
    let level = match verbosity {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_target(false)
        .init();
}

//! The agent: loads the kernel programs, attaches them, drains what they report, aggregates it, and
//! writes and serves it. Or reads a capture, and does by itself what those programs do.
//!
//! [`cli`] is what was typed, [`config`] what it means. `source` is everything that talks to the kernel,
//! [`capture`] reads files, [`replay`] measures what is in them. [`aggregate`] is what is kept over time, [`sinks`] has
//! one file per format, `http` is the server. [`run()`] is the program.
//!
//! Without the feature `live` there is nothing that needs a kernel, and only captures can be read.

pub mod aggregate;
pub mod capture;
pub mod cli;
pub mod config;
mod error;
pub mod event;
mod fingerprint;
pub mod groups;
#[cfg(feature = "live")]
pub mod http;
#[cfg(feature = "live")]
mod live;
#[cfg(not(feature = "live"))]
#[path = "not_live.rs"]
mod live;
mod output;
pub mod record;
pub mod replay;
mod run;
pub mod shutdown;
pub mod sinks;
#[cfg(feature = "live")]
pub mod source;
mod summary;

pub use error::Error;
pub use run::run;
pub use summary::{Replayed, Summary};
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

//! The agent: loads the kernel programs, attaches them, drains what they report, aggregates it, and
//! writes and serves it. Or reads a capture, and does by itself what those programs do.
//!
//! [`cli`] is what was typed, [`config`] what that means together with a file and the environment, [`generate`] what is
//! made of the list of options, and [`commands`] what else can be asked for. `kernel` is everything that talks to the kernel,
//! [`capture`] reads files, [`replay`] measures what is in them. [`aggregate`] is what is kept over time, [`records`] has
//! one file per format, `metrics` is what Prometheus reads, `http` is the server. [`run()`] is the program.
//!
//! Without the feature `live` there is nothing that needs a kernel, and only captures can be read.

#[cfg(feature = "live")]
pub mod agent;
#[cfg(not(feature = "live"))]
#[path = "not_live.rs"]
mod agent;
#[cfg(not(feature = "live"))]
use agent as check;
pub mod aggregate;
#[cfg(feature = "live")]
mod capabilities;
pub mod capture;
#[cfg(feature = "live")]
mod check;
pub mod cli;
pub mod commands;
pub mod config;
mod error;
pub mod event;
mod fingerprint;
pub mod generate;
pub mod groups;
#[cfg(feature = "live")]
pub mod http;
#[cfg(feature = "live")]
pub mod kernel;
mod log;
#[cfg(feature = "live")]
pub mod metrics;
#[cfg(feature = "live")]
mod notify;
pub mod output;
pub mod records;
pub mod replay;
mod run;
pub mod shutdown;
#[cfg(feature = "live")]
pub mod snapshot;
mod summary;
mod text;

pub use error::Error;
pub use log::{init_log, say_error, set_verbosity};
pub use run::run;
pub use summary::{Replayed, Summary};

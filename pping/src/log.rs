//! What is said on standard error while pping runs.

use std::{
    io::{self, IsTerminal as _},
    sync::OnceLock,
};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::{
    Registry, fmt, layer::SubscriberExt as _, registry, reload, util::SubscriberInitExt as _,
};

/// The level in force. There is one log for the whole process, and so one level.
static LEVEL: OnceLock<reload::Handle<LevelFilter, Registry>> = OnceLock::new();

/// Sends log lines to standard error: warnings and worse, or more with `verbosity` 1, 2 and 3.
pub fn init_log(verbosity: u8) {
    let (filter, handle) = reload::Layer::new(level(verbosity));
    let lines = fmt::layer().with_writer(io::stderr).with_ansi(io::stderr().is_terminal()).with_target(false);
    registry().with(filter).with(lines).init();
    LEVEL.set(handle).ok();
}

/// Says more or less from now on, if the log was begun by [`init_log`].
pub fn set_verbosity(verbosity: u8) {
    if let Some(handle) = LEVEL.get() {
        // It fails only when there is no log any more.
        handle.reload(level(verbosity)).ok();
    }
}

fn level(verbosity: u8) -> LevelFilter {
    match verbosity {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    }
}

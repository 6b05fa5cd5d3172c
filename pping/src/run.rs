//! The program.

use crate::{
    Error, Summary,
    config::{Config, Source},
    live, replay,
};

/// Watches interfaces, or reads a capture, until `shutdown` resolves, the reader of the output is gone, or the capture
/// ends.
///
/// # Errors
/// What kept it from starting, or ended it before its time. Nothing stays attached.
pub async fn run(mut config: Config, shutdown: impl Future<Output = ()>) -> Result<Summary, Error> {
    match std::mem::take(&mut config.source) {
        Source::Interfaces(interfaces) => live::run(config, interfaces, shutdown).await,
        Source::Capture(file) => replay::run(config, file, shutdown).await,
    }
}

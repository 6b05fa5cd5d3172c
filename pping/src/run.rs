//! A measurement, of interfaces or of a capture.

use crate::{
    Error, Summary, agent,
    config::{Config, Loader},
    replay,
};

/// Watches interfaces, or reads a capture, until `shutdown` resolves, the reader of the output is gone, or the capture
/// ends. `loader` makes the configuration again at each SIGHUP.
///
/// # Errors
/// If it could not start, or stopped early. Nothing stays attached unless it is pinned.
pub async fn run(
    config: Config,
    loader: Loader,
    shutdown: impl Future<Output = ()>,
) -> Result<Summary, Error> {
    match config.capture.clone() {
        None => agent::run(config, loader, shutdown).await,
        Some(file) => replay::run(config, file, shutdown).await,
    }
}

//! The program.

use crate::{
    Error, Summary, agent,
    config::{Config, Reload, Source},
    replay,
};

/// Watches interfaces, or reads a capture, until `shutdown` resolves, the reader of the output is gone, or the capture
/// ends. `reload` makes the configuration anew when SIGHUP asks for it.
///
/// # Errors
/// What kept it from starting, or ended it before its time. Nothing stays attached.
pub async fn run(
    config: Config,
    reload: Reload,
    shutdown: impl Future<Output = ()>,
) -> Result<Summary, Error> {
    match config.source.clone() {
        Source::Interfaces(interfaces) => agent::run(config, interfaces, reload, shutdown).await,
        Source::Capture(file) => replay::run(config, file, shutdown).await,
    }
}

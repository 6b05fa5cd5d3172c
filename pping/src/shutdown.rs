//! The signals that stop pping.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Resolves at SIGINT or SIGTERM.
///
/// # Errors
/// If the signals cannot be caught.
pub fn requested() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

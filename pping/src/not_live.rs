//! In place of watching interfaces, where that was left out.

use std::path::Path;

use crate::{
    Error, Summary,
    cli::CheckArguments,
    config::{Config, Loader},
};

/// Says that it was left out.
#[expect(clippy::unused_async, reason = "what this is in place of waits")]
pub(crate) async fn run(
    config: Config,
    _loader: Loader,
    _shutdown: impl Future<Output = ()>,
) -> Result<Summary, Error> {
    Err(Error::NotLive(format!("--interface {}", config.live.interfaces.join(", "))))
}

/// Nothing can have been pinned.
#[expect(clippy::unnecessary_wraps, reason = "what this is in place of can fail")]
pub(crate) fn unpin(_directory: &Path) -> Result<(), Error> {
    Ok(())
}

/// Nothing can have been left.
#[expect(clippy::unused_async, reason = "what this is in place of waits")]
pub(crate) async fn cleanup(_interfaces: &[String]) -> Result<Vec<String>, Error> {
    Ok(Vec::new())
}

/// Says that there is nothing to look at.
pub(crate) fn perform(_loader: &Loader, _asked: CheckArguments) -> Result<(), Error> {
    Err(Error::NotLive("check".to_owned()))
}

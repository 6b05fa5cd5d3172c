//! Stands in for `agent` in a build without the feature `live`.

use std::path::Path;

use clap::ArgMatches;

use crate::{
    Error, Summary,
    cli::{CheckArguments, TopArguments},
    config::{Config, Loader},
};

/// Reports that this build cannot watch interfaces.
#[expect(clippy::unused_async, reason = "the real one waits")]
pub(crate) async fn run(
    config: Config,
    _loader: Loader,
    _shutdown: impl Future<Output = ()>,
) -> Result<Summary, Error> {
    Err(Error::NotLive(format!("--interface {}", config.live.interfaces.join(", "))))
}

/// Does nothing: nothing can have been pinned.
#[expect(clippy::unnecessary_wraps, reason = "the real one can fail")]
pub(crate) fn unpin(_directory: &Path) -> Result<(), Error> {
    Ok(())
}

/// Does nothing: nothing can be left behind.
#[expect(clippy::unused_async, reason = "the real one waits")]
pub(crate) async fn cleanup(_interfaces: &[String]) -> Result<Vec<String>, Error> {
    Ok(Vec::new())
}

/// Reports that there is nothing to look at.
pub(crate) fn look(_typed: &ArgMatches, _loader: &Loader, _asked: TopArguments) -> Result<(), Error> {
    Err(Error::NotLive("top".to_owned()))
}

/// Reports that there is nothing to check.
pub(crate) fn perform(
    _loader: &Loader,
    _asked: CheckArguments,
) -> Result<(String, Result<(), Error>), Error> {
    Err(Error::NotLive("check".to_owned()))
}

//! In place of watching interfaces, where that was left out.

use crate::{
    Error, Summary,
    config::{Config, Live},
};

/// Says that it was left out.
#[expect(clippy::unused_async, reason = "what this is in place of waits")]
pub(crate) async fn run(
    _config: Config,
    live: Live,
    _shutdown: impl Future<Output = ()>,
) -> Result<Summary, Error> {
    Err(Error::NotLive { interface: live.interfaces.join(", ") })
}

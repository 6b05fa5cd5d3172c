//! The agent: it loads the kernel programs, attaches them to interfaces, and reports what they measure.
//!
//! [`run`] begins with [`setup`], loops with a [`cycle`] each second and a [`reload`] at each SIGHUP, and ends with
//! [`shutdown`].

mod arms;
mod count;
mod cycle;
pub mod events;
mod groups;
#[cfg(feature = "history")]
mod history;
mod interfaces;
mod losses;
mod networks;
mod placement;
mod reload;
mod rotation;
mod setup;
mod shutdown;
mod slow_start;
mod state;
mod worst;

use std::path::Path;

pub(crate) use setup::load_options;

use crate::{
    Error, Summary, capabilities,
    config::{Config, Loader},
    kernel::{self, attach::leftovers, netlink, pins, selection::Selection},
    recent::RecentHistory,
};

/// Watches interfaces until `shutdown` resolves or the reader of the output closes it. `loader` makes the configuration again at
/// each SIGHUP.
///
/// # Errors
/// If it could not start, or stopped early. Nothing stays attached unless it is pinned.
pub(crate) async fn run(
    config: Config,
    loader: Loader,
    shutdown: impl Future<Output = ()>,
) -> Result<Summary, Error> {
    run_with(config, loader, None, shutdown).await
}

/// Like [`run`], and fills `screen`, a recent history that this process shows on its screen. The HTTP server serves the same
/// one.
///
/// # Errors
/// Like [`run`].
pub(crate) async fn run_with(
    config: Config,
    loader: Loader,
    screen: Option<RecentHistory>,
    shutdown: impl Future<Output = ()>,
) -> Result<Summary, Error> {
    let (mut agent, mut inputs) = Box::pin(setup::set_up(config, loader, screen)).await?;
    let ended = agent.run_until(&mut inputs, shutdown).await;
    agent.shut_down(ended).await
}

/// Removes everything that a run with `--pin` left in this directory, which ends its measuring.
///
/// # Errors
/// If something cannot be removed.
pub(crate) fn unpin(directory: &Path) -> Result<(), Error> {
    Ok(pins::unpin(directory)?)
}

/// Removes the leftovers of killed runs from all interfaces, or from those that are named. Returns a line for each
/// interface that had some.
///
/// # Errors
/// If an interface is unknown, a capability is missing, or something cannot be removed.
pub(crate) async fn cleanup(interfaces: &[String]) -> Result<Vec<String>, Error> {
    let selection = Selection::new(interfaces)?;
    let links = netlink::links().await?.found;
    if let Some(name) = selection.missing(&links).next() {
        return Err(Selection::unknown(name, &links).into());
    }
    capabilities::check_for_interfaces()?;
    let mut lines = Vec::new();
    for link in links.iter().filter(|link| interfaces.is_empty() || selection.includes(link)) {
        let removed = leftovers::remove(link.ifindex)
            .map_err(|source| kernel::Error::Cleanup { interface: link.name.clone(), source })?;
        if !removed.is_empty() {
            lines.push(format!("{}: removed {removed}", link.name));
        }
    }
    Ok(lines)
}

//! The agent: it loads the kernel programs, attaches them to interfaces, and reports what they measure.
//!
//! [`run`] is its life: [`setup`], then the loop and the [`cycle`] of a second, with a [`reload`] at each SIGHUP, then the
//! [`shutdown`].

mod count;
mod cycle;
pub mod events;
mod groups;
mod interfaces;
mod reload;
mod rotation;
mod setup;
mod shutdown;

use std::{
    collections::BTreeSet,
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
    time::Instant,
};

use tokio::{
    io::{Interest, unix::AsyncFd},
    signal::unix::Signal,
};

use self::{count::Losses, groups::GroupsFile, interfaces::Interfaces};
use crate::{
    Error, Summary, capabilities,
    config::{Config, Loader},
    groups::Names,
    http::{Readiness, Server},
    kernel::{
        self,
        attach::leftovers,
        interfaces::Netlink,
        load::Kernel,
        pins::{self, Pins},
        selection::Selection,
    },
    metrics::Metrics,
    notify::Notify,
    output::{Ended, Output},
    records::{Reporter, format::Encoder},
};
pub(crate) use setup::load_options;

/// Watches interfaces until `shutdown` resolves or the reader of the output closes it. `loader` makes the configuration again at
/// each SIGHUP.
///
/// # Errors
/// Why it could not start, or stopped early. Nothing stays attached unless it is pinned.
pub(crate) async fn run(
    config: Config,
    loader: Loader,
    shutdown: impl Future<Output = ()>,
) -> Result<Summary, Error> {
    let (mut agent, mut inputs) = Box::pin(setup::set_up(config, loader)).await?;
    let ended = agent.run_until(&mut inputs, shutdown).await;
    agent.shut_down(ended).await
}

/// The parts of a running agent.
struct Agent {
    /// The configuration in force.
    config: Config,
    /// Makes the configuration again.
    loader: Loader,
    kernel: Kernel,
    /// Where programs, links and maps are pinned, with `--pin`.
    pins: Option<Pins>,
    interfaces: Interfaces,
    /// The addresses of this host that the kernel programs know.
    local_addresses: BTreeSet<[u8; 16]>,
    groups: Option<GroupsFile>,
    /// The names of series and groups.
    names: Names,
    reporter: Reporter,
    encoder: Box<dyn Encoder>,
    output: Output,
    metrics: Metrics,
    server: Option<Server>,
    readiness: Readiness,
    losses: Losses,
    /// When the last cycle was, in ns of the wall clock.
    last_cycle: u64,
    notify: Notify,
    started: Instant,
}

/// What the agent waits for.
struct Inputs {
    netlink: Netlink,
    /// Readable once the events' ring is an eighth full.
    ring: AsyncFd<OwnedFd>,
    hangup: Signal,
    output_ended: Ended,
}

impl Agent {
    /// The state that the service manager shows.
    fn status(&self) -> String {
        let names: Vec<&str> = self.interfaces.up().collect();
        if names.is_empty() {
            "waiting for interfaces".to_owned()
        } else {
            format!("watching {}", names.join(", "))
        }
    }
}

/// Removes everything that a run with `--pin` left in this directory, which ends its measuring.
///
/// # Errors
/// What could not be removed.
pub(crate) fn unpin(directory: &Path) -> Result<(), Error> {
    Ok(pins::unpin(directory)?)
}

/// Removes what killed runs left on interfaces: on all of them, unless some are named. Returns a line for each interface
/// that had something.
///
/// # Errors
/// What could not be removed, or the missing capability.
pub(crate) async fn cleanup(interfaces: &[String]) -> Result<Vec<String>, Error> {
    let selection = Selection::new(interfaces)?;
    let links = Netlink::connect()?.links().await?;
    if let Some(name) = selection.missing(&links).next() {
        return Err(Selection::unknown(name, &links).into());
    }
    capabilities::check_for_interfaces()?;
    let mut lines = Vec::new();
    for link in links.iter().filter(|link| interfaces.is_empty() || selection.includes(&link.name)) {
        let removed = leftovers::remove(link.ifindex)
            .map_err(|source| kernel::Error::Cleanup { interface: link.name.clone(), source })?;
        if !removed.is_empty() {
            lines.push(format!("{}: removed {removed}", link.name));
        }
    }
    Ok(lines)
}

/// Waits for a descriptor to be readable.
fn readable<T: AsRawFd>(source: T) -> io::Result<AsyncFd<T>> {
    // SAFETY: both sources own their descriptor for as long as they live.
    Ok(unsafe { AsyncFd::register_with_interest(source, Interest::READABLE) }?)
}

//! The HTTP server: metrics, the JSON API, health checks and the web page. It has no access to the kernel's maps.
//!
//! It runs in a separate thread, so that the agent never waits for a client. The thread drops all capabilities before it
//! reads the first byte from the network.

mod access;
mod api;
mod auth;
mod client;
mod connection;
mod connections;
mod error;
mod events;
mod negotiation;
#[cfg(feature = "page")]
mod page;
mod pages;
mod parameters;
mod rate;
mod readers;
mod readiness;
mod site;
mod web_config;
mod workers;

use std::{
    io,
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    sync::mpsc as blocking,
    thread,
};

use tokio::{
    runtime::{Builder, Runtime},
    sync::{mpsc, oneshot},
    time::timeout,
};

pub use self::{access::Access, error::Error, readiness::Readiness};
use self::{
    access::Names,
    connections::{Command, GRACE},
    site::Site,
    web_config::WebConfig,
};
use crate::{capabilities, metrics::Metrics, recent::RecentHistory};

/// The highest number of threads that make pages and check passwords. It is as high as the number of [`workers`], so that
/// none of them waits for a thread.
const BLOCKING_THREADS: usize = pages::AT_ONCE + api::AT_ONCE + auth::AT_ONCE;

/// A running server. It stops when this is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    commands: mpsc::UnboundedSender<Command>,
    ended: oneshot::Receiver<()>,
}

impl Server {
    /// Binds the address, reads the web configuration, and starts to serve.
    ///
    /// # Errors
    /// [`Error::Listen`] if the address cannot be bound, [`Error::OpenWebConfig`] if the web configuration cannot be
    /// read, [`Error::WebConfig`] if it is invalid, and [`Error::Io`] if the thread cannot be started.
    pub fn start(
        address: SocketAddr,
        access: Access,
        metrics: Metrics,
        recent: RecentHistory,
        readiness: Readiness,
    ) -> Result<Self, Error> {
        let listen = |source| Error::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (commands, inbox) = mpsc::unbounded_channel();
        let (begun, has_begun) = blocking::channel();
        let (over, ended) = oneshot::channel();
        let run = move || {
            match prepare(address, access.web_config) {
                Ok((runtime, web_config)) => {
                    begun.send(Ok(())).ok();
                    let site = Site::new(metrics, recent, readiness, web_config, Names::new(&access.names));
                    if let Err(error) = runtime.block_on(connections::serve(listener, site, inbox)) {
                        tracing::error!("--listen {address}: {error}; the HTTP server has stopped");
                    }
                    // Does not wait for a password check.
                    runtime.shutdown_background();
                }
                Err(error) => {
                    begun.send(Err(error)).ok();
                }
            }
            over.send(()).ok();
        };
        thread::Builder::new().name("pping-http".into()).spawn(run)?;
        has_begun.recv().unwrap_or_else(|_| Err(io::Error::other("the HTTP server did not start").into()))?;
        Ok(Self { address, commands, ended })
    }

    /// Returns the address that the server listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reads the web configuration again, from this file if there is one. An invalid one is logged and changes nothing. The
    /// server has these names from now on.
    pub fn reload(&self, access: Access) {
        self.commands.send(Command::Reload(access)).ok();
    }

    /// Stops the server: accepts no more connections, and gives responses in progress a second to finish.
    pub async fn stop(self) {
        self.commands.send(Command::Stop).ok();
        // The thread ends by itself, unless a disk hangs.
        timeout(2 * GRACE, self.ended).await.ok();
    }
}

/// Prepares the thread. Drops all capabilities before it reads the configuration: what it can read now, a reload can
/// read too.
fn prepare(address: SocketAddr, web_config: Option<PathBuf>) -> Result<(Runtime, WebConfig), Error> {
    capabilities::drop_all().map_err(io::Error::other)?;
    let web_config = WebConfig::read(address, web_config)?;
    let mut builder = Builder::new_current_thread();
    let runtime =
        builder.enable_all().max_blocking_threads(BLOCKING_THREADS).thread_name("pping-http-work").build()?;
    Ok((runtime, web_config))
}

//! The HTTP server: metrics, health, and a page for people. It never touches the kernel's maps.
//!
//! It has a thread of its own, so that what drains the kernel never waits for whoever asks. That thread gives up all
//! capabilities before it reads the first byte from a stranger.

mod auth;
mod connection;
mod connections;
mod error;
mod negotiation;
mod pages;
mod rate;
mod readers;
mod site;
mod web_config;

use std::{
    io,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc as blocking,
    },
    thread,
    time::Duration,
};

use tokio::{
    runtime::{Builder, Runtime},
    sync::{mpsc, oneshot},
    time::timeout,
};

pub use self::error::Error;
use self::{connections::Order, site::Site, web_config::WebConfig};
use crate::{capabilities, metrics::Metrics};

/// How long answers under way may still take once the server is to stop.
const GRACE: Duration = Duration::from_secs(1);

/// Threads for pages, and for passwords, at most: neither is worth more of the machine.
const BLOCKING_THREADS: usize = 4;

/// Whether programs are attached and the ring is being drained.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// Says that they are.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A server under way. It ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    orders: mpsc::UnboundedSender<Order>,
    ended: oneshot::Receiver<()>,
}

impl Server {
    /// Takes the address, reads the web configuration, and begins to serve.
    ///
    /// # Errors
    /// [`Error::Listen`] when the address is not to be had, [`Error::OpenWebConfig`] and [`Error::WebConfig`] when the
    /// web configuration is not, or cannot be.
    pub fn start(
        address: SocketAddr,
        web_config: Option<&Path>,
        metrics: Metrics,
        readiness: Readiness,
    ) -> Result<Self, Error> {
        let listen = |source| Error::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let web_config = web_config.map(Path::to_owned);
        let (orders, inbox) = mpsc::unbounded_channel();
        let (begun, has_begun) = blocking::channel();
        let (over, ended) = oneshot::channel();
        let run = move || {
            match prepare(address, web_config) {
                Ok((runtime, web_config)) => {
                    begun.send(Ok(())).ok();
                    let site = Site::new(metrics, readiness, web_config);
                    if let Err(error) = runtime.block_on(connections::serve(listener, site, inbox)) {
                        tracing::error!("--listen {address}: {error}; nothing is served any more");
                    }
                    // A password that is being checked is nothing to wait for.
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
        Ok(Self { address, orders, ended })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Has the web configuration read again, from this file if from any. One that cannot be changes nothing, and is
    /// logged.
    pub fn reload(&self, web_config: Option<&Path>) {
        self.orders.send(Order::Reload(web_config.map(Path::to_owned))).ok();
    }

    /// Stops: nobody new is let in, and answers under way get a second to finish.
    pub async fn stop(self) {
        self.orders.send(Order::Stop).ok();
        // It comes to an end by itself, unless a disk that hangs holds it up.
        timeout(2 * GRACE, self.ended).await.ok();
    }
}

/// What the thread does first. The configuration is read without capabilities: what can be read now can be read again.
fn prepare(address: SocketAddr, web_config: Option<PathBuf>) -> Result<(Runtime, WebConfig), Error> {
    capabilities::renounce().map_err(io::Error::other)?;
    let web_config = WebConfig::read(web_config)?;
    web_config.current().warn_if_exposed(address);
    let mut builder = Builder::new_current_thread();
    let runtime =
        builder.enable_all().max_blocking_threads(BLOCKING_THREADS).thread_name("pping-http-work").build()?;
    Ok((runtime, web_config))
}

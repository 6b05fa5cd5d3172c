//! Pushing metrics to a receiver of OTLP/HTTP. It has no access to the kernel's maps.
//!
//! Like the HTTP server, it runs in a thread of its own without capabilities, so that the agent never waits for a receiver.

mod error;
mod headers;
mod message;
mod pusher;
mod queue;
mod receiver;

use std::{io, net::IpAddr, sync::mpsc as blocking, thread, time::Duration};

use tokio::{
    runtime::{Builder, Runtime},
    sync::{mpsc, oneshot},
    time::timeout,
};

pub use self::error::Error;
use self::pusher::{Command, FINAL_PUSH_TIMEOUT, Pusher};
pub use self::receiver::Receiver;
use crate::{capabilities, config::Otlp, metrics::Metrics};

/// The highest number of threads that look up hosts.
const BLOCKING_THREADS: usize = 1;

/// A running exporter. It stops when this is dropped.
#[derive(Debug)]
pub struct Exporter {
    commands: mpsc::UnboundedSender<Command>,
    ended: oneshot::Receiver<()>,
}

impl Exporter {
    /// Starts to push.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(settings: &Otlp, receiver: Receiver, metrics: Metrics) -> Result<Self, Error> {
        warn_if_exposed(settings);
        let counts = metrics.begin_exports();
        let pusher = Pusher::new(settings, receiver, metrics, counts);
        let (commands, inbox) = mpsc::unbounded_channel();
        let (begun, has_begun) = blocking::channel();
        let (over, ended) = oneshot::channel();
        let run = move || {
            match prepare() {
                Ok(runtime) => {
                    begun.send(Ok(())).ok();
                    runtime.block_on(pusher.run(inbox));
                    // Does not wait for the lookup of a host.
                    runtime.shutdown_background();
                }
                Err(error) => {
                    begun.send(Err(error)).ok();
                }
            }
            over.send(()).ok();
        };
        thread::Builder::new().name("pping-otlp".into()).spawn(run)?;
        has_begun.recv().unwrap_or_else(|_| Err(io::Error::other("the exporter did not start")))?;
        Ok(Self { commands, ended })
    }

    /// Continues with these settings.
    pub fn reload(&self, settings: &Otlp, receiver: Receiver) {
        self.commands.send(Command::Reload(settings.clone(), receiver)).ok();
    }

    /// Pushes a last time, if the receiver accepts it within some seconds, and stops.
    pub async fn stop(self) {
        self.commands.send(Command::Stop).ok();
        // The thread ends by itself.
        timeout(FINAL_PUSH_TIMEOUT + Duration::from_secs(1), self.ended).await.ok();
    }
}

fn prepare() -> io::Result<Runtime> {
    capabilities::drop_all().map_err(io::Error::other)?;
    let mut builder = Builder::new_current_thread();
    builder.enable_all().max_blocking_threads(BLOCKING_THREADS).thread_name("pping-otlp-dns").build()
}

/// Warns if headers, which may have a password, are sent over a network in clear text.
fn warn_if_exposed(settings: &Otlp) {
    let host = settings.endpoint.host.as_str();
    let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    if !settings.endpoint.is_tls && settings.headers.is_some() && !is_here {
        tracing::warn!(
            "--otlp {}: the headers of --otlp-headers are sent unencrypted; use https",
            settings.endpoint
        );
    }
}

//! Pushing metrics to a receiver of OTLP/HTTP. It has no access to the kernel's maps.
//!
//! Like the HTTP server, it is a [`Service`], so that the agent never waits for a receiver.

mod error;
mod headers;
mod message;
mod pusher;
mod queue;
mod receiver;

use std::{net::IpAddr, time::Duration};

pub use self::error::Error;
use self::pusher::{Command, FINAL_PUSH_TIMEOUT, Pusher};
pub use self::receiver::Receiver;
use crate::{
    config::Otlp,
    metrics::Metrics,
    service::{Service, Threads},
};

const THREADS: Threads = Threads {
    name: "pping-otlp",
    // Looks up hosts.
    blocking_name: "pping-otlp-dns",
    max_blocking: 1,
};

/// A running exporter. It stops when this is dropped.
#[derive(Debug)]
pub struct Exporter(Service<Command>);

impl Exporter {
    /// Starts to push.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(settings: &Otlp, receiver: Receiver, metrics: Metrics) -> Result<Self, Error> {
        warn_if_exposed(settings);
        metrics.begin_exports();
        let pusher = Pusher::new(settings, receiver, metrics);
        let service = Service::start(THREADS, || Ok::<_, Error>(()), |(), inbox| pusher.run(inbox))?;
        Ok(Self(service))
    }

    /// Continues with these settings.
    pub fn reload(&self, settings: &Otlp, receiver: Receiver) {
        self.0.send(Command::Reload(settings.clone(), receiver));
    }

    /// Pushes a last time, if the receiver accepts it within some seconds, and stops.
    pub async fn stop(self) {
        self.0.stop(Command::Stop, FINAL_PUSH_TIMEOUT + Duration::from_secs(1)).await;
    }
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

//! The HTTP server: metrics, the JSON API, health checks and the web page. It has no access to the kernel's maps.
//!
//! It is a [`Service`]: the agent never waits for a client, and the thread has no capabilities when it reads the first byte
//! from the network.

mod access;
mod api;
mod auth;
mod client;
mod connection;
mod connections;
mod contents;
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

use std::net::{SocketAddr, TcpListener};

pub use self::{access::Access, contents::Contents, error::Error, readiness::Readiness};
use self::{
    access::Names,
    connections::{Command, GRACE},
    site::Site,
    web_config::WebConfig,
};
use crate::service::{Service, Threads};

const THREADS: Threads = Threads {
    name: "pping-http",
    blocking_name: "pping-http-work",
    // Make pages and check passwords. As many as the [`workers`], so that none of them waits for a thread.
    max_blocking: pages::AT_ONCE + api::AT_ONCE + api::PAST_AT_ONCE + auth::AT_ONCE,
};

/// A running server. It stops when this is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    service: Service<Command>,
}

impl Server {
    /// Binds the address, reads the web configuration, and starts to serve.
    ///
    /// # Errors
    /// [`Error::Listen`] if the address cannot be bound, [`Error::OpenWebConfig`] if the web configuration cannot be
    /// read, [`Error::WebConfig`] if it is invalid, and [`Error::Io`] if the thread cannot be started.
    pub fn start(address: SocketAddr, access: Access, contents: Contents) -> Result<Self, Error> {
        let listen = |source| Error::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let prepare = move || WebConfig::read(address, access.web_config);
        let run = async move |web_config, inbox| {
            let site = Site::new(contents, web_config, Names::new(&access.names));
            if let Err(error) = connections::serve(listener, site, inbox).await {
                tracing::error!("--listen {address}: {error}; the HTTP server has stopped");
            }
        };
        Ok(Self { address, service: Service::start(THREADS, prepare, run)? })
    }

    /// Returns the address that the server listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reads the web configuration again, from this file if there is one. An invalid one is logged and changes nothing. The
    /// server has these names from now on.
    pub fn reload(&self, access: Access) {
        self.service.send(Command::Reload(access));
    }

    /// Stops the server: accepts no more connections, and gives responses in progress a second to finish.
    pub async fn stop(self) {
        self.service.stop(Command::Stop, 2 * GRACE).await;
    }
}

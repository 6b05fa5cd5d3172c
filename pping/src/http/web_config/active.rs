//! The active configuration.

use std::net::SocketAddr;

use axum::http::{HeaderName, HeaderValue};
use tokio_rustls::TlsAcceptor;

use crate::http::{auth::Users, rate::RateLimit};

/// What hosts on the network can read without permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exposure {
    /// All pages, by anyone who can connect.
    Pages,
    /// Passwords in plain text, by anyone who can capture packets.
    Passwords,
}

impl Exposure {
    /// Writes a warning to the log.
    pub(super) fn warn(self, address: SocketAddr) {
        match self {
            Self::Pages => tracing::warn!(
                "--listen {address}: anyone who can reach this address can read which hosts talk to each \
                 other, and how much; listen at 127.0.0.1, or require passwords or client certificates with \
                 --web-config"
            ),
            Self::Passwords => tracing::warn!(
                "--listen {address}: passwords are sent over the network in plain text; add tls_server_config to the \
                 --web-config"
            ),
        }
    }
}

/// The active configuration.
#[derive(Default)]
pub(crate) struct ActiveConfig {
    pub(crate) tls: Option<TlsAcceptor>,
    /// Whether clients need a certificate of a trusted authority.
    pub(super) verifies_clients: bool,
    pub(crate) users: Users,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) rate_limit: Option<RateLimit>,
}

impl ActiveConfig {
    /// Whether everyone may read, also the scripts of a web site whose name leads here: in its name a browser sends no
    /// password, and with TLS it wants a certificate for that name.
    pub(crate) fn is_open(&self) -> bool {
        self.users.is_empty() && self.tls.is_none()
    }

    /// Returns what a server at `address` exposes to other hosts, if anything.
    pub(super) fn exposure(&self, address: SocketAddr) -> Option<Exposure> {
        if address.ip().to_canonical().is_loopback() {
            None
        } else if self.users.is_empty() && !self.verifies_clients {
            Some(Exposure::Pages)
        } else {
            self.tls.is_none().then_some(Exposure::Passwords)
        }
    }
}

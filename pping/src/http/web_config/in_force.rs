//! The configuration in force.

use std::net::SocketAddr;

use axum::http::{HeaderName, HeaderValue};
use tokio_rustls::TlsAcceptor;

use crate::http::{auth::Users, rate::RateLimit};

/// The configuration in force.
#[derive(Default)]
pub(crate) struct InForce {
    pub(crate) tls: Option<TlsAcceptor>,
    /// Whether clients need a certificate of a trusted authority.
    pub(super) verifies_clients: bool,
    pub(crate) users: Users,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) rate_limit: Option<RateLimit>,
}

impl InForce {
    /// Warns if clients on other hosts can read the metrics, or passwords are sent in plain text.
    pub(crate) fn warn_if_exposed(&self, address: SocketAddr) {
        if address.ip().to_canonical().is_loopback() {
            return;
        }
        if self.users.is_empty() && !self.verifies_clients {
            tracing::warn!(
                "--listen {address}: everybody who reaches this address can read which hosts talk; listen at 127.0.0.1, \
                 or require passwords with --web-config"
            );
        } else if self.tls.is_none() {
            tracing::warn!(
                "--listen {address}: passwords are sent over the network in plain text; add tls_server_config to the \
                 --web-config"
            );
        }
    }
}

//! A client as the pages see it.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::sleep;

/// The timeout of a TLS handshake, and of a request.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The timeout of a response, until the client has read all of it.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);

/// The longest time that a stream may last. The client then opens another.
const STREAM_TIMEOUT: Duration = Duration::from_mins(10);

/// The use of a connection: for a response or for a stream. Each request carries it in its extensions.
#[derive(Clone, Debug)]
pub(super) struct ConnectionState {
    /// The client's address; of an IPv6 address the network that counts as one client.
    pub(super) network: IpAddr,
    is_responding: Arc<AtomicBool>,
    is_streaming: Arc<AtomicBool>,
}

impl ConnectionState {
    /// `is_responding` is set from the request until the response is written.
    pub(super) fn new(network: IpAddr, is_responding: Arc<AtomicBool>) -> Self {
        Self { network, is_responding, is_streaming: Arc::default() }
    }

    /// Keeps the connection open for a stream, up to [`STREAM_TIMEOUT`]. It no longer counts as a response: the server
    /// may close it at any time, to make room for a new client or because the server stops.
    pub(super) fn begin_stream(&self) {
        self.is_streaming.store(true, Ordering::Relaxed);
        self.is_responding.store(false, Ordering::Relaxed);
    }

    /// Begins a response.
    pub(super) fn begin_response(&self) {
        self.is_responding.store(true, Ordering::Relaxed);
    }

    /// Returns when the time for a request and its response, or for a stream, is over.
    pub(super) async fn timed_out(self) {
        sleep(REQUEST_TIMEOUT + RESPONSE_TIMEOUT).await;
        if self.is_streaming.load(Ordering::Relaxed) {
            sleep(STREAM_TIMEOUT.saturating_sub(REQUEST_TIMEOUT + RESPONSE_TIMEOUT)).await;
        }
    }
}

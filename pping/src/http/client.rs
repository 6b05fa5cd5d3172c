//! A client as the pages see it.

use std::{
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

/// How long a stream may last. A client that is still there begins another.
const STREAM_TIMEOUT: Duration = Duration::from_mins(10);

/// What the connection of a request is used for. It is among the extensions of the request.
#[derive(Clone, Debug)]
pub(super) struct Client {
    is_responding: Arc<AtomicBool>,
    is_streaming: Arc<AtomicBool>,
}

impl Client {
    /// `is_responding` is set from the request until the response is written.
    pub(super) fn new(is_responding: Arc<AtomicBool>) -> Self {
        Self { is_responding, is_streaming: Arc::default() }
    }

    /// Has the connection last, though not for ever. It does not count as a response any more: a new client that finds no room, or
    /// the end of the server, closes it at any time.
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

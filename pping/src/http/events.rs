//! Server-sent events (WHATWG HTML, section 9.2): a summary each second.
//!
//! A client that reconnects misses nothing: the first event comes at once, and each event is a complete summary.

use std::{
    convert::Infallible,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Extension,
    extract::State,
    http::{StatusCode, header::RETRY_AFTER},
    response::{IntoResponse as _, Response, Sse, sse::Event},
};
use futures_util::stream;
use tokio::{
    sync::{Mutex, OwnedSemaphorePermit, Semaphore, watch},
    time::sleep,
};

use super::{client::ConnectionState, workers::Workers};
use crate::view::View;

/// The highest number of streams: half of all connections, so that there is always room for scrapes.
const MAX_STREAMS: usize = 32;

/// The shortest pause between two events of a stream. Interfaces that come or go change the summary within a second too.
const PAUSE: Duration = Duration::from_millis(800);

/// When a rejected client may retry, s.
const RETRY: &str = "10";

/// The streams of all clients.
#[derive(Debug)]
pub(super) struct Streams {
    view: View,
    workers: Workers,
    free: Arc<Semaphore>,
    /// The latest event and its sequence number. All streams share it.
    latest: Mutex<Option<(u64, Event)>>,
}

/// The state of a stream.
struct Stream {
    streams: Arc<Streams>,
    seconds: watch::Receiver<u64>,
    /// When the last event was sent.
    sent: Option<Instant>,
    _permit: OwnedSemaphorePermit,
}

impl Streams {
    pub(super) fn new(view: View, workers: Workers) -> Self {
        Self { view, workers, free: Arc::new(Semaphore::new(MAX_STREAMS)), latest: Mutex::default() }
    }

    /// Returns the latest event; `None` if it cannot be made.
    async fn latest(&self) -> Option<Event> {
        let mut latest = self.latest.lock().await;
        let sequence = self.view.sequence();
        if let Some((_, event)) = latest.as_ref().filter(|(known, _)| *known == sequence) {
            return Some(event.clone());
        }
        let view = self.view.clone();
        let made = self.workers.run(move || {
            let summary = view.summary();
            let text = serde_json::to_string(&summary).ok()?;
            Some((summary.sequence, text))
        });
        let (sequence, text) = made.await??;
        let event = Event::default().event("summary").id(sequence.to_string()).data(text);
        *latest = Some((sequence, event.clone()));
        Some(event)
    }
}

impl Stream {
    /// Waits for the next event. Returns it with the stream; `None` ends the stream.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        if let Some(sent) = self.sent {
            sleep(PAUSE.saturating_sub(sent.elapsed())).await;
            self.seconds.changed().await.ok()?;
        }
        self.sent = Some(Instant::now());
        let event = self.streams.latest().await?;
        Some((Ok(event), self))
    }
}

/// Responds with a stream of summaries, which lasts until the client or the server closes it.
pub(super) async fn events(
    State(streams): State<Arc<Streams>>,
    Extension(connection): Extension<ConnectionState>,
) -> Response {
    let Ok(permit) = Arc::clone(&streams.free).try_acquire_owned() else {
        let reason = format!("there are {MAX_STREAMS} streams already; ask /api/v1/summary once a second\n");
        return (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, RETRY)], reason).into_response();
    };
    connection.begin_stream();
    let seconds = streams.view.seconds();
    let stream = Stream { streams, seconds, sent: None, _permit: permit };
    Sse::new(stream::unfold(stream, Stream::next)).into_response()
}

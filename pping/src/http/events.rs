//! Server-sent events (WHATWG HTML, section 9.2): a summary each second.
//!
//! A client that reconnects misses nothing: the first event comes at once, and each event is a complete summary.

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
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
    sync::{Mutex as AsyncMutex, watch},
    time::sleep,
};

use super::{
    client::ConnectionState,
    parameters::{Nothing, Parameters},
    readers::Reader,
    workers::Workers,
};
use crate::recent::RecentHistory;

/// The highest number of streams: half of all connections, so that there is always room for scrapes.
const MAX_STREAMS: usize = 32;

/// The shortest pause between two events of a stream. Interfaces that come or go change the summary within a second too.
const PAUSE: Duration = Duration::from_millis(800);

/// When a rejected client may retry, s.
const RETRY: &str = "10";

/// The streams of all clients.
#[derive(Debug)]
pub(super) struct Streams {
    recent: RecentHistory,
    workers: Workers,
    open: Arc<Mutex<OpenStreams>>,
    /// The latest event and its sequence number. All streams share it.
    latest: AsyncMutex<Option<(u64, Event)>>,
}

/// The open streams, oldest first.
#[derive(Debug, Default)]
struct OpenStreams {
    streams: VecDeque<OpenStream>,
    /// The number of the next stream.
    next: u64,
}

#[derive(Debug)]
struct OpenStream {
    number: u64,
    /// The client: see [`ConnectionState::network`].
    network: IpAddr,
    reader: Reader,
}

/// A stream among the open ones, until this is dropped.
struct Place {
    open: Arc<Mutex<OpenStreams>>,
    number: u64,
}

impl OpenStreams {
    /// Adds a stream, and returns its number; `None` if there are [`MAX_STREAMS`] already.
    ///
    /// A client that has fewer streams than another gets the place of the other's oldest one, so no client can keep others
    /// away.
    fn add(&mut self, network: IpAddr, reader: Reader) -> Option<u64> {
        if self.streams.len() >= MAX_STREAMS {
            let mut counts: HashMap<IpAddr, usize> = HashMap::new();
            for stream in &self.streams {
                *counts.entry(stream.network).or_default() += 1;
            }
            let (&busiest, &most) = counts.iter().max_by_key(|(_, count)| **count)?;
            // A difference of one would only move from client to client.
            if most <= counts.get(&network).copied().unwrap_or(0) + 1 {
                return None;
            }
            let oldest = self.streams.iter().position(|stream| stream.network == busiest)?;
            self.streams.remove(oldest)?.reader.0.notify_one();
        }
        let number = self.next;
        self.next += 1;
        self.streams.push_back(OpenStream { number, network, reader });
        Some(number)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.streams.retain(|stream| stream.number != self.number);
    }
}

/// The state of a stream.
struct Stream {
    streams: Arc<Streams>,
    seconds: watch::Receiver<u64>,
    /// When the last event was sent.
    sent: Option<Instant>,
    _place: Place,
}

impl Streams {
    pub(super) fn new(recent: RecentHistory, workers: Workers) -> Self {
        Self { recent, workers, open: Arc::default(), latest: AsyncMutex::default() }
    }

    /// Takes a place for a stream of a client; `None` if there is no room for it.
    fn take_place(&self, network: IpAddr, reader: Reader) -> Option<Place> {
        let number = self.open.lock().unwrap_or_else(PoisonError::into_inner).add(network, reader)?;
        Some(Place { open: Arc::clone(&self.open), number })
    }

    /// Returns the latest event; `None` if it cannot be made.
    async fn latest(&self) -> Option<Event> {
        let mut latest = self.latest.lock().await;
        let sequence = self.recent.sequence();
        if let Some((_, event)) = latest.as_ref().filter(|(known, _)| *known == sequence) {
            return Some(event.clone());
        }
        let recent = self.recent.clone();
        let made = self.workers.run(move || {
            let summary = recent.summary();
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
    _: Parameters<Nothing>,
    Extension(connection): Extension<ConnectionState>,
    Extension(reader): Extension<Reader>,
) -> Response {
    let Some(place) = streams.take_place(connection.network, reader) else {
        let reason = format!("there are {MAX_STREAMS} streams already; ask /api/v1/summary once a second\n");
        return (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, RETRY)], reason).into_response();
    };
    connection.begin_stream();
    let seconds = streams.recent.seconds();
    let stream = Stream { streams, seconds, sent: None, _place: place };
    Sse::new(stream::unfold(stream, Stream::next)).into_response()
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn network(number: u8) -> IpAddr {
        [192, 0, 2, number].into()
    }

    #[test]
    fn no_client_keeps_others_away() {
        let mut open = OpenStreams::default();
        let mut add = |client| {
            let reader = Reader(Arc::default());
            open.add(network(client), reader.clone()).map(|_| reader)
        };
        let is_closed = |reader: &Reader| reader.0.notified().now_or_never().is_some();
        let greedy: Vec<Reader> = (0..MAX_STREAMS).map(|_| add(1).unwrap()).collect();
        assert!(add(1).is_none(), "it has all of them already");
        let others = [add(2).unwrap(), add(3).unwrap(), add(2).unwrap()];
        let closed: Vec<bool> = greedy.iter().map(is_closed).collect();
        assert_eq!(closed.iter().filter(|closed| **closed).count(), others.len());
        assert!(closed[..others.len()].iter().all(|closed| *closed), "the oldest are closed: {closed:?}");
        assert!(!others.iter().any(is_closed));
        // Two clients end with the same share, and do not keep taking streams from each other.
        while add(2).is_some() {}
        assert!(add(1).is_none());
    }
}

//! The HTTP server: metrics, health, and a page for people. It never touches the kernel's maps.

mod negotiation;

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, VARY},
    },
    response::{Html, IntoResponse, Response},
    routing::get,
};
use futures_util::stream;
use negotiation::weight;
use tokio::{net::TcpListener, task::spawn_blocking};

use crate::{
    Error,
    sinks::prometheus::{Encoding, Metrics, Text},
};

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";

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

/// Takes the address.
///
/// # Errors
/// [`Error::Listen`] when it is not to be had.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| Error::Listen { address, source })
}

/// Serves until the task is dropped.
///
/// # Errors
/// When the listening socket fails.
pub async fn serve(listener: TcpListener, metrics: Metrics, readiness: Readiness) -> std::io::Result<()> {
    let router = Router::new()
        .route("/metrics", get(exposition).with_state(metrics))
        .route("/readyz", get(ready).with_state(readiness))
        .route("/healthz", get(|| async { "alive\n" }))
        .route("/", get(|| async { Html(include_str!("index.html")) }));
    axum::serve(listener, router).await
}

async fn exposition(State(metrics): State<Metrics>, headers: HeaderMap) -> Response {
    let (text, encoding) = wanted(&headers);
    // Where there are many groups this takes a while, and what drains the kernel has no time to wait.
    let Ok(Ok(page)) = spawn_blocking(move || metrics.page(text, encoding)).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let content_type = match text {
        Text::OpenMetrics => OPENMETRICS,
        Text::Classic => CLASSIC,
    };
    let head = [
        (CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (CONTENT_LENGTH, page.octets().into()),
        (VARY, HeaderValue::from_static("accept, accept-encoding")),
    ];
    let encoded =
        (encoding == Encoding::Gzip).then_some([(CONTENT_ENCODING, HeaderValue::from_static("gzip"))]);
    // Piece by piece, and the page is kept as long as somebody reads it.
    let chunks = (0..page.chunks().len()).map(move |index| Ok::<_, Infallible>(page.chunks()[index].clone()));
    let body = Body::from_stream(stream::iter(chunks));
    match encoded {
        Some(encoded) => (head, encoded, body).into_response(),
        None => (head, body).into_response(),
    }
}

/// The page that a client would rather have.
fn wanted(headers: &HeaderMap) -> (Text, Encoding) {
    let value = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let accept = value(ACCEPT);
    let open = weight(accept, "application/openmetrics-text").unwrap_or(0);
    let classic = weight(accept, "text/plain").unwrap_or(0);
    let text = if open > 0 && open >= classic { Text::OpenMetrics } else { Text::Classic };
    let is_gzip = weight(value(ACCEPT_ENCODING), "gzip").is_some_and(|weight| weight > 0);
    (text, if is_gzip { Encoding::Gzip } else { Encoding::Identity })
}

async fn ready(State(readiness): State<Readiness>) -> impl IntoResponse {
    if readiness.is_set() {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not attached yet\n")
    }
}

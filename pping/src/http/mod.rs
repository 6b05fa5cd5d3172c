//! The HTTP server: metrics, health, and a page for people. It never touches the kernel's maps.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    Router,
    extract::State,
    http::{
        HeaderMap, StatusCode,
        header::{ACCEPT, CONTENT_TYPE},
    },
    response::{Html, IntoResponse},
    routing::get,
};
use tokio::net::TcpListener;

use crate::{
    Error,
    sinks::prometheus::{Metrics, to_classic},
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

async fn exposition(State(metrics): State<Metrics>, headers: HeaderMap) -> impl IntoResponse {
    let Ok(text) = metrics.openmetrics() else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if accept.contains("application/openmetrics-text") {
        ([(CONTENT_TYPE, OPENMETRICS)], text).into_response()
    } else {
        ([(CONTENT_TYPE, CLASSIC)], to_classic(&text)).into_response()
    }
}

async fn ready(State(readiness): State<Readiness>) -> impl IntoResponse {
    if readiness.is_set() {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not attached yet\n")
    }
}

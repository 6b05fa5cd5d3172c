//! The pages.

use std::{convert::Infallible, sync::Arc};

use axum::{
    Extension, Router,
    body::Body,
    extract::State,
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, VARY},
    },
    response::{IntoResponse, Response},
    routing::get,
};
use futures_util::stream;

#[cfg(feature = "page")]
use super::page;
use super::{
    api,
    contents::Contents,
    negotiation::preferred,
    readers::{Reader, Readers},
    readiness::Readiness,
    workers::Workers,
};
use crate::metrics::{Encoding, Metrics, PageFormat};

/// The highest number of pages of metrics that are built at a time: with `--pin`, the agent waits for one of them.
pub(super) const AT_ONCE: usize = 1;

/// Returns the media type of a format.
const fn content_type(format: PageFormat) -> &'static str {
    match format {
        PageFormat::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        PageFormat::Classic => "text/plain; version=0.0.4; charset=utf-8",
        PageFormat::Protobuf => {
            "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
        }
    }
}

/// What `/` says in a build without the page.
#[cfg(not(feature = "page"))]
const NO_PAGE: &str = "this pping was built without the feature `page`, so there is no page here; \
                       /metrics is for Prometheus, and /api/v1/openapi.json describes the JSON API\n";

/// Routes all pages. Each request has a [`Reader`] among its extensions.
pub(super) fn router(contents: Contents) -> Router {
    let readiness = contents.readiness.clone();
    let metrics = (contents.metrics.clone(), Arc::<Readers>::default(), Workers::new(AT_ONCE));
    let router = Router::new()
        .nest("/api/v1", api::router(contents))
        .route("/metrics", get(exposition).with_state(metrics))
        .route("/readyz", get(ready).with_state(readiness))
        .route("/healthz", get(|| async { "alive\n" }))
        .fallback(|| async { (StatusCode::NOT_FOUND, "there is no such page; see /\n") });
    #[cfg(feature = "page")]
    let router = router.merge(page::router());
    #[cfg(not(feature = "page"))]
    let router = router.route("/", get(|| async { NO_PAGE }));
    router
}

async fn exposition(
    State((metrics, readers, workers)): State<(Metrics, Arc<Readers>, Workers)>,
    Extension(reader): Extension<Reader>,
    headers: HeaderMap,
) -> Response {
    // Several headers of a name are one list (RFC 9110, 5.3).
    let list = |name| {
        let values: Vec<_> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
        values.join(",")
    };
    let (format, encoding) = preferred(&list(ACCEPT), &list(ACCEPT_ENCODING));
    // With many groups this takes a while, and must not block other connections.
    let Some(page) = workers.run(move || metrics.page(format, encoding)).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    readers.add(&page, reader);
    let head = [
        (CONTENT_TYPE, HeaderValue::from_static(content_type(format))),
        (CONTENT_LENGTH, page.bytes().into()),
        (VARY, HeaderValue::from_static("accept, accept-encoding")),
    ];
    let encoded =
        (encoding == Encoding::Gzip).then_some([(CONTENT_ENCODING, HeaderValue::from_static("gzip"))]);
    // The stream keeps the page alive while the client reads it.
    let chunks = (0..page.chunks().len()).map(move |index| Ok::<_, Infallible>(page.chunks()[index].clone()));
    let body = Body::from_stream(stream::iter(chunks));
    match encoded {
        Some(encoded) => (head, encoded, body).into_response(),
        None => (head, body).into_response(),
    }
}

async fn ready(State(readiness): State<Readiness>) -> impl IntoResponse {
    if readiness.is_set() {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not attached yet\n")
    }
}

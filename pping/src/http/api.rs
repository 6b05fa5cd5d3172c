//! The JSON API: current measurements and those of the last 15 minutes. docs/schema/api.json describes the API, and the
//! server serves that file too.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, Query, State, rejection::QueryRejection},
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH},
    },
    response::{IntoResponse, Response},
    routing::get,
};
use serde::Serialize;
use tokio::task::spawn_blocking;

use super::events::{Streams, events};
use crate::view::{self, View};

const DESCRIPTION: &str = include_str!("../../../docs/schema/api.json");

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Routes all pages below `/api/v1`.
pub(super) fn router(view: View) -> Router {
    let streams = Arc::new(Streams::new(view.clone()));
    Router::new()
        .route("/summary", get(summary))
        .route("/history", get(history))
        .route("/groups", get(groups))
        .route("/groups/{id}", get(group))
        .route("/worst", get(worst))
        .with_state(view)
        .route("/events", get(events).with_state(streams))
        .route("/openapi.json", get(|| async { ([(CONTENT_TYPE, JSON)], DESCRIPTION) }))
}

async fn summary(State(view): State<View>, headers: HeaderMap) -> Response {
    answer(view, headers, |view| Some(view.summary())).await
}

async fn history(
    State(view): State<View>,
    query: Result<Query<view::Query>, QueryRejection>,
    headers: HeaderMap,
) -> Response {
    match query {
        Ok(Query(query)) => answer(view, headers, move |view| Some(view.history(&query))).await,
        Err(rejection) => refused(&rejection),
    }
}

async fn groups(
    State(view): State<View>,
    query: Result<Query<view::Query>, QueryRejection>,
    headers: HeaderMap,
) -> Response {
    match query {
        Ok(Query(query)) => answer(view, headers, move |view| Some(view.groups(&query))).await,
        Err(rejection) => refused(&rejection),
    }
}

async fn worst(
    State(view): State<View>,
    query: Result<Query<view::WorstQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Response {
    match query {
        Ok(Query(query)) => answer(view, headers, move |view| Some(view.worst(query))).await,
        Err(rejection) => refused(&rejection),
    }
}

async fn group(State(view): State<View>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    answer(view, headers, move |view| view.group(&id)).await
}

/// Responds with the answer as JSON: 304 if the client has the latest one, 404 if the group does not exist.
async fn answer<T: Serialize>(
    view: View,
    headers: HeaderMap,
    make: impl FnOnce(&View) -> Option<T> + Send + 'static,
) -> Response {
    // With many groups this takes some milliseconds, and must not block other connections.
    let made = spawn_blocking(move || {
        // The tag is read first, so that a change during the answer makes a new tag.
        let tag = format!("\"{}\"", view.sequence());
        let is_known = headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
        let body = if is_known { None } else { Some(make(&view).map(|answer| serde_json::to_vec(&answer))) };
        (tag, body)
    });
    let Ok((tag, body)) = made.await else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    let head = [(ETAG, tag), (CACHE_CONTROL, "no-cache".to_owned())];
    match body {
        None => (StatusCode::NOT_MODIFIED, head).into_response(),
        Some(None) => {
            (StatusCode::NOT_FOUND, "there is no group with this id; see /api/v1/groups\n").into_response()
        }
        Some(Some(Ok(body))) => (head, [(CONTENT_TYPE, JSON)], body).into_response(),
        Some(Some(Err(_))) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn refused(rejection: &QueryRejection) -> Response {
    (StatusCode::BAD_REQUEST, format!("{}\n", rejection.body_text())).into_response()
}

//! The JSON API: current measurements and those of the last 15 minutes. docs/schema/api.json describes the API, and the
//! server serves that file too.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
};

use axum::{
    Router,
    extract::{Path, State},
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH},
    },
    response::{IntoResponse, Response},
    routing::get,
};
use serde::Serialize;

use super::{
    contents::Contents,
    events::{Streams, events},
    parameters::{Nothing, Parameters, refusal},
    workers::Workers,
};
#[cfg(feature = "history")]
use crate::history::{Archive, Asked, Error};
use crate::recent::{self, RecentHistory};

/// The highest number of answers that are made at a time.
pub(super) const AT_ONCE: usize = 2;

/// The highest number of answers from the history at a time: each may read hundreds of files.
#[cfg(feature = "history")]
pub(super) const PAST_AT_ONCE: usize = 1;
#[cfg(not(feature = "history"))]
pub(super) const PAST_AT_ONCE: usize = 0;

const DESCRIPTION: &str = include_str!("../../../docs/schema/api.json");

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What answers are made with.
#[derive(Clone)]
struct Api {
    recent: RecentHistory,
    workers: Workers,
    /// The history of months, with `--history`.
    #[cfg(feature = "history")]
    archive: Option<Archive>,
    /// Those that read it. They take longer, and nobody else waits for them.
    #[cfg(feature = "history")]
    readers: Workers,
    /// A random number that tells this server from earlier ones, whose sequences began at zero too.
    run: u64,
}

/// Routes all pages below `/api/v1`.
pub(super) fn router(contents: Contents) -> Router {
    let Contents { recent, .. } = contents;
    let api = Api::new(recent.clone());
    #[cfg(feature = "history")]
    let api = Api { archive: contents.archive, ..api };
    let streams = Arc::new(Streams::new(recent, api.workers.clone()));
    Router::new()
        .route("/summary", get(summary))
        .route("/history", get(history))
        .route("/history/worst", get(worst_of_range))
        .route("/groups", get(groups))
        .route("/groups/{id}", get(group))
        .route("/worst", get(worst))
        .with_state(api)
        .route("/events", get(events).with_state(streams))
        .route("/openapi.json", get(description))
}

async fn summary(State(api): State<Api>, _: Parameters<Nothing>, headers: HeaderMap) -> Response {
    api.answer(&headers, |recent| Ok(recent.summary())).await
}

async fn history(
    State(api): State<Api>,
    Parameters(query): Parameters<recent::HistoryQuery>,
    headers: HeaderMap,
) -> Response {
    if query.is_of_past() {
        #[cfg(feature = "history")]
        return api.past(&query, Archive::history).await;
        #[cfg(not(feature = "history"))]
        return refusal("from, to, step, group: this pping was built without the feature `history`");
    }
    let query = query.series();
    api.answer(&headers, move |recent| Ok(recent.history(&query))).await
}

async fn worst_of_range(
    State(api): State<Api>,
    Parameters(query): Parameters<recent::WorstOfRangeQuery>,
) -> Response {
    #[cfg(feature = "history")]
    return api
        .past(&query.history(), move |archive, asked| archive.worst_of_range(asked, query.limit))
        .await;
    #[cfg(not(feature = "history"))]
    {
        let (_, _) = (api, query);
        refusal("this pping was built without the feature `history`")
    }
}

async fn groups(
    State(api): State<Api>,
    Parameters(query): Parameters<recent::Query>,
    headers: HeaderMap,
) -> Response {
    match query.check(api.recent.has_sides(), &api.recent.levels(), api.recent.has_networks()) {
        Ok(()) => api.answer(&headers, move |recent| recent.groups_under(&query)).await,
        Err(reason) => refusal(&reason),
    }
}

async fn worst(
    State(api): State<Api>,
    Parameters(query): Parameters<recent::WorstQuery>,
    headers: HeaderMap,
) -> Response {
    match query.check(&api.recent.levels(), api.recent.has_networks()) {
        Ok(()) => api.answer(&headers, move |recent| Ok(recent.worst(&query))).await,
        Err(reason) => refusal(&reason),
    }
}

async fn group(
    State(api): State<Api>,
    Path(id): Path<String>,
    _: Parameters<Nothing>,
    headers: HeaderMap,
) -> Response {
    let nothing = || "there is no group with this id; see /api/v1/groups".to_owned();
    api.answer(&headers, move |recent| recent.group(&id).ok_or_else(nothing)).await
}

async fn description(_: Parameters<Nothing>) -> impl IntoResponse {
    ([(CONTENT_TYPE, JSON)], DESCRIPTION)
}

impl Api {
    fn new(recent: RecentHistory) -> Self {
        Self {
            recent,
            workers: Workers::new(AT_ONCE),
            #[cfg(feature = "history")]
            archive: None,
            #[cfg(feature = "history")]
            readers: Workers::new(PAST_AT_ONCE),
            run: RandomState::new().hash_one(0),
        }
    }

    /// Returns the tag of the present answers. It changes with the sequence, and with each start of pping.
    fn tag(&self) -> String {
        format!("\"{:016x}-{}\"", self.run, self.recent.sequence())
    }

    /// Responds with a range of the past.
    #[cfg(feature = "history")]
    async fn past<T: Serialize>(
        &self,
        query: &recent::HistoryQuery,
        make: impl FnOnce(&Archive, &Asked) -> Result<T, Error> + Send + 'static,
    ) -> Response {
        let Some(archive) = self.archive.clone() else {
            return refusal(
                "from, to, step, group: this pping keeps no history; start it with --history DIR",
            );
        };
        let asked = match Asked::from_texts(query) {
            Ok(asked) => asked,
            Err(reason) => return refusal(&reason),
        };
        let read = move || make(&archive, &asked).map(|answer| serde_json::to_vec(&answer));
        match self.readers.run(read).await {
            Some(Ok(Ok(body))) => {
                ([(CACHE_CONTROL, "no-cache")], [(CONTENT_TYPE, JSON)], body).into_response()
            }
            Some(Err(error)) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response(),
            Some(Ok(Err(_))) | None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }

    /// Responds with the answer as JSON: 304 if the client has the latest one, 404 if what it asks for does not exist:
    /// `make` says so then.
    async fn answer<T: Serialize>(
        &self,
        headers: &HeaderMap,
        make: impl FnOnce(&RecentHistory) -> Result<T, String> + Send + 'static,
    ) -> Response {
        // The tag is read first, so that a change during the answer makes a new tag.
        let tag = self.tag();
        let is_known = headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
        let head = [(ETAG, tag), (CACHE_CONTROL, "no-cache".to_owned())];
        if is_known {
            return (StatusCode::NOT_MODIFIED, head).into_response();
        }
        let recent = self.recent.clone();
        // With many groups this takes some milliseconds, and must not block other connections.
        let made = self.workers.run(move || make(&recent).map(|answer| serde_json::to_vec(&answer)));
        match made.await {
            Some(Ok(Ok(body))) => (head, [(CONTENT_TYPE, JSON)], body).into_response(),
            Some(Err(reason)) => (StatusCode::NOT_FOUND, format!("{reason}\n")).into_response(),
            Some(Ok(Err(_))) | None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etag_changes_with_data_and_run() {
        let recent = RecentHistory::new(recent::MEMORY);
        let (api, other) = (Api::new(recent.clone()), Api::new(RecentHistory::new(recent::MEMORY)));
        let tag = api.tag();
        assert_eq!(api.tag(), tag);
        assert_ne!(other.tag(), tag, "both have changed as often");
        recent.add(&[], 1_800_000_000_000_000_000);
        assert_ne!(api.tag(), tag);
    }
}

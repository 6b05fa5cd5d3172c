//! What stands before the pages: the same for each of them, `/healthz` too.

use std::time::Instant;

use axum::{
    body::{Body, HttpBody},
    http::{
        HeaderValue, Request, StatusCode,
        header::{AUTHORIZATION, WWW_AUTHENTICATE},
    },
    response::{IntoResponse as _, Response},
};
use hyper::{body::Incoming, service::Service as _};
use hyper_util::service::TowerToHyperService;

use super::{Readiness, auth::Gate, pages, web_config::WebConfig};
use crate::metrics::Metrics;

/// What all connections share.
pub(super) struct Site {
    pages: TowerToHyperService<axum::Router>,
    pub(super) web_config: WebConfig,
    gate: Gate,
}

impl Site {
    pub(super) fn new(metrics: Metrics, readiness: Readiness, web_config: WebConfig) -> Self {
        let pages = TowerToHyperService::new(pages::router(metrics, readiness));
        Self { pages, web_config, gate: Gate::default() }
    }

    /// The answer to a request.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response {
        let settings = self.web_config.current();
        let mut response = if settings.rate_limit.as_ref().is_some_and(|limit| !limit.admits(Instant::now()))
        {
            (StatusCode::TOO_MANY_REQUESTS, "that is more than rate_limit allows\n").into_response()
        } else if !request.body().is_end_stream() {
            (StatusCode::PAYLOAD_TOO_LARGE, "no page here takes a body\n").into_response()
        } else if self.gate.admits(&settings.users, request.headers().get(AUTHORIZATION)).await {
            match self.pages.call(request).await {
                Ok(response) => response.map(Body::new),
                Err(never) => match never {},
            }
        } else {
            let challenge = HeaderValue::from_static("Basic realm=\"pping\", charset=\"UTF-8\"");
            (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, challenge)], "a password is needed\n")
                .into_response()
        };
        for (name, value) in &settings.headers {
            response.headers_mut().insert(name, value.clone());
        }
        response
    }
}

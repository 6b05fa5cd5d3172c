//! The checks before every page, `/healthz` included: rate limit, method, body, password.

use std::time::Instant;

use axum::{
    body::{Body, HttpBody},
    http::{
        HeaderValue, Method, Request, StatusCode,
        header::{ALLOW, AUTHORIZATION, WWW_AUTHENTICATE},
    },
    response::{IntoResponse as _, Response},
};
use hyper::{body::Incoming, service::Service as _};
use hyper_util::service::TowerToHyperService;

use super::{auth::Authenticator, pages, readiness::Readiness, web_config::WebConfig};
use crate::{metrics::Metrics, view::View};

/// The state that all connections share.
pub(super) struct Site {
    pages: TowerToHyperService<axum::Router>,
    pub(super) web_config: WebConfig,
    authenticator: Authenticator,
}

impl Site {
    pub(super) fn new(metrics: Metrics, view: View, readiness: Readiness, web_config: WebConfig) -> Self {
        let pages = TowerToHyperService::new(pages::router(metrics, view, readiness));
        Self { pages, web_config, authenticator: Authenticator::default() }
    }

    /// Responds to a request.
    pub(super) async fn respond(&self, request: Request<Incoming>) -> Response {
        let in_force = self.web_config.current();
        let mut response = if in_force.rate_limit.as_ref().is_some_and(|limit| !limit.allows(Instant::now()))
        {
            (StatusCode::TOO_MANY_REQUESTS, "more requests than rate_limit allows\n").into_response()
        } else if ![Method::GET, Method::HEAD].contains(request.method()) {
            let allow = [(ALLOW, HeaderValue::from_static("GET,HEAD"))];
            (StatusCode::METHOD_NOT_ALLOWED, allow, "pages can only be read, with GET or HEAD\n")
                .into_response()
        } else if !request.body().is_end_stream() {
            (StatusCode::PAYLOAD_TOO_LARGE, "no page here takes a body\n").into_response()
        } else if self.authenticator.allows(&in_force.users, request.headers().get(AUTHORIZATION)).await {
            match self.pages.call(request).await {
                Ok(response) => response.map(Body::new),
                Err(never) => match never {},
            }
        } else {
            let challenge = HeaderValue::from_static("Basic realm=\"pping\", charset=\"UTF-8\"");
            (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, challenge)], "a password is needed\n")
                .into_response()
        };
        for (name, value) in &in_force.headers {
            response.headers_mut().insert(name, value.clone());
        }
        response
    }
}

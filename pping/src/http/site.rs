//! The checks before every page, `/healthz` included: rate limit, method, body, host, password.

use std::{
    sync::{PoisonError, RwLock},
    time::Instant,
};

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

use super::{
    access::{Access, Names},
    auth::Authenticator,
    contents::Contents,
    pages,
    web_config::WebConfig,
};

/// The state that all connections share.
pub(super) struct Site {
    pages: TowerToHyperService<axum::Router>,
    pub(super) web_config: WebConfig,
    authenticator: Authenticator,
    names: RwLock<Names>,
}

/// The header by which browsers say which site a request comes from.
const SEC_FETCH_SITE: &str = "sec-fetch-site";

impl Site {
    pub(super) fn new(contents: Contents, web_config: WebConfig, names: Names) -> Self {
        let pages = TowerToHyperService::new(pages::router(contents));
        Self { pages, web_config, authenticator: Authenticator::default(), names: names.into() }
    }

    /// Lets clients in as this says from now on.
    pub(super) fn reload(&self, access: Access) {
        *self.names.write().unwrap_or_else(PoisonError::into_inner) = Names::new(&access.names);
        self.web_config.reload(access.web_config);
    }

    /// Responds to a request.
    pub(super) async fn respond(&self, request: Request<Incoming>) -> Response {
        let config = self.web_config.current();
        let mut response = if config.rate_limit.as_ref().is_some_and(|limit| !limit.allows(Instant::now())) {
            (StatusCode::TOO_MANY_REQUESTS, "more requests than rate_limit allows\n").into_response()
        } else if ![Method::GET, Method::HEAD].contains(request.method()) {
            let allow = [(ALLOW, HeaderValue::from_static("GET,HEAD"))];
            (StatusCode::METHOD_NOT_ALLOWED, allow, "pages can only be read, with GET or HEAD\n")
                .into_response()
        } else if !request.body().is_end_stream() {
            (StatusCode::PAYLOAD_TOO_LARGE, "no page here takes a body\n").into_response()
        } else if let Some(refusal) = self.refusal(&request, config.is_open()) {
            refusal
        } else if self.authenticator.allows(&config.users, request.headers().get(AUTHORIZATION)).await {
            match self.pages.call(request).await {
                Ok(response) => response.map(Body::new),
                Err(never) => match never {},
            }
        } else {
            let challenge = HeaderValue::from_static("Basic realm=\"pping\", charset=\"UTF-8\"");
            (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, challenge)], "a password is needed\n")
                .into_response()
        };
        for (name, value) in &config.headers {
            response.headers_mut().insert(name, value.clone());
        }
        response
    }

    /// Returns the response to a request that another web site may have made.
    fn refusal<B>(&self, request: &Request<B>, is_open: bool) -> Option<Response> {
        let is_of_api = request.uri().path().starts_with("/api/");
        if is_of_api && request.headers().get(SEC_FETCH_SITE).is_some_and(|site| site == "cross-site") {
            let text = "other web sites cannot use /api; open its address by itself\n";
            return Some((StatusCode::FORBIDDEN, text).into_response());
        }
        is_open.then(|| self.names.read().unwrap_or_else(PoisonError::into_inner).refusal(request))?
    }
}

//! The parameters of a request to the API.

use std::error::Error as _;

use axum::{
    extract::{FromRequestParts, Query, rejection::QueryRejection},
    http::{StatusCode, request::Parts},
    response::{IntoResponse as _, Response},
};
use serde::{Deserialize, de::DeserializeOwned};

/// The parameters of a request. A request with others is refused, so that nobody takes an answer for that to a question that
/// was not understood.
pub(super) struct Parameters<T>(pub(super) T);

/// No parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Parameters<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(parameters)) => Ok(Self(parameters)),
            Err(rejection) => Err(refusal(&reason(&rejection))),
        }
    }
}

/// Responds that a query is invalid, and why.
pub(super) fn refusal(reason: &str) -> Response {
    let text = format!("invalid query: {reason}; /api/v1/openapi.json describes all parameters\n");
    (StatusCode::BAD_REQUEST, text).into_response()
}

/// Returns what is wrong with a query.
fn reason(rejection: &QueryRejection) -> String {
    let mut text = rejection.source().map_or_else(|| rejection.body_text(), ToString::to_string);
    for (of_parser, plain) in [
        ("unknown variant", "unknown value"),
        ("unknown field", "unknown parameter"),
        ("there are no fields", "there are none here"),
        ("duplicate field", "given more than once:"),
        ("invalid digit found in string", "give a whole number"),
    ] {
        text = text.replace(of_parser, plain);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recent;

    fn said<T: DeserializeOwned>(query: &str) -> String {
        let address = format!("/api/v1/groups?{query}").parse().unwrap();
        reason(&Query::<T>::try_from_uri(&address).map(drop).unwrap_err())
    }

    #[test]
    fn a_refusal_says_in_plain_words_what_to_do() {
        for (query, text) in [
            ("limit=-1", "limit: give a whole number"),
            ("limit=1001", "limit: at most 1000 groups can be listed at once; ask for the next"),
            ("order=up", "order: unknown value `up`, expected `asc` or `desc`"),
            ("sorted=p50", "sorted: unknown parameter `sorted`, expected one of `view`, "),
            ("method=tcp", "method: unknown value `tcp`, expected one of `tcp-ts`, `icmp-echo`, "),
            ("matched=beyond", "matched: unknown value `beyond`, expected one of `ingress`, `egress`"),
        ] {
            let said = said::<recent::Query>(query);
            assert!(said.starts_with(text), "{said}");
        }
    }

    #[test]
    fn each_path_refuses_what_it_does_not_know() {
        let unknown = said::<Nothing>("a=1");
        assert!(unknown.contains("unknown parameter `a`, there are none here"), "{unknown}");
        let of_groups = said::<recent::SeriesQuery>("limit=7");
        assert!(
            of_groups.contains("unknown parameter `limit`, expected one of `interface`, "),
            "{of_groups}"
        );
        assert!(said::<recent::SeriesQuery>("method=foo").contains("unknown value `foo`, "));
        assert!(said::<recent::WorstQuery>("by=rtt&limits=7").contains("unknown parameter `limits`, "));
    }
}

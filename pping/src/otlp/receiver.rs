//! The receiver of metrics, by HTTP.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::{
    HeaderMap, HeaderValue, Method, Request, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT},
};
use http_body_util::Full;
use hyper::body::Bytes;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use prost::Message as _;
use serde_json::Value;

use super::{Error, headers, message};
use crate::{
    config::{Endpoint, Otlp},
    http_client::{self, Answer, NoBody, Server, escaped},
    metrics::Failed,
    trust::{self, Trusted},
};

/// The longest answer that is read, bytes.
const MAX_ANSWER: usize = 64 << 10;

/// The port of receivers by gRPC (OTLP 1.9, "OTLP/gRPC Default Port"), and what to use instead.
const GRPC_PORT: u16 = 4317;
const HTTP_HINT: &str = "; port 4317 usually takes gRPC, which pping does not speak: 4318 takes HTTP";

const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");

/// A receiver, with the headers and the TLS configuration for it.
#[derive(Clone, Debug)]
pub struct Receiver(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    endpoint: Endpoint,
    /// The request's headers.
    headers: HeaderMap,
    server: Server,
}

/// The answer of a receiver that accepted a request.
#[derive(Debug, Default)]
pub(super) struct Accepted {
    /// The number of data points that the receiver rejected.
    pub(super) rejected: u64,
    /// The reason, or another remark.
    pub(super) message: String,
}

/// Why a request was not accepted.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) kind: Failed,
    /// In words.
    pub(super) reason: String,
    /// Whether it makes sense to send the request again.
    pub(super) may_retry: bool,
    /// The wait that the receiver asks for.
    pub(super) retry_after: Option<Duration>,
}

impl Failure {
    fn new(kind: Failed, reason: impl fmt::Display) -> Self {
        Self { kind, reason: reason.to_string(), may_retry: true, retry_after: None }
    }

    fn unanswered(failure: &http_client::Failure, host: &str) -> Self {
        let reason = failure.in_words("--otlp-ca");
        match failure {
            http_client::Failure::Tls(_) => Self::new(Failed::Tls, format!("TLS with {host}: {reason}")),
            _ if failure.is_of_tls() => Self::new(Failed::Tls, reason),
            http_client::Failure::Exchange(error) if error.is_parse() => Self::new(Failed::Answer, reason),
            http_client::Failure::Exchange(_) | http_client::Failure::Connection(_) => {
                Self::new(Failed::Connection, reason)
            }
            http_client::Failure::LateConnection | http_client::Failure::Late => {
                Self::new(Failed::Timeout, reason)
            }
        }
    }
}

/// The part of a `google.rpc.Status` that is for people (OTLP 1.9, "Failures").
#[derive(Clone, PartialEq, Eq, prost::Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
}

impl Receiver {
    /// Reads the files that the settings name. Sends nothing.
    ///
    /// # Errors
    /// If the settings or one of the files has an error.
    pub fn new(settings: &Otlp) -> Result<Self, Error> {
        let endpoint = &settings.endpoint;
        let wrong =
            |error: &dyn fmt::Display| Error::Host { url: endpoint.to_string(), reason: error.to_string() };
        let mut all = settings.headers.as_deref().map(headers::read).transpose()?.unwrap_or_default();
        let host = HeaderValue::from_str(&endpoint.authority).map_err(|error| wrong(&error))?;
        let agent = HeaderValue::from_static(concat!("pping/", env!("CARGO_PKG_VERSION")));
        all.entry(USER_AGENT).or_insert(agent);
        all.insert(HOST, host);
        all.insert(CONTENT_TYPE, PROTOBUF);
        all.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        let authorities = Trusted::Listed(settings.authorities.as_deref());
        let tls = endpoint.is_tls.then(|| trust::client(authorities, None)).transpose();
        let tls = tls.map_err(|fault| Error::untrusted(settings, fault))?;
        let server = Server::new(endpoint.host.clone(), endpoint.port, tls).map_err(|error| wrong(&error))?;
        Ok(Self(Arc::new(Parts { endpoint: endpoint.clone(), headers: all, server })))
    }

    /// Returns the endpoint.
    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.0.endpoint
    }

    /// Sends a request without metrics.
    ///
    /// # Errors
    /// If the receiver does not accept the request; the error says why in words.
    pub async fn probe(&self) -> Result<(), String> {
        self.send(message::empty()).await.map(drop).map_err(|failure| failure.reason)
    }

    /// Sends a request.
    pub(super) async fn send(&self, body: Bytes) -> Result<Accepted, Failure> {
        self.try_send(body).await.map_err(|failure| self.with_hint(failure))
    }

    /// Adds what is probably wrong if the port is the one for gRPC.
    fn with_hint(&self, mut failure: Failure) -> Failure {
        if self.0.endpoint.port == GRPC_PORT {
            failure.reason.push_str(HTTP_HINT);
        }
        failure
    }

    async fn try_send(&self, body: Bytes) -> Result<Accepted, Failure> {
        let Parts { endpoint, headers, server } = &*self.0;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() =
            endpoint.path.parse().map_err(|error| Failure::new(Failed::Connection, error))?;
        *request.headers_mut() = headers.clone();
        let answer = server.ask(request, MAX_ANSWER).await;
        read_answer(answer.map_err(|failure| Failure::unanswered(&failure, &endpoint.host))?)
    }
}

/// Reads an answer.
fn read_answer(answer: Answer) -> Result<Accepted, Failure> {
    let (head, body) = answer.into_parts();
    let content_type =
        head.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default().to_owned();
    if !head.status.is_success() {
        let message = body.map(|body| refusal_message(&content_type, &body)).unwrap_or_default();
        return Err(refusal(head.status, &head.headers, &message));
    }
    // A receiver that answers with success has the metrics, so they are not sent again.
    let garbage = |reason: String| {
        let reason =
            format!("it answered {}, but {reason}; is this the URL of an OTLP receiver?", head.status);
        Failure { may_retry: false, ..Failure::new(Failed::Answer, reason) }
    };
    let body = body.map_err(|reason| match reason {
        NoBody::TooLong => garbage(format!("with more than {} KiB", MAX_ANSWER >> 10)),
        NoBody::BrokenOff(reason) => garbage(format!("the answer broke off ({reason})")),
    })?;
    // Some receivers always answer in JSON.
    if content_type.starts_with(b"application/json") {
        return Ok(accepted_in_json(&body));
    }
    let answer = ExportMetricsServiceResponse::decode(body)
        .map_err(|error| garbage(format!("not in protobuf ({error})")))?;
    let partial = answer.partial_success.unwrap_or_default();
    Ok(Accepted {
        rejected: partial.rejected_data_points.try_into().unwrap_or(0),
        message: escaped(&partial.error_message),
    })
}

/// Reads the JSON encoding of an `ExportMetricsServiceResponse` (OTLP, "JSON Protobuf Encoding": a 64-bit number is a string).
/// Other JSON says nothing.
fn accepted_in_json(body: &[u8]) -> Accepted {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let partial = &answer["partialSuccess"];
    let rejected = &partial["rejectedDataPoints"];
    Accepted {
        rejected: rejected.as_u64().or_else(|| rejected.as_str()?.parse().ok()).unwrap_or(0),
        message: escaped(partial["errorMessage"].as_str().unwrap_or_default()),
    }
}

/// Returns the failure for a status other than success.
fn refusal(status: StatusCode, headers: &HeaderMap, message: &str) -> Failure {
    let may_retry = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    );
    let separator = if message.is_empty() { "" } else { ": " };
    let retry_after = headers.get(RETRY_AFTER).and_then(|value| after(value.to_str().ok()?));
    let reason = format!("it answered {status}{separator}{message}");
    Failure { may_retry, retry_after, ..Failure::new(Failed::Status, reason) }
}

/// Returns the wait that a `Retry-After` asks for (RFC 9110, 10.2.3).
fn after(value: &str) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

/// Returns the message in the body of a refusal.
fn refusal_message(content_type: &[u8], body: &Bytes) -> String {
    if content_type.starts_with(b"application/x-protobuf") {
        return Status::decode(body.clone()).map(|status| escaped(&status.message)).unwrap_or_default();
    }
    escaped(String::from_utf8_lossy(body).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_statuses_that_pass_are_worth_another_attempt() {
        for status in 300..600 {
            let failure = refusal(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), "so");
            assert_eq!(failure.may_retry, [429, 502, 503, 504].contains(&status), "{status}");
            assert!(
                failure.reason.contains(&format!("answered {status}")) && failure.reason.ends_with(": so")
            );
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(after("120"), Some(Duration::from_mins(2)));
        let later = SystemTime::now() + Duration::from_hours(1);
        let parsed = after(&httpdate::fmt_http_date(later)).unwrap();
        assert!((Duration::from_mins(59)..=Duration::from_hours(1)).contains(&parsed), "{parsed:?}");
        assert_eq!(after("Fri, 31 Dec 1999 23:59:59 GMT"), Some(Duration::ZERO));
        assert_eq!((after("soon"), after("-1"), after("1.5")), (None, None, None));
    }

    #[test]
    fn words_of_a_receiver_cannot_write_lines_into_the_log() {
        let text = "no\nway\u{1b}[2J";
        let status = Status { message: text.to_owned() }.encode_to_vec();
        for (content_type, body) in [(&b"text/plain"[..], text.into()), (b"application/x-protobuf", status)] {
            assert_eq!(refusal_message(content_type, &body.into()), "no\\nway\\u{1b}[2J");
        }
        assert_eq!(refusal_message(b"application/x-protobuf", &Bytes::from_static(b"\xff")), "");
    }

    #[test]
    fn refused_data_points_are_read_from_json() {
        for (json, rejected, message) in [
            (r#"{"partialSuccess":{"rejectedDataPoints":"3","errorMessage":"too\nold"}}"#, 3, "too\\nold"),
            (r#"{"partialSuccess":{"rejectedDataPoints":3}}"#, 3, ""),
            (r#"{"partialSuccess":{}}"#, 0, ""),
            ("{}", 0, ""),
            ("[1]", 0, ""),
            ("no", 0, ""),
        ] {
            let accepted = accepted_in_json(json.as_bytes());
            assert_eq!((accepted.rejected, accepted.message.as_str()), (rejected, message), "{json}");
        }
    }
}

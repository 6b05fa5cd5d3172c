//! The URL of a receiver of OTLP.

use std::fmt;

use http::{
    Uri,
    uri::{Authority, PathAndQuery, Scheme},
};

/// The path of metrics, for a URL that has none (OTLP 1.9, "OTLP/HTTP Request").
const METRICS: &str = "/v1/metrics";

/// Where metrics are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Whether the URL begins with https.
    pub is_tls: bool,
    /// The host: a name, or an address without brackets.
    pub host: String,
    /// The port in the URL, or the default port of the scheme.
    pub port: u16,
    /// The value of the header `Host`: the host and the port as in the URL.
    pub authority: String,
    /// The path, with the query if there is one.
    pub path: String,
}

/// The advice at the end of messages about a URL.
const EXAMPLE: &str = "give a URL like http://collector.example:4318";

/// Returns the port in a URL, or that of its scheme if it has none. `None` if it has something else there.
pub(crate) fn port(authority: &Authority, is_tls: bool) -> Option<u16> {
    let has_none = authority.as_str().ends_with(authority.host());
    if has_none { Some(if is_tls { 443 } else { 80 }) } else { authority.port_u16() }
}

/// Parses a URL.
pub(super) fn endpoint(text: &str) -> Result<Endpoint, String> {
    let refused = |reason: &str| Err(format!("{reason}; {EXAMPLE}"));
    if text.contains('#') {
        return refused("the URL of a receiver cannot have a fragment");
    }
    let uri: Uri = match text.parse() {
        Ok(uri) => uri,
        Err(error) => return refused(&format!("this is not a URL ({error})")),
    };
    let is_tls = match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTP => false,
        Some(scheme) if *scheme == Scheme::HTTPS => true,
        Some(scheme) => return refused(&format!("`{scheme}` is not supported, only http and https are")),
        None => return refused("it has to begin with http:// or https://"),
    };
    let Some(authority) = uri.authority().filter(|authority| !authority.host().is_empty()) else {
        return refused("there is no host in it");
    };
    if authority.as_str().contains('@') {
        return Err("it has a user name or password, which anyone who lists processes can see; put an \
                    authorization header into the file of --otlp-headers instead"
            .to_owned());
    }
    let port = match port(authority, is_tls) {
        Some(0) => return refused("there is no port 0"),
        Some(port) => port,
        None => return refused("the port is not a number from 1 to 65535"),
    };
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    Ok(Endpoint {
        is_tls,
        host: authority.host().trim_matches(['[', ']']).to_owned(),
        port,
        authority: authority.to_string(),
        path: if path == "/" { METRICS } else { path }.to_owned(),
    })
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { is_tls, authority, path, .. } = self;
        write!(formatter, "http{}://{authority}{path}", if *is_tls { "s" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_a_path_gets_that_of_metrics() {
        for (text, url, host, port) in [
            ("http://localhost:4318", "http://localhost:4318/v1/metrics", "localhost", 4318),
            ("http://localhost:4318/", "http://localhost:4318/v1/metrics", "localhost", 4318),
            ("https://collector.example", "https://collector.example/v1/metrics", "collector.example", 443),
            ("http://collector.example", "http://collector.example/v1/metrics", "collector.example", 80),
            ("HTTPS://[2001:db8::1]:9/a?b=c", "https://[2001:db8::1]:9/a?b=c", "2001:db8::1", 9),
            ("http://[::1]", "http://[::1]/v1/metrics", "::1", 80),
            ("http://192.0.2.1:4317", "http://192.0.2.1:4317/v1/metrics", "192.0.2.1", 4317),
        ] {
            let endpoint = endpoint(text).unwrap();
            assert_eq!(
                (endpoint.to_string().as_str(), endpoint.host.as_str(), endpoint.port),
                (url, host, port)
            );
            assert_eq!(endpoint.is_tls, url.starts_with("https"));
        }
    }

    #[test]
    fn invalid_receiver_urls_are_refused_with_reason() {
        for (text, reason) in [
            ("collector.example:4318", "http"),
            ("collector", "http"),
            ("/v1/metrics", "http"),
            ("grpc://collector.example:4317", "`grpc`"),
            ("https://", "URL"),
            ("http://:4318", "host"),
            ("http://collector.example:port", "port"),
            ("http://collector.example:", "port"),
            ("http://collector.example:65536", "port"),
            ("http://collector.example:0", "port 0"),
            ("http://me:secret@collector.example", "--otlp-headers"),
            ("http://collector.example/#metrics", "fragment"),
            ("http://col lector.example", "URL"),
        ] {
            let said = endpoint(text).unwrap_err();
            assert!(said.contains(reason), "{text}: {said}");
        }
    }
}

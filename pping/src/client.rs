//! A client for `/api/v1` of a running pping.

use std::{
    io,
    net::Ipv6Addr,
    path::{Path, PathBuf},
    sync::Arc,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{
    HeaderValue, Request, StatusCode, Uri,
    header::{AUTHORIZATION, HOST},
    uri::Scheme,
};
use http_body_util::Full;
use rustls::ClientConfig;
use serde::de::DeserializeOwned;

use crate::{
    config,
    http_client::{Failure, NoBody, Server, escaped},
    trust::{self, Identity, TlsError, Trusted},
};

/// The longest answer that is read, bytes: enough for all groups that a screen can show.
const MAX_ANSWER: usize = 16 << 20;

/// The pping to ask.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// Its URL, as it was given.
    pub url: String,
    /// A name and a password, with a colon between them.
    pub user: Option<String>,
    /// The file with the authorities to trust. Without one, those of the system are trusted.
    pub authorities: Option<PathBuf>,
    /// Whether any certificate is accepted.
    pub is_insecure: bool,
    /// The file with the client's certificate, and with its key if `key` names no other file.
    pub certificate: Option<PathBuf>,
    /// The file with the key.
    pub key: Option<PathBuf>,
}

impl Source {
    /// An option that is set and has a meaning for TLS alone.
    fn option_of_tls(&self) -> Option<&'static str> {
        [
            ("--insecure", self.is_insecure),
            ("--cacert", self.authorities.is_some()),
            ("--cert", self.certificate.is_some()),
        ]
        .into_iter()
        .find_map(|(option, is_set)| is_set.then_some(option))
    }
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL is invalid.
    #[error("--connect {url}: {reason}; give one like http://127.0.0.1:9464")]
    Url {
        /// The URL.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Certificates cannot be used. The text names the option.
    #[error("{0}")]
    Certificates(String),
    /// Nobody accepts a connection.
    #[error("--connect {url}: {reason}; is pping running with --listen?")]
    Connect {
        /// The URL.
        url: String,
        /// What went wrong.
        reason: String,
    },
    /// Somebody accepted a connection, but gave no answer on it.
    #[error("--connect {url}: {reason}")]
    NoAnswer {
        /// The URL.
        url: String,
        /// What went wrong.
        reason: String,
    },
    /// A password is missing, or wrong.
    #[error(
        "--connect {0}: this pping requires a password; give --user NAME:PASSWORD, as in its --web-config"
    )]
    Password(String),
    /// The server has no `/api/v1`.
    #[error(
        "--connect {0}: the server there has no /api/v1: it is not pping, or an older version; upgrade it \
         or give another URL"
    )]
    TooOld(String),
    /// The answer cannot be decoded.
    #[error("cannot decode the answer, which may come from another version of pping: {0}")]
    Answer(String),
    /// The system failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Error {
    /// Whether the command line is at fault.
    pub(crate) fn is_usage(&self) -> bool {
        matches!(self, Self::Url { .. } | Self::Certificates(_) | Self::Password(_))
    }
}

/// A client of one pping.
#[derive(Debug)]
pub(crate) struct Client {
    url: String,
    server: Server,
    authority: HeaderValue,
    authorization: Option<HeaderValue>,
}

impl Client {
    /// Parses the URL and reads the certificates. Sends nothing.
    ///
    /// # Errors
    /// If the URL, the password or a certificate cannot be used.
    pub(crate) fn new(source: &Source) -> Result<Self, Error> {
        let wrong = |reason: &str| Error::Url { url: source.url.clone(), reason: reason.to_owned() };
        if let Some(host) = bare_ipv6(&source.url) {
            return Err(wrong(&format!("an IPv6 address needs brackets: write [{host}]")));
        }
        let uri: Uri = source.url.parse().map_err(|error| wrong(&format!("this is not a URL ({error})")))?;
        let is_tls = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            _ => return Err(wrong("it has to begin with http:// or https://")),
        };
        if uri.path() != "/" || uri.query().is_some() || source.url.contains('#') {
            return Err(wrong("it has a path; leave that out, pping top adds it"));
        }
        let authority = uri.authority().ok_or_else(|| wrong("there is no host in it"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("a password goes into --user NAME:PASSWORD"));
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        if host.is_empty() {
            return Err(wrong("there is no host in it"));
        }
        if let Some(option) = source.option_of_tls().filter(|_| !is_tls) {
            return Err(Error::Certificates(format!(
                "{option}: there are no certificates with --connect {}; leave {option} out, or connect to https://",
                source.url
            )));
        }
        let tls = is_tls.then(|| tls(source)).transpose()?;
        let port = config::port(authority, is_tls).filter(|&port| port != 0);
        let port = port.ok_or_else(|| wrong("the port is not a number from 1 to 65535"))?;
        let authorization = source.user.as_ref().map(|user| {
            HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(user)))
                .map_err(|_| wrong("--user has characters that cannot be sent"))
        });
        Ok(Self {
            url: source.url.clone(),
            server: Server::new(host, port, tls).map_err(|error| wrong(&error.to_string()))?,
            authority: HeaderValue::from_str(authority.as_str())
                .map_err(|error| wrong(&error.to_string()))?,
            authorization: authorization.transpose()?,
        })
    }

    /// Requests a path, and decodes the answer.
    ///
    /// # Errors
    /// If there is no answer, or it cannot be decoded.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        let mut request = Request::get(path).header(HOST, &self.authority);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request.body(Full::default()).map_err(|error| self.failed(error.to_string()))?;
        let answer =
            self.server.ask(request, MAX_ANSWER).await.map_err(|failure| self.unanswered(&failure))?;
        match answer.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED => return Err(Error::Password(self.url.clone())),
            StatusCode::NOT_FOUND => return Err(Error::TooOld(self.url.clone())),
            status => {
                let words = answer.into_body().unwrap_or_default();
                return Err(self.failed(refusal(status, &String::from_utf8_lossy(&words))));
            }
        }
        let body = answer.into_body().map_err(|reason| match reason {
            NoBody::TooLong => self.failed(format!("its answer has more than {} MiB", MAX_ANSWER >> 20)),
            NoBody::BrokenOff(reason) => self.failed(reason),
        })?;
        serde_json::from_slice(&body).map_err(|error| Error::Answer(error.to_string()))
    }

    fn unanswered(&self, failure: &Failure) -> Error {
        let reason = failure.in_words("--cacert");
        match failure {
            Failure::Connection(_) | Failure::LateConnection => {
                Error::Connect { url: self.url.clone(), reason }
            }
            Failure::Tls(_) => self.failed(format!("TLS: {reason}")),
            Failure::Exchange(_) | Failure::Late => self.failed(reason),
        }
    }

    fn failed(&self, reason: String) -> Error {
        Error::NoAnswer { url: self.url.clone(), reason }
    }
}

/// Says which status a server answered with, and its words if they are a line. More is a page for a browser.
fn refusal(status: StatusCode, words: &str) -> String {
    let words = words.trim();
    let is_line = !words.is_empty() && !words.contains(['\n', '<']);
    let words = if is_line { format!(": {}", escaped(words)) } else { String::new() };
    format!("it answered {status}{words}")
}

/// The IPv6 address without brackets that a URL has in place of a host and a port, if it has one.
fn bare_ipv6(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let host = rest.split('/').next()?;
    host.parse::<Ipv6Addr>().is_ok().then_some(host)
}

/// Makes the TLS configuration. Its errors name the option at fault.
fn tls(source: &Source) -> Result<Arc<ClientConfig>, Error> {
    let identity = source
        .certificate
        .as_deref()
        .map(|certificate| Identity { certificate, key: source.key.as_deref().unwrap_or(certificate) });
    let trusted =
        if source.is_insecure { Trusted::Anyone } else { Trusted::Listed(source.authorities.as_deref()) };
    trust::client(trusted, identity).map_err(|error| match error {
        TlsError::Authorities(reason) => {
            let path = source.authorities.as_deref().unwrap_or(Path::new(""));
            Error::Certificates(format!("--cacert {}: {reason}", path.display()))
        }
        TlsError::NoAuthorities(reason) => Error::Certificates(format!(
            "--connect {}: this system has no CA certificates{reason}; install ca-certificates, or give a \
             file with --cacert",
            source.url
        )),
        TlsError::Identity(reason) => Error::Certificates(format!("--cert {reason}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(url: &str) -> Result<Client, Error> {
        Client::new(&Source { url: url.to_owned(), ..Source::default() })
    }

    #[test]
    fn a_server_that_refuses_is_quoted_if_it_says_a_line() {
        let status = StatusCode::MISDIRECTED_REQUEST;
        assert_eq!(refusal(status, "no such host\n"), "it answered 421 Misdirected Request: no such host");
        for page in ["", "<html>no</html>", "one\ntwo"] {
            assert_eq!(refusal(status, page), "it answered 421 Misdirected Request");
        }
    }

    #[test]
    fn what_cannot_be_a_url_is_refused_with_the_reason() {
        for (url, reason) in [
            ("127.0.0.1:9464", "http"),
            ("gopher://gateway", "http://"),
            ("http://gateway:9464/metrics", "path"),
            ("http://me:secret@gateway", "--user"),
            ("http://gateway/#metrics", "path"),
            ("http://gateway:99999", "65535"),
            ("http://gateway:0", "65535"),
            ("http://gateway:", "65535"),
            ("http://[::1]:99999", "65535"),
            ("http://", "URL"),
            ("http://::1", "write [::1]"),
            ("https://2001:db8::1:9464/", "write [2001:db8::1:9464]"),
        ] {
            let said = client(url).unwrap_err().to_string();
            assert!(said.starts_with(&format!("--connect {url}: ")) && said.contains(reason), "{said}");
        }
        let url = || "http://gateway".to_owned();
        let file = || Some(PathBuf::from("/nowhere/pping.pem"));
        for (option, source) in [
            ("--insecure", Source { url: url(), is_insecure: true, ..Source::default() }),
            ("--cacert", Source { url: url(), authorities: file(), ..Source::default() }),
            ("--cert", Source { url: url(), certificate: file(), ..Source::default() }),
        ] {
            let said = Client::new(&source).unwrap_err().to_string();
            assert!(said.starts_with(&format!("{option}: ")) && said.contains("https://"), "{said}");
        }
        assert_eq!(client("http://[::1]:9464").unwrap().server.address(), ("::1", 9464));
        assert_eq!(client("http://gateway").unwrap().server.address(), ("gateway", 80));
    }
}

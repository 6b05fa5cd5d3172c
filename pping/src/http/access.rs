//! Who may read what the server has, and the names by which clients may ask a server that everyone may read. docs/http.md
//! says why, under "Names".

use std::{
    iter,
    net::{Ipv4Addr, Ipv6Addr},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use axum::{
    http::{Request, StatusCode, Version, header::HOST, uri::Authority},
    response::{IntoResponse as _, Response},
};

use crate::text;

/// The file with the full name of this host, on most systems.
const HOSTS: &str = "/etc/hosts";

/// The longest [`HOSTS`] that is read, bytes: some block a hundred thousand sites with it.
const MAX_HOSTS: u64 = 16 << 20;

/// Who may read what the server has.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The file with TLS and passwords. Without one, everyone may read.
    pub web_config: Option<PathBuf>,
    /// Names of this host beside those that it knows itself, in lower case.
    pub names: Vec<String>,
}

/// The names of the server, in lower case and without a dot at their end.
#[derive(Debug)]
pub(super) struct Names {
    names: Vec<String>,
    has_warned: AtomicBool,
}

impl Names {
    /// Returns the names of this host, and those that the configuration lists.
    pub(super) fn new(listed: &[String]) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        // Without the file, the host is known by the name that the kernel has.
        let hosts = text::read(Path::new(HOSTS), MAX_HOSTS).unwrap_or_default();
        Self::of(&host, &hosts, listed)
    }

    fn of(host: &str, hosts: &str, listed: &[String]) -> Self {
        let own = own_names(host, hosts);
        let names = iter::once("localhost").chain(own).chain(listed.iter().map(String::as_str));
        Self { names: names.map(plain).collect(), has_warned: AtomicBool::new(false) }
    }

    /// Returns the response to a request for a host that is not this one.
    pub(super) fn refusal<B>(&self, request: &Request<B>) -> Option<Response> {
        match host(request) {
            Ok(Some(host)) if !self.has(host.host()) => Some(self.misdirected(host.host())),
            Ok(_) => None,
            Err(Malformed) => {
                Some((StatusCode::BAD_REQUEST, "a request needs one header Host\n").into_response())
            }
        }
    }

    fn has(&self, host: &str) -> bool {
        is_address(host) || self.names.contains(&plain(host))
    }

    fn misdirected(&self, host: &str) -> Response {
        // Once, because a client could fill the log otherwise.
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "--listen: refused a client that asked for the host {host}; if that is a name of this host, add \
                 --listen-name {host}"
            );
        }
        let text = format!(
            "{host} is not a name that this pping knows. Ask for an address or for the host's own name, or start \
             pping with --listen-name {host}\n"
        );
        (StatusCode::MISDIRECTED_REQUEST, text).into_response()
    }
}

/// A request whose host cannot be told.
struct Malformed;

/// Returns the host of a request. HTTP/1.0 allows a request without one, and no browser sends that.
fn host<B>(request: &Request<B>) -> Result<Option<Authority>, Malformed> {
    // A host in the request line goes before the header (RFC 9112, 3.2.2).
    let mut headers = request.headers().get_all(HOST).iter();
    match (request.uri().authority(), headers.next(), headers.next()) {
        (_, _, Some(_)) => Err(Malformed),
        (Some(authority), ..) => Ok(Some(authority.clone())),
        (None, Some(value), None) => value.as_bytes().try_into().map(Some).map_err(|_| Malformed),
        (None, None, None) if request.version() == Version::HTTP_10 => Ok(None),
        (None, None, None) => Err(Malformed),
    }
}

/// Whether a host is an address, which nobody can resolve to another.
fn is_address(host: &str) -> bool {
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    // The zone of a link-local address: `[fe80::1%25eth0]`.
    let without_zone = inner.map(|inner| inner.split('%').next().unwrap_or(inner));
    match without_zone {
        Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
        None => host.parse::<Ipv4Addr>().is_ok(),
    }
}

/// Writes a name as names are compared.
fn plain(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// Returns the names of this host: the one that the kernel has, with and without its domain, and those that the file of
/// hosts has beside it, as `hostname --fqdn` finds them. A web site has no influence on them. A search domain would not
/// do: the network that a host is in can choose it.
fn own_names<'a>(host: &'a str, hosts: &'a str) -> impl Iterator<Item = &'a str> {
    let short = host.split('.').next().unwrap_or(host);
    let is_own = move |name: &str| [host, short].iter().any(|own| own.eq_ignore_ascii_case(name));
    let names = |line: &'a str| line.split('#').next().unwrap_or(line).split_whitespace().skip(1);
    let beside = hosts.lines().filter(move |line| names(line).any(is_own)).flat_map(names);
    [host, short].into_iter().filter(|name| !name.is_empty()).chain(beside)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTS: &str = "127.0.0.1 localhost\n\
                         127.0.1.1\tGW7.net.example GW7 # gw7.comment.example\n\
                         192.0.2.9 other.example other\n";

    fn names() -> Names {
        Names::of("gw7", HOSTS, &["pping.example".to_owned()])
    }

    fn status(version: Version, target: &str, hosts: &[&str]) -> u16 {
        let request = Request::get(target).version(version);
        let request = hosts.iter().fold(request, |request, host| request.header(HOST, *host));
        names().refusal(&request.body(()).unwrap()).map_or(200, |response| response.status().as_u16())
    }

    #[test]
    fn addresses_and_own_names_are_accepted() {
        for host in [
            "127.0.0.1:9464",
            "192.0.2.1",
            "[::1]:9464",
            "[2001:db8::1]",
            "localhost",
            "LocalHost:80",
            "localhost.",
            "gw7:9464",
            "gw7.net.example",
            "pping.example:9464",
        ] {
            assert_eq!(status(Version::HTTP_11, "/", &[host]), 200, "{host}");
        }
    }

    #[test]
    fn names_that_others_can_resolve_are_refused() {
        for host in [
            "rebound.example:9464",
            "other.example",
            "gw7.rebound.example",
            "gw7.comment.example",
            "localhost.rebound.example",
            "127.0.0.1.rebound.example",
            "2130706433",
            "prometheus",
        ] {
            assert_eq!(status(Version::HTTP_11, "/", &[host]), 421, "{host}");
        }
    }

    #[test]
    fn only_an_old_request_can_do_without_a_host() {
        assert_eq!(status(Version::HTTP_10, "/", &[]), 200);
        assert_eq!(status(Version::HTTP_11, "/", &[]), 400);
        assert_eq!(status(Version::HTTP_11, "/", &["localhost", "localhost"]), 400);
        assert_eq!(status(Version::HTTP_11, "/", &["a b"]), 400);
        assert_eq!(status(Version::HTTP_11, "/", &[""]), 400);
    }

    #[test]
    fn the_host_of_the_request_line_counts() {
        assert_eq!(status(Version::HTTP_11, "http://rebound.example/", &["localhost"]), 421);
        assert_eq!(status(Version::HTTP_11, "http://localhost/", &["rebound.example"]), 200);
    }

    #[test]
    fn the_short_name_of_a_full_one_is_accepted() {
        let names = Names::of("gw7.net.example", "", &[]);
        assert!(names.has("gw7") && names.has("gw7.net.example") && !names.has("gw7.example"));
    }
}

//! HTTP requests to pping and Prometheus.

use std::{
    collections::BTreeMap,
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

use pping_lab::Namespace;

use super::monitor::ok;

/// The port at which pping listens in these tests.
pub(super) const PORT: u16 = 9464;
pub(super) const LISTEN: &str = "--listen 127.0.0.1:9464";

const TIME_OUT: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) content_type: String,
    pub(super) body: String,
}

/// Requests `path` from `port` of the loopback address of `host`; `None` while nothing listens there.
pub(super) fn get(host: &Namespace, port: u16, path: &str, accept: &str) -> Option<Response> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = ok(host.enter(|| TcpStream::connect(address))).ok()?;
    stream.set_read_timeout(Some(TIME_OUT)).unwrap();
    // In HTTP/1.0 there are no chunks: the response ends with the connection.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n").unwrap();
    let mut answer = String::new();
    match stream.read_to_string(&mut answer) {
        // A socket that stops listening resets the connections that wait to be accepted.
        Err(error) if error.kind() == ErrorKind::ConnectionReset && answer.is_empty() => return None,
        read => read.unwrap(),
    };
    let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP response has a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let content_type = head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-type"))
        .map_or(String::new(), |(_, value)| value.to_owned());
    Some(Response { status, content_type, body: body.to_owned() })
}

/// True if `/readyz` says that pping measures and drains its events.
pub(super) fn is_ready(host: &Namespace) -> bool {
    get(host, PORT, "/readyz", "*/*").is_some_and(|response| response.status == 200)
}

/// One scrape, in the classic text format.
pub(super) fn scrape(host: &Namespace) -> Exposition {
    let response = get(host, PORT, "/metrics", "text/plain").expect("pping listens");
    assert_eq!(response.status, 200, "{}", response.body);
    Exposition(response.body)
}

/// Metrics in the text format.
#[derive(Debug)]
pub(super) struct Exposition(pub(super) String);

/// One line of the metrics.
#[derive(Debug)]
pub(super) struct Series<'a> {
    pub(super) name: &'a str,
    pub(super) labels: BTreeMap<&'a str, &'a str>,
    pub(super) value: f64,
}

impl Exposition {
    /// Returns every series. pping's label values contain no commas and no quotation marks.
    pub(super) fn series(&self) -> impl Iterator<Item = Series<'_>> {
        self.0.lines().filter(|line| !line.starts_with('#')).map(|line| {
            let (series, value) = line.rsplit_once(' ').expect("a name and a value");
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            let labels = labels.strip_suffix('}').expect("labels end with a brace");
            let labels = labels.split(',').filter_map(|label| label.split_once('='));
            Series {
                name,
                labels: labels.map(|(key, value)| (key, value.trim_matches('"'))).collect(),
                value: value.parse().expect("a number"),
            }
        })
    }

    /// The sum of all series with this name and these labels; `None` if there is none.
    pub(super) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let has = |series: &Series<'_>| {
            labels.iter().all(|(key, value)| series.labels.get(key).is_some_and(|it| it == value))
        };
        let values: Vec<f64> = self
            .series()
            .filter(|series| series.name == name && has(series))
            .map(|series| series.value)
            .collect();
        (!values.is_empty()).then(|| values.iter().sum())
    }
}

//! Open connections end when the server does.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

use pping::http::Server;

use super::Served;
use crate::agent::monitor::wait_until;

/// Requests a page and reads its beginning. Returns the connection, how much was read, and the length of the page.
fn begin(address: SocketAddr) -> (TcpStream, usize, usize) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    (stream, head.len(), length.parse().unwrap())
}

fn stop(server: Server) -> Duration {
    let start = Instant::now();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(server.stop());
    start.elapsed()
}

/// Asserts that stopping takes less than `limit` in at least one of a few attempts. Other processes make some take
/// longer.
#[track_caller]
fn assert_stops_within(limit: Duration, stop: impl FnMut() -> Duration) {
    const ATTEMPTS: usize = 5;
    let is_within = std::iter::repeat_with(stop).take(ATTEMPTS).any(|took| took < limit);
    assert!(is_within, "stopping took longer than {limit:?} {ATTEMPTS} times");
}

#[test]
fn web_a_scrape_under_way_at_the_end_gets_its_whole_page() {
    assert_stops_within(Duration::from_secs(2), || {
        let served = Served::plain();
        served.measure(8_000);
        let address = served.server.address();
        let (mut reader, _, length) = begin(address);
        assert!(length > 20_000_000, "{length}");
        let _idle = TcpStream::connect(address).unwrap();
        thread::scope(|scope| {
            let stopped = scope.spawn(|| stop(served.server));
            wait_until("no connection is accepted", || TcpStream::connect(address).is_err());
            let mut page = Vec::new();
            reader.read_to_end(&mut page).unwrap();
            assert_eq!(page.len(), length);
            stopped.join().unwrap()
        })
    });
}

#[test]
fn web_shutdown_does_not_wait_for_stalled_readers() {
    assert_stops_within(Duration::from_secs(2), || {
        let served = Served::plain();
        served.measure(8_000);
        let (mut reader, ..) = begin(served.server.address());
        let took = stop(served.server);
        let mut page = Vec::new();
        reader.read_to_end(&mut page).ok();
        assert!(page.len() < 20_000_000, "{}", page.len());
        took
    });
}

#[test]
fn web_shutdown_without_connections_is_immediate() {
    // Less than the second that the server gives its readers.
    assert_stops_within(Duration::from_millis(900), || {
        let served = Served::plain();
        let _idle = TcpStream::connect(served.server.address()).unwrap();
        assert_eq!(served.curl("", &served.url("http", "/healthz")).status, 200);
        stop(served.server)
    });
}

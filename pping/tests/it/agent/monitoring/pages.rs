//! Pages with many groups are complete and correct: in both text formats, compressed or not, and for several clients at
//! once.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    thread,
};

use flate2::read::GzDecoder;
use pping_common::parse::Direction;
use pping_lab::Namespace;

use super::agents::{Agent, counts_of};
use crate::agent::{
    http::Exposition,
    metrics::assert_promtool_accepts,
    monitor::{ok, wait_until},
};

pub(super) const PORT: u16 = 9464;

const OPENMETRICS: &str = "application/openmetrics-text;version=1.0.0";

pub(super) const PROTOBUF: &str =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

/// A page with its head.
pub(super) fn scrape(host: &Namespace, accept: &str, encoding: &str) -> (String, Vec<u8>) {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    let mut stream = ok(host.enter(|| TcpStream::connect(address))).unwrap();
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\nAccept-Encoding: {encoding}\r\n\
         Connection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap().to_lowercase();
    let body = &answer[end + 4..];
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
    let mut page = Vec::new();
    if head.contains("content-encoding: gzip") {
        GzDecoder::new(body).read_to_end(&mut page).unwrap();
    } else {
        page = body.to_vec();
    }
    (head, page)
}

/// A page in a text format, with its head.
fn scrape_text(host: &Namespace, accept: &str, encoding: &str) -> (String, String) {
    let (head, page) = scrape(host, accept, encoding);
    (head, String::from_utf8(page).unwrap())
}

fn busy(host: &Namespace) -> Agent {
    let rtts: Vec<u64> = (1..40).map(|ms| ms * 1_000_000).collect();
    Agent::start(host, PORT, move || {
        let group = |number| {
            let site = [("site", "a \"b\" \\ c"), ("Tarif (€)", "9,99"), ("group", "1")];
            counts_of(&format!("10.0.{number}.0/24"), &site, Direction::Egress, &rtts)
        };
        (0..200).map(group).collect()
    })
}

#[test]
fn promtool_finds_no_fault_with_many_groups() {
    let host = ok(Namespace::new("monitor"));
    let _agent = busy(&host);
    let has_groups = || scrape_text(&host, "text/plain", "gzip").1.contains("pping_group_info{");
    wait_until("a second is over", has_groups);
    let (_, page) = scrape_text(&host, "text/plain", "gzip");
    for name in ["pping_group_info{", "pping_rtt_inflation_seconds{", "pping_bpf_run_seconds_total{"] {
        assert!(page.contains(name), "no {name}");
    }
    assert_promtool_accepts(&page);
}

#[test]
fn a_client_gets_the_format_it_asks_for() {
    let host = ok(Namespace::new("monitor"));
    let _agent = busy(&host);
    for (accept, encoding, is_open, is_gzip) in [
        ("text/plain", "identity", false, false),
        ("text/plain", "deflate, gzip", false, true),
        ("text/plain", "gzip;q=0", false, false),
        (OPENMETRICS, "gzip", true, true),
        (OPENMETRICS, "br", true, false),
        ("application/openmetrics-text;q=0.2,text/plain;q=0.5", "", false, false),
        ("application/openmetrics-text;q=0.5,text/plain;q=0.2", "", true, false),
        ("*/*", "", false, false),
        ("application/vnd.google.protobuf", "", false, false),
    ] {
        let (head, page) = scrape_text(&host, accept, encoding);
        let said = format!("{accept} {encoding}: {head}");
        assert_eq!(head.contains("content-encoding: gzip"), is_gzip, "{said}");
        assert_eq!(head.contains("content-type: application/openmetrics-text"), is_open, "{said}");
        assert_eq!(page.ends_with("\n# EOF\n"), is_open, "{said}");
        assert!(head.contains("\nvary: accept, accept-encoding"), "{said}");
    }
}

#[test]
fn concurrent_scrapes_are_whole_and_monotonic() {
    let host = ok(Namespace::new("monitor"));
    let _agent = busy(&host);
    let ask = |accept: &str, encoding: &str| {
        let mut last = 0;
        for _ in 0..25 {
            let (_, page) = scrape_text(&host, accept, encoding);
            let page = Exposition(page);
            let count = page.sum("pping_rtt_seconds_count", &[]).unwrap_or(0.0) as u64;
            assert!(count >= last, "a counter went back from {last} to {count}");
            // A page shows one moment: it contains all 200 groups of a second, or none of them.
            assert_eq!(count % (200 * 39), 0, "{count}");
            let all = page.sum("pping_rtt_seconds_bucket", &[("le", "+Inf")]).unwrap_or(0.0) as u64;
            assert_eq!(all, count);
            last = count;
        }
    };
    thread::scope(|scope| {
        for accept in ["text/plain", OPENMETRICS] {
            for encoding in ["gzip", "identity"] {
                scope.spawn(move || ask(accept, encoding));
                scope.spawn(move || ask(accept, encoding));
            }
        }
    });
}

//! The server refuses requests that are too long, have a body, or use another method.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
};

use super::Served;

/// Sends a request. Returns the status and the whole response.
fn exchange(served: &Served, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(served.server.address()).unwrap();
    // The server may refuse before it has read the whole request.
    stream.write_all(request.as_bytes()).ok();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, answer)
}

#[test]
fn web_a_head_has_a_limit() {
    let served = Served::plain();
    let get = |path: &str, headers: &str| {
        exchange(&served, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n")).0
    };
    assert_eq!(get("/healthz", &format!("X-Token: {}\r\n", "x".repeat(8 << 10))), 200);
    for length in [17 << 10, 200 << 10] {
        assert_eq!(get("/healthz", &format!("X-Token: {}\r\n", "x".repeat(length))), 431, "{length}");
    }
    let many = |count| (0..count).fold(String::new(), |text, number| format!("{text}X-{number}: y\r\n"));
    assert_eq!(get("/healthz", &many(60)), 200);
    assert_eq!(get("/healthz", &many(70)), 431);
    let long = format!("/{}", "x".repeat(70 << 10));
    assert!([414, 431].contains(&get(&long, "")));
    assert_eq!(exchange(&served, "nonsense\r\n\r\n").0, 400);
    assert_eq!(exchange(&served, "\u{16}\u{3}\u{1}\u{2}\u{0}\r\n\r\n").0, 400);
}

#[test]
fn web_a_body_is_refused() {
    let served = Served::plain();
    fs::write(served.file("body"), vec![b'x'; 200 << 10]).unwrap();
    let url = served.url("http", "/metrics");
    for (options, status) in [
        ("--request GET --data x", 413),
        ("--request GET --header Transfer-Encoding:chunked --data x", 413),
        ("--request GET --data-binary @@body", 413),
        ("--request GET --header Expect: --data-binary @@body", 413),
        // What is wrong first with these is the method.
        ("--data x", 405),
        ("--header Transfer-Encoding:chunked --data x", 405),
        ("--header Expect: --data-binary @@body", 405),
    ] {
        // The first `@` is curl's own syntax.
        let options = options.replace("@@", &format!("@{}/", served.directory.path().display()));
        let reply = super::curl(std::process::Command::new("curl"), &options, &url);
        assert_eq!(reply.status, status, "{options}: {}", reply.text);
    }
    assert_eq!(served.curl("", &url).status, 200);
}

#[test]
fn web_methods_are_get_and_head() {
    let served = Served::plain();
    let url = served.url("http", "/metrics");
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "BREW"] {
        let reply = served.curl(&format!("--request {method}"), &url);
        assert_eq!(reply.status, 405, "{method}: {}", reply.text);
        assert!(reply.text.to_lowercase().contains("\nallow: get,head\r"), "{method}: {}", reply.text);
    }
    let head = served.curl("--head", &url);
    assert_eq!(head.status, 200, "{}", head.text);
    let length = head.text.to_lowercase();
    let length = length.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    assert!(length.trim().parse::<u64>().unwrap() > 1_000, "{}", head.text);
    assert!(!head.text.contains("# TYPE"), "{}", head.text);
    assert_eq!(served.curl("", &served.url("http", "/metrics/")).status, 404);
}

#[test]
fn web_an_answer_has_a_thousand_groups_at_most() {
    let served = Served::plain();
    let ask = |limit: &str| served.curl("", &served.url("http", &format!("/api/v1/groups?limit={limit}")));
    assert_eq!(ask("1000").status, 200);
    for limit in ["1001", "99999999"] {
        let reply = ask(limit);
        assert_eq!(reply.status, 400, "{limit}: {}", reply.text);
        assert!(reply.text.contains("limit: at most 1000"), "{limit}: {}", reply.text);
    }
}

#[test]
fn web_unknown_parameters_are_refused_by_name() {
    let served = Served::plain();
    for (path, reason) in [
        ("summary?pretty=1", "unknown parameter `pretty`"),
        ("groups?method=tcp", "method: unknown value `tcp`"),
        ("groups?matched=beyond", "matched: unknown value `beyond`"),
        ("groups?page=2", "unknown parameter `page`"),
        ("groups/0?limit=1", "unknown parameter `limit`"),
        ("history?method=foo", "method: unknown value `foo`"),
        ("history?limit=1", "unknown parameter `limit`"),
        ("worst?limit=101", "limit: at most 100 are ranked"),
        ("worst?by=size", "by: unknown value `size`"),
        ("events?interval=5", "unknown parameter `interval`"),
        ("openapi.json?version=3", "unknown parameter `version`"),
    ] {
        let reply = served.curl("", &served.url("http", &format!("/api/v1/{path}")));
        assert!(
            reply.status == 400 && reply.text.contains(reason),
            "{path}: {} {}",
            reply.status,
            reply.text
        );
    }
    for path in ["summary", "history?method=dns&matched=egress", "worst", "openapi.json"] {
        assert_eq!(served.curl("", &served.url("http", &format!("/api/v1/{path}"))).status, 200, "{path}");
    }
}

#[test]
fn web_a_tag_of_another_run_is_answered_in_full() {
    let ask = |served: &Served, tag: &str| {
        served.curl(&format!("--header If-None-Match:{tag}"), &served.url("http", "/api/v1/summary"))
    };
    let (one, other) = (Served::plain(), Served::plain());
    let reply = ask(&one, "\"none\"");
    assert_eq!(reply.status, 200, "{}", reply.text);
    let tag = reply.text.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    assert_eq!(ask(&one, tag).status, 304);
    // Nothing has changed in either.
    assert_eq!(ask(&other, tag).status, 200);
}

#[test]
fn web_each_connection_carries_one_response() {
    let served = Served::plain();
    let ask = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let (status, answer) = exchange(&served, &ask.repeat(2));
    assert_eq!((status, answer.matches("HTTP/1.1").count()), (200, 1), "{answer}");
    assert!(answer.to_lowercase().contains("\nconnection: close\r"), "{answer}");
    // A client that shuts down its sending side still gets its answer.
    let mut stream = TcpStream::connect(served.server.address()).unwrap();
    stream.write_all(ask.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("alive\n"), "{answer}");
}

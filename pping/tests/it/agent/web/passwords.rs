//! Requests need the right password, and guessing slows no other client down.

use std::{
    fs,
    io::{ErrorKind, Write as _},
    net::TcpStream,
    time::Instant,
};

use super::Served;
use crate::agent::monitor::wait_until;

/// `correct horse` and `zwei:Wörter`, hashed by another implementation.
pub(in super::super) const USERS: &str = "basic_auth_users:\n  \
     alice: $2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e\n  \
     bob: \"$2y$05$ABCDEFGHIJKLMNOPQRSTUus4en9d1dsXBPW.lpgg2P6Z8c6pgZss6\"\n";

/// Returns the status of a request with a user and a password.
fn status(served: &Served, user: &str, password: &str) -> u16 {
    fs::write(served.file("curlrc"), format!("user = \"{user}:{password}\"\n")).unwrap();
    served.curl("--config @curlrc", &served.url("http", "/metrics")).status
}

#[test]
fn web_requests_without_the_password_are_rejected() {
    let served = Served::new(USERS, |_| ());
    for path in ["/metrics", "/healthz", "/readyz", "/", "/nothing-here"] {
        let reply = served.curl("", &served.url("http", path));
        assert_eq!(reply.status, 401, "{path}: {}", reply.text);
        assert!(reply.text.to_lowercase().contains("\nwww-authenticate: basic realm=\"pping\""), "{path}");
    }
    for (user, password, expected) in [
        ("alice", "correct horse", 200),
        // The second request is answered from the cache.
        ("alice", "correct horse", 200),
        ("alice", "correct hors", 401),
        ("alice", "", 401),
        ("bob", "zwei:Wörter", 200),
        ("bob", "correct horse", 401),
        ("mallory", "correct horse", 401),
        ("", "correct horse", 401),
        ("ALICE", "correct horse", 401),
    ] {
        assert_eq!(status(&served, user, password), expected, "{user}:{password}");
    }
    for header in ["Basic", "Basic x", "Basic YWxpY2U=", "Bearer YWxpY2U6Y29ycmVjdCBob3JzZQ==", "Basic Og=="]
    {
        fs::write(served.file("curlrc"), format!("header = \"Authorization: {header}\"\n")).unwrap();
        let url = served.url("http", "/healthz");
        assert_eq!(served.curl("--config @curlrc", &url).status, 401, "{header}");
    }
}

#[test]
fn web_a_withdrawn_password_is_rejected() {
    let served = Served::new(USERS, |_| ());
    assert_eq!(status(&served, "alice", "correct horse"), 200);
    fs::write(
        served.file("web.yml"),
        USERS.lines().filter(|line| !line.contains("alice")).collect::<Vec<_>>().join("\n"),
    )
    .unwrap();
    wait_until("the file is read again", || status(&served, "alice", "correct horse") == 401);
    assert_eq!(status(&served, "bob", "zwei:Wörter"), 200);
}

#[test]
fn web_an_unknown_user_takes_as_long_as_a_known_one() {
    // A cost of 12 takes some tenths of a second, and more without optimization.
    let served = Served::new(
        "basic_auth_users: {alice: $2y$12$L6Bc/AlTQHyd9liGgGEZyOFLPHNgyxeEPfgYfBCVxJ7JIlwxyVU3u}",
        |_| (),
    );
    let refuse = |user| {
        let start = Instant::now();
        assert_eq!(status(&served, user, "wrong"), 401);
        start.elapsed()
    };
    // Other processes make some requests take longer, so this takes the shortest of several.
    let [known, unknown] = ["alice", "mallory"].map(|user| (0..3).map(|_| refuse(user)).min().unwrap());
    assert!(
        unknown > known / 3 && known > unknown / 3,
        "{known:?} for a known user, {unknown:?} for an unknown one"
    );
}

#[test]
fn web_password_guessing_does_not_delay_others() {
    let costly = "  carol: $2y$12$L6Bc/AlTQHyd9liGgGEZyOFLPHNgyxeEPfgYfBCVxJ7JIlwxyVU3u\n";
    let served = Served::new(&format!("{USERS}{costly}"), |_| ());
    assert_eq!(status(&served, "alice", "correct horse"), 200);
    let guess = |_| {
        let mut stream = TcpStream::connect(served.server.address()).unwrap();
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic Y2Fyb2w6Z3Vlc3M=\r\n\r\n")
            .unwrap();
        stream
    };
    let guesses: Vec<TcpStream> = (0..40).map(guess).collect();
    assert_eq!(status(&served, "alice", "correct horse"), 200);
    let is_pending = |stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        stream.peek(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    };
    assert!(guesses.iter().any(is_pending), "all guesses were answered first");
}

#[test]
fn web_headers_and_a_rate_are_as_configured() {
    let served = Served::new(
        "http_server_config:\n  http2: false\n  headers:\n    X-Frame-Options: deny\n    \
         Strict-Transport-Security: max-age=63072000\nrate_limit:\n  interval: 1h\n  burst: 2\n",
        |_| (),
    );
    let ask = || served.curl("", &served.url("http", "/healthz"));
    let first = ask();
    let headers = first.text.to_lowercase();
    assert_eq!(first.status, 200, "{headers}");
    assert!(headers.contains("\nx-frame-options: deny\r"), "{headers}");
    assert!(headers.contains("\nstrict-transport-security: max-age=63072000\r"), "{headers}");
    assert_eq!([ask().status, ask().status], [200, 429]);
}

//! Invalid values end pping before it attaches anything. `pping check` and a reload report the same errors.

use std::{
    fs::{self, Permissions},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    thread,
    time::Duration,
};

use pping_lab::{Process, Signal};
use serde_json::Value;

use super::{RECEIVING, Receiver, counted, url, warnings};
use crate::agent::{
    host::Host,
    http::PORT,
    monitor::{attachments, interrupt, ok, pping, wait_until, watch},
};

fn write(file: &Path, text: &str, mode: u32) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn otlp_the_port_of_grpc_is_named_with_the_one_for_http() {
    let host = Host::new();
    // A receiver of gRPC: it waits for the preface of HTTP/2, and closes on anything else.
    let script = "import socket\ns = socket.create_server(('127.0.0.1', 4317))\nprint('listening', flush=True)\n\
                  while True:\n    c, _ = s.accept()\n    c.recv(24)\n    c.sendall(bytes(9))\n    c.close()\n";
    let mut python = host.namespace.command("python3");
    python.args(["-c", script]);
    let receiver = ok(Process::spawn(python));
    wait_until("the receiver listens", || ok(receiver.stdout()).contains("listening"));
    let hint = "4318 takes HTTP";
    let options = "--otlp http://127.0.0.1:4317";
    let check = pping(&host.namespace, &format!("check -i {} {options}", Host::ETH)).output().unwrap();
    let said = String::from_utf8_lossy(&check.stdout).into_owned();
    assert!(said.contains(hint), "{said}");
    let arguments = format!("--format none --otlp-interval 1s {options}");
    let pping = watch(&host.namespace, Host::ETH, &arguments);
    wait_until("a warning", || ok(pping.stderr()).contains(hint));
    interrupt(pping);
}

#[test]
fn otlp_what_cannot_be_is_named_before_anything_is_attached() {
    let host = Host::new();
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    write(&file("open"), "Authorization: Bearer hunter2\n", 0o644);
    write(&file("malformed"), "# ours\nAuthorization: Bearer hunter2\nhunter2\n", 0o600);
    write(&file("no-ca"), "hunter2\n", 0o600);
    write(&file("broken-ca"), "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n", 0o600);
    let path = |name: &str| file(name).display().to_string();
    let https = "--otlp https://collector.example";
    let before = attachments(&host.namespace, Host::ETH);
    for (arguments, parts) in [
        ("--otlp collector.example:4318".to_owned(), vec!["--otlp", "collector.example:4318", "http://"]),
        ("--otlp grpc://collector.example:4317".to_owned(), vec!["--otlp", "`grpc`", "http and https"]),
        ("--otlp https://".to_owned(), vec!["--otlp"]),
        ("--otlp http://:4318".to_owned(), vec!["--otlp", "host"]),
        ("--otlp https://me:hunter2@collector.example".to_owned(), vec!["--otlp", "--otlp-headers"]),
        ("--otlp http://collector.example:99999".to_owned(), vec!["--otlp", "port"]),
        ("--otlp https://under_score-.example".to_owned(), vec!["--otlp https://under_score-.example"]),
        (format!("{https} --otlp-interval 10ms"), vec!["--otlp-interval", "1s or more"]),
        (format!("{https} --otlp-temporality mixed"), vec!["--otlp-temporality", "cumulative", "delta"]),
        (
            format!("{https} --otlp-headers {}", path("open")),
            vec!["--otlp-headers", "open", "644", "chmod o="],
        ),
        (
            format!("{https} --otlp-headers {}", path("malformed")),
            vec!["--otlp-headers", "malformed:3:", "colon"],
        ),
        (
            format!("{https} --otlp-headers {}", path("missing")),
            vec!["--otlp-headers", "missing", "No such file"],
        ),
        (format!("{https} --otlp-ca {}", path("no-ca")), vec!["--otlp-ca", "no-ca", "no certificate"]),
        (format!("{https} --otlp-ca {}", path("broken-ca")), vec!["--otlp-ca", "broken-ca", "certificate 1"]),
        (format!("{https} --otlp-ca /dev/zero"), vec!["--otlp-ca", "/dev/zero", "not a regular file"]),
        (format!("{https} --otlp-ca {}", path("missing")), vec!["--otlp-ca", "missing", "No such file"]),
        (format!("--otlp http://a --otlp-ca {}", path("no-ca")), vec!["--otlp-ca", "https"]),
        (format!("--otlp-headers {}", path("open")), vec!["--otlp-headers", "--otlp"]),
    ] {
        let output = pping(&host.namespace, &format!("-i eth0 {arguments}")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        for part in parts {
            assert!(said.contains(part), "{arguments}: no `{part}` in {said}");
        }
        assert!(!said.contains("watching") && !said.contains("panicked"), "{arguments}: {said}");
        // Passwords from a file must not appear in any log.
        assert!(!said.contains("hunter2") || arguments.contains("hunter2"), "{arguments}: {said}");
    }
    assert_eq!(attachments(&host.namespace, Host::ETH), before);
}

/// Returns what `pping check` says about the receiver: status and finding.
fn checked(host: &Host, arguments: &str) -> (String, String) {
    let output = pping(&host.namespace, &format!("check --json -i eth0 {arguments}")).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let validator = crate::schemas::validator("check.json");
    assert!(validator.is_valid(&report), "{report:#}");
    let check = report["checks"].as_array().unwrap().iter().find(|check| check["name"] == "otlp");
    let check = check.unwrap_or_else(|| panic!("no check of otlp in {report:#}"));
    (check["status"].as_str().unwrap().to_owned(), check["found"].as_str().unwrap().to_owned())
}

#[test]
fn otlp_a_check_says_whether_the_receiver_answers() {
    let host = Host::new();
    let without = pping(&host.namespace, "check --json -i eth0").output().unwrap();
    assert!(!String::from_utf8_lossy(&without.stdout).contains("otlp"));
    let (status, found) = checked(&host, &url(RECEIVING));
    assert!(status == "degraded" && found.contains("refused"), "{status}: {found}");
    let mut receiver = Receiver::start(&host.namespace);
    let (status, found) = checked(&host, &url(RECEIVING));
    assert_eq!((status.as_str(), found.as_str()), ("ok", "http://127.0.0.1:4318/v1/metrics accepts metrics"));
    receiver.set("status 401");
    let (status, found) = checked(&host, &url(RECEIVING));
    assert!(status == "degraded" && found.contains("401"), "{status}: {found}");
    receiver.set("page");
    let (status, found) = checked(&host, &url(RECEIVING));
    assert!(status == "degraded" && found.contains("the URL of an OTLP receiver?"), "{status}: {found}");
    let (status, found) = checked(&host, &format!("{} --otlp-headers /nonexistent", url(RECEIVING)));
    assert!(status == "missing" && found.contains("--otlp-headers /nonexistent"), "{status}: {found}");
    assert!(receiver.points().is_empty(), "a check pushed metrics");
    receiver.kill();
}

#[test]
fn otlp_reload_changes_receiver_and_headers() {
    let host = Host::new();
    let receiver = Receiver::start(&host.namespace);
    let directory = tempfile::tempdir().unwrap();
    let (file, headers) = (directory.path().join("pping.toml"), directory.path().join("headers"));
    let configuration = |otlp: &str| format!("format = \"none\"\n{otlp}");
    let interval = "otlp-interval = \"1s\"\n";
    let pushed =
        format!("{interval}otlp = \"http://127.0.0.1:4318/one\"\notlp-headers = \"{}\"\n", headers.display());
    fs::write(&file, configuration("")).unwrap();
    write(&headers, "X-Token: first\n", 0o600);
    let mut pping = watch(&host.namespace, Host::ETH, &format!("--config {}", file.display()));
    let reload = |pping: &mut Process, text: &str| {
        fs::write(&file, configuration(text)).unwrap();
        ok(pping.signal(Signal::SIGHUP));
    };
    let has = |path: &str, token: &str| {
        let requests = receiver.requests();
        requests.iter().any(|request| request["path"] == path && request["headers"]["x-token"] == token)
    };
    reload(&mut pping, &pushed);
    wait_until("requests", || has("/one", "first"));
    write(&headers, "X-Token: second\n", 0o600);
    reload(&mut pping, &pushed);
    wait_until("the new header", || has("/one", "second"));
    write(&headers, "X-Token third\n", 0o600);
    reload(&mut pping, &pushed.replace("/one", "/two"));
    wait_until("the error is said", || {
        let log = ok(pping.stderr());
        log.contains("headers:1: there is no colon") && log.contains("the configuration stays as it was")
    });
    let before = receiver.requests().len();
    wait_until("requests as before", || receiver.requests().len() > before + 1);
    assert!(!has("/two", "second"));
    write(&headers, "X-Token: third\n", 0o600);
    reload(&mut pping, &pushed.replace("/one", "/two"));
    wait_until("another path", || has("/two", "third"));
    // An interval without a receiver has no effect, so the receiver stays.
    reload(&mut pping, interval);
    wait_until("what lacks a receiver is named", || {
        ok(pping.stderr()).contains("otlp-interval = \"1s\": this has no effect without --otlp")
    });
    let before = receiver.requests().len();
    wait_until("requests as before", || receiver.requests().len() > before + 1);
    reload(&mut pping, "");
    wait_until("no requests for three intervals", || {
        let before = receiver.requests().len();
        thread::sleep(Duration::from_secs(3));
        receiver.requests().len() == before
    });
    interrupt(pping);
    assert!(
        receiver
            .requests()
            .iter()
            .all(|request| request["headers"]["content-type"] == "application/x-protobuf"
                && request["headers"]["content-encoding"] == "gzip")
    );
}

#[test]
fn otlp_reload_leaves_a_failing_receiver_at_once() {
    let host = Host::new();
    let receiver = Receiver::start(&host.namespace);
    let silent = ok(host.namespace.enter(|| TcpListener::bind("127.0.0.1:5000"))).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pping.toml");
    let url = |port: u16| format!("http://127.0.0.1:{port}/v1/metrics");
    let configure = |otlp: &str| {
        let fixed = format!("format = \"none\"\nlisten = \"127.0.0.1:{PORT}\"\n");
        fs::write(&file, fixed + otlp).unwrap();
    };
    let push_to = |port| configure(&format!("otlp-interval = \"1s\"\notlp = \"{}\"\n", url(port)));
    let reload = |pping: &mut Process| ok(pping.signal(Signal::SIGHUP));
    // Nobody listens at the first two.
    push_to(5998);
    let mut pping = watch(&host.namespace, Host::ETH, &format!("--config {}", file.display()));
    wait_until("the first failure", || warnings(&pping, &url(5998)) == 1);
    push_to(5999);
    reload(&mut pping);
    wait_until("the failure of the second", || warnings(&pping, &url(5999)) == 1);
    // The third accepts the connection, and never answers.
    push_to(5000);
    reload(&mut pping);
    let connection = silent.accept().unwrap();
    push_to(4318);
    reload(&mut pping);
    wait_until("requests at the last", || !receiver.requests().is_empty());
    assert_eq!(warnings(&pping, "no answer"), 0, "{}", ok(pping.stderr()));
    // What a receiver does not accept before the exporter stops is counted.
    receiver.set("hang");
    let before = receiver.requests().len();
    wait_until("a request without an answer", || receiver.requests().len() > before);
    configure("");
    reload(&mut pping);
    wait_until("dropped requests", || {
        counted(&host.namespace, "pping_otlp_requests_dropped_total", "stopped") > 0.5
    });
    drop(connection);
    interrupt(pping);
}

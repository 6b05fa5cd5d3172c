//! Receivers with certificates.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
};

use pping_lab::Process;

use super::{Receiver, counted, warnings};
use crate::agent::{
    host::Host,
    http::LISTEN,
    monitor::{interrupt, ok, pping, wait_until, watch},
    web::certificates::Authority,
};

/// Starts a receiver whose certificate is for these names. Returns it with pping's options to reach it.
fn receiver<'a>(host: &'a Host, names: &[&str], authority: &str) -> (Receiver<'a>, String) {
    let folder = tempfile::tempdir().unwrap();
    let ours = Authority::new("ours");
    ours.write(&folder.path().join("ca.pem"));
    let of = if authority == "ours" { ours } else { Authority::new(authority) };
    of.issue(folder.path(), "server", names);
    let headers = folder.path().join("headers");
    fs::write(&headers, "Authorization: Bearer hunter2\n").unwrap();
    fs::set_permissions(&headers, Permissions::from_mode(0o600)).unwrap();
    let options = format!(
        "--otlp https://localhost:4318 --otlp-ca {} --otlp-headers {}",
        folder.path().join("ca.pem").display(),
        headers.display()
    );
    (Receiver::start_in(&host.namespace, folder, Some("server")), options)
}

fn pushing(host: &Host, options: &str) -> Process {
    watch(&host.namespace, Host::ETH, &format!("{LISTEN} --format none --otlp-interval 1s {options}"))
}

#[test]
fn otlp_pushes_by_tls_with_headers() {
    let host = Host::new();
    let (receiver, options) = receiver(&host, &["localhost"], "ours");
    let pping = pushing(&host, &options);
    wait_until("points", || !receiver.points().is_empty());
    assert!(receiver.requests().iter().all(|it| it["headers"]["authorization"] == "Bearer hunter2"));
    assert_eq!(warnings(&pping, ""), 0, "{}", ok(pping.stderr()));
    interrupt(pping);
}

#[test]
fn otlp_a_wrong_certificate_is_said_once_counted_and_checked() {
    let host = Host::new();
    for (names, authority, parts) in [
        (
            &["elsewhere.example"][..],
            "ours",
            &["its certificate is for elsewhere.example, not for localhost"][..],
        ),
        (&["localhost"], "not ours", &["localhost", "issued by an unknown authority", "--otlp-ca"]),
    ] {
        let (receiver, options) = receiver(&host, names, authority);
        let check = pping(&host.namespace, &format!("check --json -i eth0 {options}")).output().unwrap();
        let check = String::from_utf8(check.stdout).unwrap();
        let pping = pushing(&host, &options);
        let failures = || counted(&host.namespace, "pping_otlp_attempts_failed_total", "tls");
        wait_until("two failures", || failures() >= 2.0);
        assert_eq!(warnings(&pping, ""), 1, "{}", ok(pping.stderr()));
        let log = ok(pping.stderr());
        for part in parts {
            assert!(log.contains(part), "no `{part}` in {log}");
            assert!(check.contains(part), "no `{part}` in {check}");
        }
        assert!(!log.contains("hunter2") && receiver.requests().is_empty());
        interrupt(pping);
    }
}

#[test]
fn otlp_a_receiver_without_tls_is_no_receiver_of_https() {
    let host = Host::new();
    let (mut receiver, options) = receiver(&host, &["localhost"], "ours");
    receiver.kill();
    receiver.tls = None;
    receiver.restart();
    let pping = pushing(&host, &options);
    wait_until("a failure", || counted(&host.namespace, "pping_otlp_attempts_failed_total", "tls") >= 1.0);
    assert_eq!(warnings(&pping, "TLS with localhost"), 1, "{}", ok(pping.stderr()));
    interrupt(pping);
}

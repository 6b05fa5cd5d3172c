//! pping refuses an invalid web configuration, and names the error, its position and a fix.

use std::{fs, path::Path, process::Command};

use pping_lab::{Process, Signal};
use tempfile::TempDir;

use super::certificates::Authority;
use crate::agent::{
    host::Host,
    http::{PORT, is_ready},
    monitor::{ENDING, ok, pping, wait_until},
};

const TLS: &str = "tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n";
const HASH: &str = "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e";

fn directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new("ours");
    authority.write(&directory.path().join("ca.pem"));
    authority.issue(directory.path(), "server", &["localhost"]);
    authority.issue(directory.path(), "other", &["localhost"]);
    fs::write(directory.path().join("empty.pem"), "").unwrap();
    let certificate = fs::read_to_string(directory.path().join("server.pem")).unwrap();
    let (cut_off, _) = certificate.split_once("-----END").unwrap();
    fs::write(directory.path().join("cut-off.pem"), cut_off).unwrap();
    let no_x509 = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    fs::write(directory.path().join("no-x509.pem"), no_x509).unwrap();
    let mut make = Command::new("openssl");
    make.args(["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521", "-out"]);
    assert!(make.arg(directory.path().join("p521.key")).output().unwrap().status.success());
    directory
}

/// Returns the error for a file, which must be refused.
#[track_caller]
fn refusal(host: &Host, file: &Path) -> String {
    let listen = format!("--listen 127.0.0.1:{PORT} --web-config {}", file.display());
    let output = pping(&host.namespace, &format!("-i {} {listen}", Host::ETH)).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(!message.contains("panicked") && message.lines().count() == 1, "{message}");
    message
}

#[test]
fn web_an_error_in_the_file_is_reported_with_its_position() {
    let host = Host::new();
    let directory = directory();
    let file = directory.path().join("web.yml");
    for (text, position, parts) in [
        ("tls_server: {}", "1:1", &["tls_server`", "tls_server_config"][..]),
        ("- tls_server_config", "1:1", &["mapping"]),
        ("tls_server_config:\n  cert_fil: a\n", "2:3", &["`cert_fil`", "cert_file"]),
        ("tls_server_config:\n  cert_file: server.pem\n", "2:3", &["key_file is missing"]),
        ("tls_server_config:\n  min_version: TLS12\n", "2:3", &["cert_file is missing"]),
        (
            "tls_server_config:\n  cert_file: no.pem\n  key_file: server.key",
            "2:14",
            &["no.pem: No such file"],
        ),
        ("tls_server_config:\n  cert_file: empty.pem\n  key_file: server.key", "2:14", &["no certificate"]),
        ("tls_server_config:\n  cert_file: server.pem\n  key_file: server.pem", "3:13", &["no private key"]),
        (
            "tls_server_config:\n  cert_file: server.pem\n  key_file: other.key",
            "3:13",
            &["other.key: this is not the key of the certificate"],
        ),
        (
            "tls_server_config:\n  cert_file: cut-off.pem\n  key_file: server.key",
            "2:14",
            &["the line -----END CERTIFICATE----- is missing"],
        ),
        (
            "tls_server_config:\n  cert_file: no-x509.pem\n  key_file: server.key",
            "2:14",
            &["the certificate is not an X.509 certificate of version 3"],
        ),
        (
            "tls_server_config:\n  cert_file: server.pem\n  key_file: p521.key",
            "3:13",
            &["no key of a supported kind", "P-256 or P-384", "Ed25519"],
        ),
        (
            &format!("{TLS}  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: no-x509.pem\n"),
            "5:19",
            &["it is not an X.509 certificate of version 3"],
        ),
        ("tls_server_config:\n  cert: x\n  cert_file: server.pem", "3:14", &["one of the two"]),
        (&format!("{TLS}  min_version: TLS10\n"), "4:16", &["TLS10", "TLS12 and TLS13"]),
        (&format!("{TLS}  min_version: TLS13\n  max_version: TLS12\n"), "4:16", &["max_version"]),
        (
            &format!("{TLS}  cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]\n"),
            "4:19",
            &["TLS_RSA_WITH_RC4_128_SHA", "TLS_ECDHE"],
        ),
        (&format!("{TLS}  curve_preferences:\n  - CurveP521\n"), "5:5", &["CurveP521", "X25519, CurveP256"]),
        (&format!("{TLS}  client_auth_type: Always\n"), "4:21", &["Always", "RequireAndVerifyClientCert"]),
        (&format!("{TLS}  client_auth_type: RequireAndVerifyClientCert\n"), "4:21", &["add client_ca_file"]),
        (&format!("{TLS}  client_ca_file: ca.pem\n"), "4:19", &["clients are not asked", "client_auth_type"]),
        (&format!("{TLS}  client_allowed_sans: [a.example]\n"), "4:25", &["client_auth_type"]),
        (
            &format!(
                "{TLS}  client_auth_type: RequireAnyClientCert\n  client_allowed_sans: [me@a.example]\n"
            ),
            "5:25",
            &["e-mail"],
        ),
        ("basic_auth_users:\n  alice: secret\n", "2:10", &["`alice`", "bcrypt", "htpasswd -nBC 10 alice"]),
        (&format!("basic_auth_users:\n  alice: {HASH}\n  alice: {HASH}\n"), "3:3", &["alice"]),
        (&format!("basic_auth_users:\n  a:b: {HASH}\n"), "2:8", &["colon"]),
        ("http_server_config:\n  headers:\n    X-Frame-Options: maybe\n", "3:22", &["deny or sameorigin"]),
        ("http_server_config:\n  headers:\n    Server: x\n", "3:5", &["Server", "X-Frame-Options"]),
        ("http_server_config:\n  http2: maybe\n", "2:10", &["boolean"]),
        ("rate_limit:\n  interval: often\n  burst: 3\n", "2:13", &["often", "100ms"]),
        ("basic_auth_users: {", "1:", &[]),
    ] {
        fs::write(&file, text).unwrap();
        let message = refusal(&host, &file);
        let position = format!("--web-config {}:{position}", file.display());
        assert!(message.contains(&position), "no `{position}` for\n{text}\nin: {message}");
        for part in parts {
            assert!(message.contains(part), "no `{part}` for\n{text}\nin: {message}");
        }
        for value in ["KeyMismatch", "BadEncoding", "InvalidCharacter", "[67"] {
            assert!(!message.contains(value), "{message}");
        }
        // The message does not repeat a wrong value, which may be a password.
        assert!(!message.contains("secret"), "{message}");
    }
}

#[test]
fn web_a_file_that_cannot_be_opened_is_named() {
    let host = Host::new();
    let message = refusal(&host, Path::new("/nothing/web.yml"));
    assert!(message.contains("--web-config /nothing/web.yml: No such file"), "{message}");
    let directory = tempfile::tempdir().unwrap();
    let message = refusal(&host, directory.path());
    assert!(message.contains("not a regular file"), "{message}");
    let latin = directory.path().join("latin.yml");
    fs::write(&latin, b"basic_auth_users:\n  J\xfcrgen: x\n").unwrap();
    let message = refusal(&host, &latin);
    assert!(message.contains("latin.yml:"), "{message}");
}

#[test]
fn web_reload_of_an_invalid_file_changes_nothing() {
    let host = Host::new();
    let directory = directory();
    let file = directory.path().join("web.yml");
    fs::write(&file, "").unwrap();
    let listen = format!("--listen 127.0.0.1:{PORT} --web-config {}", file.display());
    let mut pping = ok(Process::spawn(pping(&host.namespace, &format!("-v -i {} {listen}", Host::ETH))));
    wait_until("it is ready", || is_ready(&host.namespace));
    fs::write(&file, "nonsense: 1").unwrap();
    ok(pping.signal(Signal::SIGHUP));
    wait_until("it says so", || {
        let stderr = ok(pping.stderr());
        stderr.contains("web.yml:1:1: ") && stderr.contains("the active configuration stays as it was")
    });
    assert!(is_ready(&host.namespace));
    fs::write(&file, format!("basic_auth_users: {{alice: {HASH}}}")).unwrap();
    ok(pping.signal(Signal::SIGHUP));
    wait_until("it asks for a password", || !is_ready(&host.namespace));
    ok(pping.stop(Signal::SIGINT, ENDING));
}

//! TLS as curl sees it.

use std::{fs, path::Path, thread, time::Duration};

use super::{Served, certificates::Authority};
use crate::agent::monitor::{repository, tool, wait_until};

const TLS: &str = "tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n";

/// Starts a server with a certificate, and writes clients' certificates into its directory.
fn served(more: &str) -> Served {
    Served::new(&format!("{TLS}{more}"), prepare)
}

fn prepare(directory: &Path) {
    let authority = Authority::new("ours");
    authority.write(&directory.join("ca.pem"));
    authority.issue(directory, "server", &["localhost"]);
    authority.issue(directory, "friend", &["friend.example", "192.0.2.1"]);
    Authority::new("not ours").issue(directory, "foreign", &["friend.example"]);
}

#[test]
fn web_a_tls_server_refuses_plain_http() {
    let served = served("");
    let https = served.curl("--cacert @ca.pem", &served.url("https", "/healthz"));
    assert_eq!(https.status, 200, "{}", https.text);
    let untrusted = served.curl("", &served.url("https", "/healthz"));
    assert!(untrusted.status == 0 && untrusted.text.contains("certificate"), "{}", untrusted.text);
    assert_eq!(served.curl("", &served.url("http", "/healthz")).status, 0);
}

#[test]
fn web_versions_ciphers_and_curves_can_be_chosen() {
    let asked = |more: &str, options: &str| {
        let served = served(more);
        served.curl(&format!("--cacert @ca.pem {options}"), &served.url("https", "/healthz")).status
    };
    assert_eq!(asked("", "--tls-max 1.2"), 200);
    assert_eq!(asked("", "--tlsv1.0 --tls-max 1.1"), 0);
    assert_eq!(asked("  min_version: TLS13\n", "--tls-max 1.2"), 0);
    assert_eq!(asked("  min_version: TLS13\n", ""), 200);
    assert_eq!(asked("  max_version: TLS12\n", "--tlsv1.3"), 0);
    assert_eq!(asked("  max_version: TLS12\n", ""), 200);
    let suites = "  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]\n";
    assert_eq!(asked(suites, "--tls-max 1.2 --ciphers ECDHE-ECDSA-AES256-GCM-SHA384"), 200);
    assert_eq!(asked(suites, "--tls-max 1.2 --ciphers ECDHE-ECDSA-AES128-GCM-SHA256"), 0);
    assert_eq!(asked("  curve_preferences: [CurveP384]\n", "--curves P-384"), 200);
    assert_eq!(asked("  curve_preferences: [CurveP384]\n", "--curves P-256"), 0);
}

#[test]
fn web_clients_may_have_to_show_a_certificate() {
    const VERIFIED: &str = "  client_ca_file: ca.pem\n  client_auth_type: ";
    const ANY: &str = "  client_auth_type: ";
    // For each setting, whether a client is accepted without a certificate, with one of our authority, and with one of
    // another authority.
    for (more, expected) in [
        (format!("{ANY}NoClientCert\n"), [true, true, true]),
        (format!("{ANY}RequestClientCert\n"), [true, true, true]),
        (format!("{ANY}RequireAnyClientCert\n"), [false, true, true]),
        (format!("{ANY}RequireClientCert\n"), [false, true, true]),
        (format!("{VERIFIED}VerifyClientCertIfGiven\n"), [true, true, false]),
        (format!("{VERIFIED}RequireAndVerifyClientCert\n"), [false, true, false]),
    ] {
        assert_eq!(admitted(&more), expected, "{more}");
    }
    let named =
        |name| admitted(&format!("{VERIFIED}RequireAndVerifyClientCert\n  client_allowed_sans: [{name}]\n"));
    assert_eq!(named("friend.example"), [false, true, false]);
    assert_eq!(named("nobody.example, 192.0.2.1"), [false, true, false]);
    assert_eq!(named("nobody.example, 192.0.2.2, example"), [false, false, false]);
}

fn admitted(more: &str) -> [bool; 3] {
    let served = served(more);
    ["", "--cert @friend.pem --key @friend.key", "--cert @foreign.pem --key @foreign.key"].map(|options| {
        let options = format!("--cacert @ca.pem {options}");
        // With TLS 1.3 the server refuses only after the client has finished the handshake.
        [("", 200), ("--tls-max 1.2", 200)]
            .map(|(version, status)| {
                let url = served.url("https", "/healthz");
                served.curl(&format!("{options} {version}"), &url).status == status
            })
            .iter()
            .all(|&it| it)
    })
}

#[test]
fn web_certificates_may_be_renewed_and_keys_be_part_of_the_file() {
    let served = served("");
    let url = served.url("https", "/healthz");
    let status = |authority: &str| served.curl(&format!("--cacert @{authority}"), &url).status;
    assert_eq!(status("ca.pem"), 200);
    let new = Authority::new("new");
    new.write(&served.file("new.pem"));
    new.issue(served.directory.path(), "server", &["localhost"]);
    wait_until("the new certificate is used", || status("new.pem") == 200);
    assert_eq!(status("ca.pem"), 0);

    // An invalid file changes nothing, even if a reload is requested.
    fs::write(served.file("server.key"), "no key").unwrap();
    served.reload("web.yml");
    thread::sleep(Duration::from_millis(1_200));
    assert_eq!(status("new.pem"), 200);

    let other = Authority::new("other");
    other.write(&served.file("other.pem"));
    other.issue(served.directory.path(), "inline", &["localhost"]);
    let indented = |name: &str| {
        let pem = fs::read_to_string(served.file(name)).unwrap();
        pem.lines().fold(String::new(), |text, line| format!("{text}    {line}\n"))
    };
    let web_config = format!(
        "tls_server_config:\n  cert: |\n{}  key: |\n{}",
        indented("inline.pem"),
        indented("inline.key")
    );
    fs::write(served.file("web.yml"), web_config).unwrap();
    served.reload("web.yml");
    wait_until("the new file is used", || status("other.pem") == 200);
}

#[test]
fn web_the_example_is_valid_for_prometheus_too() {
    let example = repository("deploy/web-config.example.yml");
    let example = fs::read_to_string(example).unwrap();
    let served = Served::new(&example, |directory| {
        let authority = Authority::new("ours");
        authority.write(&directory.join("ca.pem"));
        authority.issue(directory, "pping", &["localhost"]);
    });
    let (is_valid, said) =
        tool("promtool", &["check", "web-config", served.file("web.yml").to_str().unwrap()]);
    assert!(is_valid, "{said}");
    fs::write(served.file("curlrc"), "user = \"prometheus:change me\"\n").unwrap();
    let reply = served.curl("--cacert @ca.pem --config @curlrc", &served.url("https", "/metrics"));
    assert_eq!(reply.status, 200, "{}", reply.text);
    assert!(reply.text.to_lowercase().contains("\nx-content-type-options: nosniff\r"), "{}", reply.text);
}

//! Servers with a certificate that is its own authority, as curl and `pping top` see them.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};

use super::Served;
use crate::agent::{
    documents::{block, replaced},
    monitor::PPING,
};

const TLS: &str = "tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n";

/// Options of `openssl req -x509`: the kind of the key.
const EC: &str = "-newkey ec -pkeyopt ec_paramgen_curve:P-256";

/// Makes `stem.pem` and `stem.key` with `openssl req -x509`.
fn openssl(directory: &Path, stem: &str, options: &str) {
    let mut openssl = Command::new("openssl");
    openssl.args("req -x509 -nodes -days 2 -subj /CN=localhost".split_whitespace());
    openssl.args(options.split_whitespace()).current_dir(directory);
    let output = openssl.args(["-keyout", &format!("{stem}.key"), "-out", &format!("{stem}.pem")]).output();
    let output = output.expect("openssl, which `cargo xtask setup --tests` installs");
    assert!(output.status.success(), "{options}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Makes the same with rcgen, for years that openssl cannot be asked for.
fn of_years(directory: &Path, years: [i32; 2]) {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    (params.not_before, params.not_after) = (date_time_ymd(years[0], 1, 1), date_time_ymd(years[1], 1, 1));
    let key = KeyPair::generate().unwrap();
    fs::write(directory.join("server.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(directory.join("server.key"), key.serialize_pem()).unwrap();
}

/// Runs `pping top --once` for a server, with options in which `@` stands for its directory.
fn top(served: &Served, scheme: &str, host: &str, options: &str) -> (Option<i32>, String) {
    let url = format!("{scheme}://{host}:{}", served.server.address().port());
    let directory = format!("{}/", served.directory.path().display());
    let options = options.replace('@', &directory);
    let mut top = Command::new(PPING);
    top.args(["top", "--once", "--connect", &url]).args(options.split_whitespace());
    let Output { status, stdout, stderr } = top.output().unwrap();
    (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

#[test]
fn web_a_self_signed_certificate_is_accepted_like_by_curl() {
    for (options, host) in [
        (format!("{EC} -addext subjectAltName=DNS:localhost"), "localhost"),
        (format!("{EC} -addext subjectAltName=IP:127.0.0.1"), "127.0.0.1"),
        ("-newkey rsa:2048 -addext subjectAltName=DNS:localhost".to_owned(), "localhost"),
        ("-newkey ed25519 -addext subjectAltName=DNS:localhost,IP:127.0.0.1".to_owned(), "127.0.0.1"),
        (format!("{EC} -addext subjectAltName=DNS:localhost -addext basicConstraints=CA:FALSE"), "localhost"),
    ] {
        // In a file of several certificates too.
        let served = Served::new(TLS, |directory| {
            openssl(directory, "server", &options);
            openssl(directory, "other", EC);
            let both = ["other.pem", "server.pem"].map(|name| fs::read(directory.join(name)).unwrap());
            fs::write(directory.join("both.pem"), both.concat()).unwrap();
        });
        for file in ["server.pem", "both.pem"] {
            let url = format!("https://{host}:{}/healthz", served.server.address().port());
            let reply = served.curl(&format!("--cacert @{file}"), &url);
            assert_eq!(reply.status, 200, "{options}: {}", reply.text);
            let (ended, said) = top(&served, "https", host, &format!("--cacert @{file}"));
            assert!(ended == Some(0) && said.contains("groups in the last minute"), "{options}: {said}");
        }
    }
}

/// How a server's certificate is made, the file that is trusted, and what is said.
type Prepared<'a> = (Box<dyn FnOnce(&Path)>, &'a str, &'a str);

#[test]
fn web_a_certificate_that_is_refused_is_named_with_its_fault() {
    let names = |names: &str| format!("{EC} -addext subjectAltName={names}");
    let by_openssl = |options: String| move |directory: &Path| openssl(directory, "server", &options);
    let of_years = |years| move |directory: &Path| of_years(directory, years);
    let localhost = "DNS:localhost";
    let prepared: [Prepared<'_>; 6] = [
        (
            Box::new(by_openssl(names("DNS:gw7.example,IP:192.0.2.7"))),
            "server.pem",
            "its certificate is for gw7.example, 192.0.2.7, not for localhost",
        ),
        (Box::new(by_openssl(EC.to_owned())), "server.pem", "names no host; issue it with subjectAltName"),
        (
            Box::new(by_openssl(names(localhost))),
            "other.pem",
            "unknown authority; give the authority's certificate with --cacert, or this certificate itself",
        ),
        (
            Box::new(by_openssl(names(localhost) + " -addext basicConstraints=CA:FALSE")),
            "other.pem",
            "is not signed by the certificate of the same name that is trusted; was that one renewed?",
        ),
        (Box::new(of_years([2001, 2002])), "server.pem", "expired on 2002-01-01 00:00:00 UTC"),
        (Box::new(of_years([2201, 2202])), "server.pem", "is valid from 2201-01-01 00:00:00 UTC on"),
    ];
    for (prepare, trusted, fault) in prepared {
        let served = Served::new(TLS, |directory| {
            openssl(directory, "other", &names(localhost));
            prepare(directory);
        });
        let (ended, said) = top(&served, "https", "localhost", &format!("--cacert @{trusted}"));
        assert!(ended == Some(1) && said.contains(fault), "{fault}: {ended:?} {said}");
        let has_rust_value = said.contains("Issuer") || said.contains("Other(") || said.contains('{');
        assert!(!has_rust_value, "{said}");
        let (ended, said) = top(&served, "https", "localhost", "--insecure");
        assert!(ended == Some(0) && said.contains("groups in the last minute"), "{said}");
        assert!(said.contains("is not checked, so anybody on the way"), "{said}");
    }
}

#[test]
fn web_insecure_is_refused_where_it_means_nothing() {
    let served = Served::plain();
    let (ended, said) = top(&served, "http", "localhost", "--insecure");
    assert!(ended == Some(2) && said.contains("--insecure") && said.contains("https://"), "{said}");
    let (ended, said) = top(&served, "https", "localhost", "--insecure --cacert @ca.pem");
    assert!(ended == Some(2) && said.contains("--cacert"), "{said}");
    let (ended, said) = top(&served, "https", "localhost", "--insecure");
    assert!(ended == Some(1) && said.contains("it does not speak TLS"), "{said}");
    assert!(!said.contains("is pping running"), "somebody answered: {said}");
    let (ended, said) = top(&served, "http", "localhost", "--cacert @ca.pem");
    assert!(ended == Some(2) && said.contains("--cacert: there are no certificates with"), "{said}");
}

#[test]
fn web_the_certificate_that_the_page_makes_is_accepted() {
    let script = block("docs/http.md", "sh", "openssl req");
    let script = replaced(&replaced(&script, "gateway.example", "localhost"), "192.0.2.1", "127.0.0.1");
    let made = script.split("\n\n").next().unwrap();
    let served = Served::new(&TLS.replace("server.", "pping."), |directory| {
        let output = Command::new("sh").args(["-euc", made]).current_dir(directory).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    });
    for host in ["localhost", "127.0.0.1"] {
        let (ended, said) = top(&served, "https", host, "--cacert @pping.pem");
        assert!(ended == Some(0) && said.contains("groups in the last minute"), "{said}");
        let url = format!("https://{host}:{}/healthz", served.server.address().port());
        assert_eq!(served.curl("--cacert @pping.pem", &url).status, 200);
    }
}

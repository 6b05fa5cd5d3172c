//! A web site whose name leads to the server cannot read from it.

use std::fs;

use pping_lab::{Process, Signal};

use super::{Served, certificates::Authority, curl_from};
use crate::agent::{
    host::Host,
    http::{PORT, is_ready},
    monitor::{ENDING, ok, pping, wait_until},
};

const HASH: &str = "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e";

const PATHS: [&str; 5] = ["/", "/metrics", "/healthz", "/api/v1/worst", "/no/such/page"];

#[test]
fn web_a_name_of_another_host_gets_no_page_and_the_reason() {
    let served = Served::plain();
    for path in PATHS {
        let reply = served.curl("-H Host:rebound.example:9464", &served.url("http", path));
        assert_eq!(reply.status, 421, "{path}: {}", reply.text);
        assert!(reply.text.contains("--listen-name rebound.example\n"), "{}", reply.text);
    }
}

#[test]
fn web_addresses_and_the_own_name_of_the_host_get_pages() {
    let served = Served::plain();
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    for host in
        ["127.0.0.1:9464", "127.9.9.9", "[::1]:9464", "192.0.2.1", "[2001:db8::1]", "localhost:1", &own]
    {
        let reply = served.curl(&format!("-H Host:{host}"), &served.url("http", "/metrics"));
        assert_eq!(reply.status, 200, "{host}: {}", reply.text);
    }
    let old = served.curl("--http1.0 -H Host:", &served.url("http", "/metrics"));
    assert_eq!(old.status, 200, "{}", old.text);
    let without = served.curl("-H Host:", &served.url("http", "/metrics"));
    assert_eq!(without.status, 400, "{}", without.text);
}

#[test]
fn web_a_password_or_a_certificate_makes_names_unnecessary() {
    let users = format!("basic_auth_users: {{alice: {HASH}}}");
    let served = Served::new(&users, |_| {});
    let reply = served.curl("-H Host:gateway.example", &served.url("http", "/metrics"));
    assert_eq!(reply.status, 401, "{}", reply.text);

    let tls = "tls_server_config: {cert_file: server.pem, key_file: server.key}";
    let served = Served::new(tls, |directory| {
        let authority = Authority::new("ours");
        authority.write(&directory.join("ca.pem"));
        authority.issue(directory, "server", &["localhost"]);
    });
    let options = "--cacert @ca.pem -H Host:gateway.example";
    let reply = served.curl(options, &served.url("https", "/metrics"));
    assert_eq!(reply.status, 200, "{}", reply.text);
    // Without TLS the name counts.
    fs::write(served.file("open.yml"), "").unwrap();
    served.reload("open.yml");
    let url = served.url("http", "/metrics");
    wait_until("TLS is off", || served.curl("-H Host:gateway.example", &url).status == 421);
}

#[test]
fn web_the_api_is_not_for_the_scripts_of_other_sites() {
    let served = Served::plain();
    for (site, path, status) in [
        ("cross-site", "/api/v1/worst", 403),
        ("cross-site", "/api/v1/events", 403),
        ("same-origin", "/api/v1/worst", 200),
        ("none", "/api/v1/worst", 200),
        // Other sites may link to the page, and a browser does not let them read it.
        ("cross-site", "/", 200),
    ] {
        let reply = served.curl(&format!("-H Sec-Fetch-Site:{site}"), &served.url("http", path));
        assert_eq!(reply.status, status, "{site} {path}: {}", reply.text);
    }
}

#[test]
fn web_names_are_listed_by_an_option_and_a_reload_changes_them() {
    let host = Host::new();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pping.toml");
    let configure = |name: &str| {
        let text = format!("listen = \"127.0.0.1:{PORT}\"\nlisten-name = [\"{name}\"]\n");
        fs::write(&file, format!("interface = [\"{}\"]\n{text}", Host::ETH)).unwrap();
    };
    configure("Gateway.example.");
    let mut pping = ok(Process::spawn(pping(&host.namespace, &format!("--config {}", file.display()))));
    wait_until("it is ready", || is_ready(&host.namespace));
    let status = |name: &str| {
        let options = format!("--resolve {name}:{PORT}:127.0.0.1");
        curl_from(&host.namespace, &options, &format!("http://{name}:{PORT}/metrics")).status
    };
    assert_eq!([status("gateway.example"), status("alias.example")], [200, 421]);
    let line = "refused a client that asked for the host alias.example";
    wait_until("the log says so", || ok(pping.stderr()).contains(line));
    configure("alias.example");
    ok(pping.signal(Signal::SIGHUP));
    wait_until("the other name is accepted", || status("alias.example") == 200);
    assert_eq!(status("gateway.example"), 421);
    ok(pping.stop(Signal::SIGINT, ENDING));
}

//! Prometheus scrapes over TLS and with a password.

use std::fs;

use pping_lab::{Process, Topology};

use super::{certificates::Authority, passwords::USERS};
use crate::agent::{
    http::PORT,
    monitor::{endless_ping, ok, pping, topology, wait_until},
    monitoring::stack::{prometheus_configured, replace},
};

#[test]
fn web_prometheus_scrapes_by_tls_and_authenticates() {
    let topology = topology();
    let router = topology.router();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let authority = Authority::new("ours");
    authority.write(at("ca.pem").as_ref());
    authority.issue(directory.path(), "server", &["127.0.0.1"]);
    authority.issue(directory.path(), "client", &["prometheus.example"]);
    let tls = "tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n";
    let mutual = "  client_ca_file: ca.pem\n  client_auth_type: RequireAndVerifyClientCert\n";
    fs::write(at("passwords.yml"), format!("{tls}{USERS}")).unwrap();
    fs::write(at("mutual.yml"), format!("{tls}{mutual}")).unwrap();
    let agent = |port: u16, file: &str| {
        let listen = format!("--listen 127.0.0.1:{port} --web-config {}", at(file));
        ok(Process::spawn(pping(router, &format!("-i {} --format none {listen}", Topology::WAN))))
    };
    let mut agents = [agent(PORT, "passwords.yml"), agent(PORT + 1, "mutual.yml")];
    // Prometheus sends both credentials to both agents. With only one of them, one agent would refuse.
    let credentials = format!(
        "scheme: https\n    basic_auth: {{username: alice, password: correct horse}}\n    \
         tls_config: {{ca_file: {}, cert_file: {}, key_file: {}}}\n    sample_limit:",
        at("ca.pem"),
        at("client.pem"),
        at("client.key")
    );
    let mut prometheus = prometheus_configured(router, &[PORT, PORT + 1], |configuration| {
        replace(&configuration, "sample_limit:", &credentials)
    });
    let _pings = endless_ping(topology.client(), Topology::SERVER_IPV4);
    wait_until("both are scraped", || {
        for agent in &mut agents {
            assert!(ok(agent.status()).is_none(), "{}", ok(agent.stderr()));
        }
        prometheus.value("sum(up{job=\"pping\"})") == Some(2.0)
    });
    wait_until("samples are counted", || {
        prometheus.value("min(sum by (instance) (pping_samples_total))") > Some(5.0)
    });
    for agent in &agents {
        let said = ok(agent.stderr());
        assert!(!said.contains("WARN") && !said.contains("ERROR"), "{said}");
    }
}

//! `pping top` and a service with restricted access.

use std::fs;

use pping_lab::Topology;

use super::{Terminal, top};
use crate::agent::{
    http::LISTEN,
    monitor::{PPING, interrupt, topology, watch},
    web::{certificates::Authority, passwords::USERS},
};

#[test]
fn top_checks_certificates_against_given_authority() {
    let topology = topology();
    let router = topology.router();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let authority = Authority::new("ours");
    authority.write(at("ca.pem").as_ref());
    authority.issue(directory.path(), "server", &["127.0.0.1"]);
    authority.issue(directory.path(), "client", &["operator.example"]);
    Authority::new("another").write(at("other.pem").as_ref());
    fs::write(at("both.pem"), ["client.pem", "client.key"].map(|name| fs::read(at(name)).unwrap()).concat())
        .unwrap();
    fs::write(
        at("web.yml"),
        "tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n  client_ca_file: ca.pem\n  \
         client_auth_type: RequireAndVerifyClientCert\n",
    )
    .unwrap();
    let agent = watch(router, Topology::WAN, &format!("{LISTEN} --web-config {}", at("web.yml")));
    let secure = "--once --connect https://127.0.0.1:9464";
    let (ca, client, key) = (at("ca.pem"), at("client.pem"), at("client.key"));
    for (arguments, code, reason) in [
        (format!("--cacert {ca} --cert {client} --key {key}"), 0, "groups in the last minute"),
        (format!("--cacert {ca} --cert {}", at("both.pem")), 0, "groups in the last minute"),
        (format!("--cacert {ca}"), 1, "it requires a certificate of the client"),
        (
            format!("--cacert {} --cert {}", at("other.pem"), at("both.pem")),
            1,
            "issued by an unknown authority; give the authority's certificate with --cacert",
        ),
        (format!("--cacert {ca} --cert {client}"), 2, "--cert"),
        (format!("--cacert {ca} --cert {key} --key {key}"), 2, "no certificate in PEM"),
        (format!("--cacert {key}"), 2, "--cacert"),
        (format!("--key {key}"), 2, "--cert"),
        ("--cacert /dev/zero".to_owned(), 2, "--cacert /dev/zero: this is not a regular file"),
        (format!("--cert {client} --key /dev/zero"), 2, "/dev/zero: this is not a regular file"),
    ] {
        let (ended, said) = top(router, &format!("{secure} {arguments}"));
        assert!(ended == Some(code) && said.contains(reason), "{arguments}: {ended:?} {said}");
    }
    interrupt(agent);
}

#[test]
fn top_asks_for_a_password_that_is_not_given() {
    let topology = topology();
    let router = topology.router();
    let directory = tempfile::tempdir().unwrap();
    let web = directory.path().join("web.yml");
    fs::write(&web, USERS).unwrap();
    let agent = watch(router, Topology::WAN, &format!("{LISTEN} --web-config {}", web.display()));
    let terminal = Terminal::new(router, (80, 24));
    for (password, said) in [("wrong", "requires a password"), ("correct horse", "groups in the last minute")]
    {
        terminal.keys(&["clear", "Enter"]);
        terminal.keys(&[&format!("{PPING} top --once -u alice"), "Enter"]);
        terminal.wait_for("password of alice:");
        terminal.keys(&["-l", password]);
        terminal.keys(&["Enter"]);
        let screen = terminal.wait_for(said);
        assert!(!screen.contains(password), "{screen}");
    }
    interrupt(agent);
}

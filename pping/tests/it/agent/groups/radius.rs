//! `pping groups radius`, with radclient as the NAS.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, slice};

use pping_lab::{Process, Signal, Topology, run};

use super::client::{Agent, OPTIONS};
use crate::agent::monitor::{ENDING, PATIENCE, PPING, interrupt, ok, ping, wait_until};

pub(super) const SECRET: &str = "a-secret";

/// The source, next to an agent.
pub(super) struct Radius {
    process: Process,
    requests: PathBuf,
}

impl Radius {
    pub(super) fn start(agent: &Agent, options: &str) -> Self {
        let secret = agent.path("secret");
        fs::write(&secret, format!("# of the test\n{SECRET}\n")).unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o640)).unwrap();
        let mut command = agent.topology.router().command(PPING);
        command.args(["groups", "radius", "--secret-file"]).arg(&secret).arg("--socket").arg(agent.socket());
        command.args(options.split_whitespace());
        let mut process = ok(Process::spawn(command));
        ok(process.wait_for_output("taking RADIUS accounting at 127.0.0.1:1813", PATIENCE));
        Self { process, requests: agent.path("requests") }
    }

    /// Sends requests, each with its attributes.
    ///
    /// # Errors
    /// If not all of them are answered.
    fn try_to_send(&self, agent: &Agent, secret: &str, requests: &[String]) -> pping_lab::Result<String> {
        fs::write(&self.requests, requests.join("\n\n")).unwrap();
        let mut radclient = agent.topology.router().command("radclient");
        radclient.args(["-p", "100", "-r", "5", "-t", "1", "-f"]).arg(&self.requests);
        run(radclient.args(["127.0.0.1:1813", "acct", secret]))
    }

    fn send_with(&self, agent: &Agent, secret: &str, requests: &[String]) -> bool {
        self.try_to_send(agent, secret, requests).is_ok()
    }

    #[track_caller]
    pub(super) fn send(&self, agent: &Agent, requests: &[String]) {
        if let Err(error) = self.try_to_send(agent, SECRET, requests) {
            panic!("{error}; the source says {}", ok(self.process.stderr()));
        }
    }

    pub(super) fn stop(mut self) -> String {
        ok(self.process.stop(Signal::SIGTERM, ENDING));
        ok(self.process.stderr())
    }
}

pub(super) fn request(status: &str, session: &str, user: &str, address: &str) -> String {
    let attributes = [
        ("Acct-Status-Type", status),
        ("NAS-Identifier", "bng1"),
        ("Acct-Session-Id", session),
        ("User-Name", user),
        ("Framed-IP-Address", address),
    ];
    let given = attributes.iter().filter(|(_, value)| !value.is_empty());
    let lines: Vec<String> = given.map(|(attribute, value)| format!("{attribute} = \"{value}\"\n")).collect();
    lines.concat()
}

#[track_caller]
fn expect(agent: &Agent, expected: &[(&str, &str)]) {
    let listed = agent.connect().list();
    let listed: Vec<_> = listed.iter().map(|(prefix, label, _)| (&**prefix, &**label)).collect();
    assert_eq!(listed, expected);
}

#[test]
fn a_session_names_its_addresses_until_it_stops() {
    let agent = Agent::new(None, OPTIONS);
    let radius = Radius::start(&agent, "");
    let start = request("Start", "1", "alice", "10.11.2.2") + "Delegated-IPv6-Prefix = fd00:11:2::/64\n";
    radius.send(&agent, slice::from_ref(&start));
    let both = [("10.11.2.2/32", "alice"), ("fd00:11:2::/64", "alice")];
    expect(&agent, &both);
    let (listed, said) = agent.command(&["list", "10.11.2.2"]);
    assert!(listed && said.contains("10.11.2.2/32,alice,radius,yes,nas=bng1"), "{said}");
    ping(agent.topology.client(), Topology::SERVER_IPV4, "-c5 -i0.01");
    wait_until("samples of alice", || agent.samples_of("alice") == 5);
    // The same once more changes nothing, and so does a request with another secret.
    radius.send(&agent, &[start]);
    assert!(!radius.send_with(&agent, "guessed", &[request("Stop", "1", "alice", "10.11.2.2")]));
    expect(&agent, &both);
    // The address is given to another session. The end of the first one comes late.
    radius.send(&agent, &[request("Start", "2", "bob", "10.11.2.2")]);
    radius.send(&agent, &[request("Stop", "1", "alice", "10.11.2.2")]);
    expect(&agent, &[("10.11.2.2/32", "bob")]);
    ping(agent.topology.client(), Topology::SERVER_IPV4, "-c3 -i0.01");
    wait_until("samples of bob", || agent.samples_of("bob") == 3);
    assert_eq!(agent.samples_of("alice"), 5);
    // A session gets another address, and the NAS begins anew.
    radius.send(&agent, &[request("Interim-Update", "2", "bob", "10.11.2.9")]);
    expect(&agent, &[("10.11.2.9/32", "bob")]);
    radius.send(&agent, &[request("Accounting-Off", "", "", "")]);
    expect(&agent, &[]);
    let said = radius.stop();
    assert!(said.contains("its authenticator is wrong; give that NAS the secret"), "{said}");
    assert!(said.contains("0 sessions, 6 requests, ") && said.contains(" with a wrong secret"), "{said}");
    interrupt(agent.process);
}

#[test]
fn what_is_routed_to_a_session_has_its_name() {
    let agent = Agent::new(None, OPTIONS);
    let radius = Radius::start(&agent, "");
    let routes = "Framed-Route = \"10.11.2.0/29 0.0.0.0 1\"\nFramed-Route += \"10.11.9.0/24 0.0.0.0 1\"\n\
                  Framed-IPv6-Route = \"fd00:11:2::/64 :: 1\"\n";
    radius.send(&agent, &[request("Start", "1", "alice", "10.13.0.1") + routes]);
    let all = [
        ("10.11.2.0/29", "alice"),
        ("10.11.9.0/24", "alice"),
        ("10.13.0.1/32", "alice"),
        ("fd00:11:2::/64", "alice"),
    ];
    expect(&agent, &all);
    ping(agent.topology.client(), Topology::SERVER_IPV4, "-c3 -i0.01");
    wait_until("samples of a host behind the route", || agent.samples_of("alice") == 3);
    // An update may leave them out; one that has another route replaces those before.
    radius.send(&agent, &[request("Interim-Update", "1", "alice", "10.13.0.1")]);
    expect(&agent, &all);
    let other =
        request("Interim-Update", "1", "alice", "10.13.0.1") + "Framed-Route = \"10.11.8.0/24 0.0.0.0 1\"\n";
    radius.send(&agent, &[other]);
    expect(&agent, &[("10.11.8.0/24", "alice"), all[2], all[3]]);
    radius.send(&agent, &[request("Stop", "1", "alice", "10.13.0.1")]);
    expect(&agent, &[]);
    let odd = request("Start", "2", "bob", "10.13.0.2") + "Framed-Route = \"to the customer\"\n";
    radius.send(&agent, &[odd]);
    expect(&agent, &[("10.13.0.2/32", "bob")]);
    let said = radius.stop();
    assert!(
        said.contains("is left out: `to the customer`") && said.contains("1 with a route that cannot"),
        "{said}"
    );
    interrupt(agent.process);
}

#[test]
fn restarts_of_pping_and_of_the_source_lose_nothing() {
    let mut agent = Agent::new(None, OPTIONS);
    let radius = Radius::start(&agent, "");
    radius.send(&agent, &[request("Start", "1", "alice", "10.11.2.2")]);
    ok(agent.process.stop(Signal::SIGINT, ENDING));
    // It comes while no pping is there: it is not answered, and waits all the same.
    let while_away = [request("Start", "2", "bob", "10.11.2.3"), request("Stop", "1", "alice", "10.11.2.2")];
    assert!(!radius.send_with(&agent, SECRET, &while_away));
    // This pping has forgotten everything.
    fs::remove_file(agent.path("journal")).unwrap();
    agent.restart(OPTIONS);
    wait_until("what waited", || !agent.connect().list().is_empty());
    expect(&agent, &[("10.11.2.3/32", "bob")]);
    radius.send(&agent, &[request("Start", "3", "carol", "10.11.2.4")]);
    // What the source said stays without it, and the next one knows it.
    let said = radius.stop();
    assert!(said.contains("changes wait for it") && said.contains("not answered"), "{said}");
    expect(&agent, &[("10.11.2.3/32", "bob"), ("10.11.2.4/32", "carol")]);
    let radius = Radius::start(&agent, "--expire 3s");
    // It does not know whose NAS reported them.
    radius.send(&agent, &[request("Accounting-Off", "", "", "")]);
    expect(&agent, &[("10.11.2.3/32", "bob"), ("10.11.2.4/32", "carol")]);
    radius.send(&agent, &[request("Stop", "2", "bob", "10.11.2.3")]);
    expect(&agent, &[("10.11.2.4/32", "carol")]);
    wait_until("it expires", || agent.connect().list().is_empty());
    radius.stop();
    interrupt(agent.process);
}

#[test]
fn a_secret_that_others_can_read_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let secret = directory.path().join("secret");
    fs::write(&secret, "secret\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    let arguments = ["groups", "radius", "--secret-file", secret.to_str().unwrap()];
    let (succeeded, said) = crate::agent::monitor::tool(PPING, &arguments);
    assert!(!succeeded && said.contains("others can read the secrets; run: chmod o= "), "{said}");
}

//! `pping groups radius`, with radclient as the NAS.

use std::{
    fs,
    net::UdpSocket,
    os::{fd::OwnedFd, unix::fs::PermissionsExt as _},
    path::PathBuf,
    slice,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
use pping_lab::{Process, Signal, Topology, run};
use serde_json::Value;

use super::client::{Agent, OPTIONS};
use crate::agent::monitor::{ENDING, PATIENCE, PPING, interrupt, ok, ping, wait_until};

const SECRET: &str = "a-secret";

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

/// Sessions that change their addresses while these are pinged.
const SESSIONS: usize = 300;
const ROUNDS: usize = 4;

/// The clock of records and that of this test may differ by this much, in ns.
const CLOCKS: u64 = 2_000_000;

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

/// The address of a number.
fn address(number: usize) -> String {
    format!("10.12.{}.{}", number / 200, 1 + number % 200)
}

/// The address of a session in a round: each is another session's in the next one.
fn address_of(session: usize, round: usize) -> String {
    address((session + 7 * round) % SESSIONS)
}

/// Ends pings, also if an assertion fails before.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A socket for pings, whose replies the kernel sorts by socket.
fn ping_socket() -> UdpSocket {
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket: OwnedFd = socket(AddressFamily::Inet, SockType::Datagram, flags, SockProtocol::Icmp).unwrap();
    UdpSocket::from(socket)
}

/// Pings all addresses in turn until the end. Returns the number of replies.
fn ping_all(is_over: &AtomicBool) -> u64 {
    let socket = ping_socket();
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let (mut replies, mut number, mut reply) = (0, 0_usize, [0; 100]);
    while !is_over.load(Ordering::Relaxed) {
        let [high, low] = (number as u16).to_be_bytes();
        let request = [8, 0, 0, 0, 0, 0, high, low, 1, 2, 3, 4];
        socket.send_to(&request, (&*address(number % SESSIONS), 0)).unwrap();
        number += 1;
        if number % 16 == 0 {
            for _ in 0..16 {
                replies += u64::from(socket.recv(&mut reply).is_ok());
            }
        }
    }
    for _ in 0..number % 16 {
        replies += u64::from(socket.recv(&mut reply).is_ok());
    }
    replies
}

#[test]
fn sessions_change_addresses_under_traffic_and_no_sample_has_a_wrong_name() {
    let agent = Agent::new(None, "--format jsonl");
    let topology = &agent.topology;
    ok(run(topology.server().command("ip").args(["route", "add", "local", "10.12.0.0/16", "dev", "lo"])));
    ok(run(topology.router().command("ip").args(["route", "add", "10.12.0.0/16", "via", "10.11.2.2"])));
    ok(topology.client().sysctl("net.ipv4.ping_group_range", "0 2147483647"));
    let radius = Radius::start(&agent, "");
    let user = |session: usize| format!("user-{session}");
    let requests = |status: &str, round: usize| -> Vec<String> {
        (0..SESSIONS)
            .map(|it| request(status, &format!("{round}-{it}"), &user(it), &address_of(it, round)))
            .collect()
    };
    let is_over = AtomicBool::new(false);
    // When the starts of a round were answered, and when its stops began.
    let (mut rounds, mut replies) = (Vec::new(), 0);
    thread::scope(|scope| {
        let pings = scope.spawn(|| ok(topology.client().enter(|| ping_all(&is_over))));
        let over = SetOnDrop(&is_over);
        for round in 0..ROUNDS {
            radius.send(&agent, &requests("Start", round));
            let answered = now();
            thread::sleep(Duration::from_millis(800));
            rounds.push((answered, now()));
            if round % 2 == 0 {
                radius.send(&agent, &requests("Stop", round));
            } else {
                // The addresses change hands first, and the stops come late.
                radius.send(&agent, &requests("Start", round + 1));
                radius.send(&agent, &requests("Stop", round));
            }
        }
        drop(over);
        replies = pings.join().unwrap();
    });
    thread::sleep(Duration::from_millis(300));
    radius.stop();
    let written = interrupt(agent.process);
    let mut samples = 0;
    let mut named = vec![0; ROUNDS];
    for line in written.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let ends = ["src_ip", "dest_ip"].map(|end| record[end].as_str().unwrap_or_default());
        let Some(host) = ends.into_iter().find(|end| end.starts_with("10.12.")) else { continue };
        if record["type"] != "rtt" {
            continue;
        }
        samples += 1;
        let time = record["timestamp"].as_u64().unwrap();
        for (round, &(from, to)) in rounds.iter().enumerate() {
            if time > from + CLOCKS && time + CLOCKS < to {
                let owner = (0..SESSIONS).find(|it| address_of(*it, round) == host).unwrap();
                assert_eq!(record["group"], *user(owner), "in round {round}: {record}");
                named[round] += 1;
            }
        }
    }
    eprintln!("{replies} replies, {samples} samples, in the middle of rounds {named:?}");
    assert_eq!(samples, replies, "samples and replies");
    assert!(named.iter().all(|named| *named > SESSIONS), "{named:?}");
}

//! SIGHUP applies what can change while packets pass, names what cannot, and changes nothing on an error.

use std::{fs, path::PathBuf, process::Command};

use pping_lab::{Process, Signal, Topology};
use tempfile::TempDir;

use super::{
    http::{PORT, get, scrape},
    interfaces::is_watched,
    monitor::{endless_ping, interrupt, ok, pping, topology, wait_until, watch_with},
};

/// A pping whose configuration file can be changed.
struct Agent {
    topology: Topology,
    directory: TempDir,
    process: Process,
}

impl Agent {
    fn new(text: &str) -> Self {
        let (topology, directory) = (topology(), tempfile::tempdir().unwrap());
        let path = directory.path().join("pping.toml");
        fs::write(&path, format!("{text}verbose = 1\n")).unwrap();
        let command = pping(topology.router(), &format!("--config {}", path.display()));
        let process = watch_with(command, Topology::WAN);
        Self { topology, directory, process }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes the configuration, sends SIGHUP, and waits until pping prints `said`.
    fn reload(&mut self, text: &str, said: &str) {
        fs::write(self.path("pping.toml"), format!("{text}verbose = 1\n")).unwrap();
        ok(self.process.signal(Signal::SIGHUP));
        wait_until(said, || ok(self.process.stderr()).contains(said));
    }

    fn watches(&self, interface: &str) -> bool {
        is_watched(self.topology.router(), interface)
    }
}

const BOTH: &str =
    "interface = [\"wan0\", \"lan0\"]\nlisten = \"127.0.0.1:9464\"\nformat = \"jsonl\"\nrate-limit = \"0\"\n";
const ONE: &str =
    "interface = [\"wan0\"]\nlisten = \"127.0.0.1:9464\"\nformat = \"jsonl\"\nrate-limit = \"0\"\n";

#[test]
fn interfaces_are_added_and_removed_and_the_others_miss_nothing() {
    let mut agent = Agent::new(ONE);
    let _pings = endless_ping(agent.topology.client(), Topology::SERVER_IPV4);
    for _ in 0..3 {
        agent.reload(BOTH, "watching lan0 at");
        wait_until("both are watched", || agent.watches("lan0"));
        agent.reload(ONE, "lan0 (ifindex");
        wait_until("one is watched", || !agent.watches("lan0"));
    }
    // Requests leave and replies arrive through an interface that is watched all the time.
    let wan = |name: &str, direction: (&str, &str)| {
        let labels = [("interface", "wan0"), direction];
        scrape(agent.topology.router()).sum(name, &labels).unwrap()
    };
    let (samples, replies) = (
        wan("pping_samples_total", ("matched", "ingress")),
        wan("pping_packets_total", ("protocol", "icmp")) / 2.0,
    );
    assert!(samples > 50.0 && (samples - replies).abs() < 30.0, "{samples} samples, {replies} replies");
    interrupt(agent.process);
}

#[test]
fn what_is_inside_changes_for_open_flows_too() {
    let inside = |networks: &str| format!("{ONE}inside = [{networks}]\n");
    let mut agent = Agent::new(&inside("\"10.11.1.0/24\""));
    let _pings = endless_ping(agent.topology.client(), Topology::SERVER_IPV4);
    // The server replies by wan0.
    let count = |agent: &Agent, side| {
        let labels = [("side", side), ("matched", "ingress"), ("method", "icmp-echo")];
        scrape(agent.topology.router()).sum("pping_rtt_seconds_count", &labels).unwrap_or(0.0) as u64
    };
    wait_until("the server is outside", || count(&agent, "outside") > 5);
    assert_eq!(count(&agent, "inside"), 0);
    agent.reload(&inside("\"10.11.2.0/24\", \"192.0.2.0/24\""), "--inside: now 2 networks");
    wait_until("the server is inside", || count(&agent, "inside") > 5);
    let outside = count(&agent, "outside");
    wait_until("more replies", || count(&agent, "inside") > 10);
    assert_eq!(count(&agent, "outside"), outside);
    agent.reload(ONE, "inside: the change takes effect only when pping restarts");
    let inside = count(&agent, "inside");
    wait_until("it goes on", || count(&agent, "inside") > inside + 5);
    interrupt(agent.process);
}

#[test]
fn groups_file_as_named_pipe_blocks_nothing() {
    let mut agent = Agent::new(ONE);
    let path = agent.path("pping.toml");
    fs::remove_file(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    ok(agent.process.signal(Signal::SIGHUP));
    wait_until("the pipe is refused", || ok(agent.process.stderr()).contains("not a regular file"));
    assert!(agent.watches("wan0"));
    interrupt(agent.process);
}

#[test]
fn failed_reload_changes_nothing_and_names_position() {
    let mut agent = Agent::new(ONE);
    agent.reload(&BOTH.replace("\"0\"", "\"fast\""), "the configuration stays as it was");
    let said = ok(agent.process.stderr());
    assert!(said.contains("pping.toml:4:14:") && said.contains("fast"), "{said}");
    assert!(agent.watches("wan0") && !agent.watches("lan0"));
    // A missing interface and an unusable address are errors too.
    agent.reload(&BOTH.replace("lan0", "lam0"), "did you mean lan0?");
    agent.reload(&BOTH.replace("127.0.0.1:9464", "192.0.2.1:9464"), "192.0.2.1:9464: Cannot assign");
    assert!(agent.watches("wan0") && !agent.watches("lan0"));
    agent.reload(BOTH, "watching lan0 at");
    interrupt(agent.process);
}

#[test]
fn momentarily_empty_groups_file_changes_nothing() {
    let groups = tempfile::tempdir().unwrap();
    let path = groups.path().join("groups.csv");
    fs::write(&path, format!("{}/32,the-server\n", Topology::SERVER_IPV4)).unwrap();
    let text = format!("{ONE}groups = \"{}\"\n", path.display());
    let mut agent = Agent::new(&text);
    let pings = endless_ping(agent.topology.client(), Topology::SERVER_IPV4);
    let samples_of = |agent: &Agent, group: &str| {
        let name = "pping_rtt_seconds_count";
        scrape(agent.topology.router()).sum(name, &[("group", group)]).unwrap_or(0.0)
    };
    wait_until("the group is measured", || samples_of(&agent, "the-server") > 3.0);
    // A program that writes the file anew has truncated it.
    fs::write(&path, "").unwrap();
    agent.reload(&text, "the groups stay as they were");
    let said = ok(agent.process.stderr());
    assert!(said.contains("groups.csv:1:1: ") && said.contains("there is no prefix in this file"), "{said}");
    let before = samples_of(&agent, "the-server");
    wait_until("the group is still measured", || samples_of(&agent, "the-server") > before + 3.0);
    assert!(samples_of(&agent, "unlisted") < 1.0);
    // The next reload takes what was written.
    fs::write(&path, format!("{}/32,renamed\n", Topology::SERVER_IPV4)).unwrap();
    ok(agent.process.signal(Signal::SIGHUP));
    wait_until("the new group is measured", || samples_of(&agent, "renamed") > 3.0);
    // Whoever reads the log finds out if half of the file was lost.
    let said = ok(agent.process.stderr());
    assert!(said.contains("groups.csv: 1 prefix of 1 group read in "), "{said}");
    assert!(said.contains("groups.csv: now 1 prefix of 1 group, before 1 prefix of 1 group"), "{said}");
    drop(pings);
    interrupt(agent.process);
}

#[test]
fn a_reload_names_fixed_options_and_applies_the_rest() {
    let mut agent = Agent::new(ONE);
    agent.reload(
        &(BOTH.replace("\"0\"", "\"3s\"") + "max-flows = 5000\n"),
        "max-flows, rate-limit: the change takes effect only when pping restarts",
    );
    wait_until("the rest is followed", || agent.watches("lan0"));
    let capacity = scrape(agent.topology.router()).sum("pping_map_capacity", &[("map", "FLOWS_V4")]);
    assert_ne!(capacity, Some(5000.0));
    interrupt(agent.process);
}

#[test]
fn a_reload_moves_the_output_and_the_address() {
    let mut agent = Agent::new(ONE);
    let _pings = endless_ping(agent.topology.client(), Topology::SERVER_IPV4);
    wait_until("records on standard output", || ok(agent.process.stdout()).contains("icmp-echo"));
    let records = agent.path("records");
    let text = ONE.replace("9464", "9465") + &format!("write = \"{}\"\n", records.display());
    fs::write(agent.path("pping.toml"), text).unwrap();
    ok(agent.process.signal(Signal::SIGHUP));
    wait_until("records in the file", || {
        fs::read_to_string(&records).is_ok_and(|text| text.lines().any(|line| line.contains("icmp-echo")))
    });
    let router = agent.topology.router();
    wait_until("it listens at the new address alone", || {
        get(router, 9465, "/readyz", "*/*").is_some_and(|it| it.status == 200)
            && get(router, PORT, "/readyz", "*/*").is_none()
    });
    interrupt(agent.process);
}

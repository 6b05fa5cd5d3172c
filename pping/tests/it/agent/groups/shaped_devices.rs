//! `pping groups shaped-devices`.

use std::{fs, process::Command};

use pping_lab::{Process, Signal, Topology};

use super::client::{Agent, OPTIONS};
use crate::agent::monitor::{ENDING, PATIENCE, PPING, interrupt, ok, ping, wait_until};

const HEADER: &str = "Circuit ID,Circuit Name,Device ID,Device Name,Parent Node,MAC,IPv4,IPv6,Download Min Mbps,\
                      Upload Min Mbps,Download Max Mbps,Upload Max Mbps,Comment\n";

#[test]
fn circuits_are_groups_and_their_parents_are_columns() {
    let agent = Agent::new(None, OPTIONS);
    let file = agent.path("ShapedDevices.csv");
    let circuit = |name: &str, addresses: &str| {
        format!("{name},{name} Lane,1,CPE,AP_1,,\"{addresses}\",,1,1,100,20,\n")
    };
    fs::write(&file, format!("{HEADER}{}", circuit("7", "10.11.2.2, 10.11.9.9"))).unwrap();
    let path = file.to_str().unwrap();
    let (succeeded, said) = agent.command(&["shaped-devices", path]);
    assert!(succeeded && said.contains("shaped-devices lists 2 prefixes now\n"), "{said}");
    let (_, listed) = agent.command(&["list", "10.11.2.2"]);
    let expected = "10.11.2.2/32,7 Lane,shaped-devices,yes,parent=AP_1 plan=100/20,parent=AP_1 plan=100/20\n";
    assert!(listed.contains(expected), "{listed}");
    ping(agent.topology.client(), Topology::SERVER_IPV4, "-c4 -i0.01");
    wait_until("samples of the circuit", || agent.samples_of("7 Lane") == 4);

    let mut command = Command::new(PPING);
    command.args(["groups", "shaped-devices", "--follow", path, "--socket"]).arg(agent.socket());
    let mut follower = ok(Process::spawn(command));
    ok(follower.wait_for_output("2 prefixes", PATIENCE));
    let labels =
        || -> Vec<String> { agent.connect().list().into_iter().map(|(_, label, _)| label).collect() };
    fs::write(&file, format!("{HEADER}{}{}", circuit("7", "10.11.9.9"), circuit("8", "10.11.2.2"))).unwrap();
    wait_until("the new file", || labels() == ["8 Lane", "7 Lane"]);
    // It is being written.
    fs::write(&file, "").unwrap();
    ok(follower.wait_for_output("the groups stay as they were", PATIENCE));
    assert_eq!(labels(), ["8 Lane", "7 Lane"]);
    fs::write(&file, format!("{HEADER}{}", circuit("8", "10.11.2.2"))).unwrap();
    wait_until("the whole file", || labels() == ["8 Lane"]);
    ok(follower.stop(Signal::SIGTERM, ENDING));
    interrupt(agent.process);
}

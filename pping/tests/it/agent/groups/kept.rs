//! What survives a restart.

use std::{fs, os::unix::fs::PermissionsExt as _, thread};

use pping_lab::{Signal, Topology};
use serde_json::json;

use super::client::{Agent, OPTIONS, SOON};
use crate::agent::{
    http::scrape,
    monitor::{ENDING, interrupt, ok, ping, tool, wait_until},
};

#[test]
fn what_came_by_the_socket_survives_a_kill() {
    let mut agent = Agent::new(Some("10.11.2.0/24,servers\n"), OPTIONS);
    let mut client = agent.connect();
    client.add("10.11.2.2", "customer-1");
    client.add("10.11.1.2", "customer-2");
    client.add("10.11.2.2", "customer-3");
    client.remove("10.11.1.2");
    let by_radius = json!({"op": "add", "prefix": "fd00:11:2::/64", "label": "customer-6", "source": "radius",
        "columns": {"site": "north"}});
    assert_eq!(client.ask(&by_radius)["change"], "added");
    let before = client.list();
    assert_eq!(before.len(), 3);
    // The thread that writes the file is not the one that answers.
    thread::sleep(SOON);
    agent.kill();
    assert!(agent.socket().exists(), "a killed run leaves its socket");
    agent.restart(OPTIONS);
    assert_eq!(agent.connect().list(), before);
    ping(agent.topology.client(), Topology::SERVER_IPV4, "-c5 -i0.01");
    wait_until("the first packets count under the label", || agent.samples_of("customer-3") == 5);
    assert_eq!(agent.samples_of("servers") + agent.samples_of("unlisted"), 0);
    let metrics = scrape(agent.topology.router());
    let prefixes = |source| metrics.sum("pping_group_prefixes", &[("source", source)]);
    assert_eq!([prefixes("file"), prefixes("cli"), prefixes("radius")], [Some(1.0); 3]);

    // An orderly end removes the socket.
    let socket = agent.socket();
    let mode = fs::symlink_metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    ok(agent.process.stop(Signal::SIGTERM, ENDING));
    assert!(!socket.exists());
    agent.restart(OPTIONS);
    assert_eq!(agent.connect().list(), before);
    interrupt(agent.process);
}

#[test]
fn a_damaged_file_is_named_and_put_aside() {
    let mut agent = Agent::new(None, OPTIONS);
    let mut client = agent.connect();
    for number in 1..=9 {
        client.add(&format!("10.0.0.{number}"), "customer");
    }
    thread::sleep(SOON);
    ok(agent.process.stop(Signal::SIGTERM, ENDING));
    let path = agent.path("journal");
    let whole = fs::read(&path).unwrap();
    let line = whole.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    let zeroed = [&whole[..], &[0; 4096]].concat();
    let mut gap = whole.clone();
    gap[line + 3..line + 9].fill(0);
    let second = line + whole[line..].iter().position(|&byte| byte == b'\n').unwrap() + 1;
    let missing = [&whole[..line], &whole[second..]].concat();
    for (content, kept, said) in [
        (whole[..whole.len() - 7].to_vec(), 8, "the last change was not written to its end"),
        (zeroed, 9, "it is damaged from line 11 on"),
        (gap, 0, "it is damaged at line 2"),
        (missing, 0, "it is damaged at line 2 (change 1 should be there, and change 2 is)"),
        (b"\x7fELF\n\n".to_vec(), 0, "it is another kind of file"),
    ] {
        fs::write(&path, &content).unwrap();
        agent.restart(OPTIONS);
        assert_eq!(agent.connect().list().len(), kept, "{said}");
        let stderr = ok(agent.process.stderr());
        assert!(stderr.contains(said) && stderr.contains("journal: "), "{stderr}");
        if !said.contains("last change") {
            assert_eq!(fs::read(agent.path("journal.damaged")).unwrap(), content);
        }
        // What comes now is kept again.
        agent.connect().add("10.0.1.1", "another");
        thread::sleep(SOON);
        agent.kill();
        agent.restart(OPTIONS);
        assert_eq!(agent.connect().list().len(), kept + 1, "{said}");
        ok(agent.process.stop(Signal::SIGTERM, ENDING));
    }
}

#[test]
fn another_file_or_pping_at_the_path_is_refused() {
    let agent = Agent::new(None, OPTIONS);
    let socket = agent.socket();
    let started = |path: &str| {
        let mut command = agent.topology.router().command(crate::agent::monitor::PPING);
        command.args(["-i", Topology::WAN, "--format", "none", "--groups-socket", path]);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = started(socket.to_str().unwrap());
    assert!(code == Some(2) && said.contains("another program listens there"), "{said}");
    let file = agent.path("precious");
    fs::write(&file, "text").unwrap();
    let (code, said) = started(file.to_str().unwrap());
    assert!(code == Some(2) && said.contains("another kind of file; remove it"), "{said}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "text");
    let (_, said) = started(agent.path("missing/groups.sock").to_str().unwrap());
    assert!(said.contains("--groups-socket") && said.contains("no such directory"), "{said}");
    let mut command = agent.topology.router().command(crate::agent::monitor::PPING);
    command.args(["-i", Topology::WAN, "--format", "none", "--groups-socket"]).arg(agent.path("other.sock"));
    let output = command.arg("--groups-state").arg(agent.path("journal")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(2) && said.contains("another pping keeps its groups in this file"),
        "{said}"
    );
    // The one that runs is still there.
    assert_eq!(agent.connect().ask(&json!({"op": "hello"}))["protocol"], 1);
    let (succeeded, said) =
        tool(crate::agent::monitor::PPING, &["groups", "list", "--socket", "/nonexistent/groups.sock"]);
    assert!(!succeeded && said.contains("is pping running with --groups-socket?"), "{said}");
    interrupt(agent.process);
}

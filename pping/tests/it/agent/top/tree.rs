//! The tree of groups, in a terminal.

use std::fs;

use pping_lab::Topology;

use super::Terminal;
use crate::agent::{
    http::LISTEN,
    monitor::{PPING, endless_ping, interrupt, topology, watch},
};

const GROUPS: &str = "prefix,group,site,ap\n10.11.0.0/16,router,berlin,ap-1\n10.11.2.0/24,customer-7,lund,ap-3\n\
                      fd00::/8,customer-8,lund,ap-3\n";

#[test]
fn the_tree_opens_node_by_node_and_closes() {
    let topology = topology();
    let router = topology.router();
    let directory = tempfile::tempdir().unwrap();
    let groups = directory.path().join("groups.csv");
    fs::write(&groups, GROUPS).unwrap();
    let options =
        format!("{LISTEN} --rate-limit 0 --format none --groups {} --roll-up site,ap", groups.display());
    let agent = watch(router, Topology::WAN, &options);
    let _pings = [
        endless_ping(topology.client(), Topology::SERVER_IPV4),
        endless_ping(topology.client(), Topology::SERVER_IPV6),
    ];
    let terminal = Terminal::new(router, (120, 20));
    terminal.keys(&[&format!("{PPING} top"), "Enter"]);
    terminal.wait_for("customer-8");
    terminal.wait_for("t tree");
    terminal.keys(&["t"]);
    let screen = terminal.wait_for("members");
    assert!(screen.contains(" site ") && screen.contains("lund") && !screen.contains("customer"), "{screen}");
    terminal.keys(&["/", "10.11.2.77", "Enter"]);
    terminal.wait_for(">lund");
    terminal.keys(&["Enter"]);
    let screen = terminal.wait_for(">ap-3");
    assert!(screen.lines().any(|line| line.contains(">ap-3") && line.contains(" 2 ")), "members: {screen}");
    terminal.keys(&["Right"]);
    terminal.wait_for(">customer-7");
    terminal.keys(&["Escape"]);
    let screen = terminal.wait_for("2 groups under lund/ap-3");
    assert!(screen.contains("customer-8") && !screen.contains("router"), "{screen}");
    terminal.keys(&["Left"]);
    terminal.wait_for("1 ap under lund");
    terminal.keys(&["BSpace"]);
    terminal.wait_for(">lund");
    terminal.keys(&["t"]);
    terminal.wait_for("customer-7");
    terminal.keys(&["q"]);
    terminal.wait_for("ready-");
    interrupt(agent);
}

#[test]
fn networks_are_a_table_beside_groups() {
    let topology = topology();
    let router = topology.router();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("asn.csv");
    fs::write(&file, "network,asn,name\n10.11.2.0/24,64500,Four\nfd00::/8,64501,Six\n").unwrap();
    let options = format!(
        "{LISTEN} --rate-limit 0 --format none --group-by /24,/48 --remote-groups {}",
        file.display()
    );
    let agent = watch(router, Topology::WAN, &options);
    let _pings = [
        endless_ping(topology.client(), Topology::SERVER_IPV4),
        endless_ping(topology.client(), Topology::SERVER_IPV6),
    ];
    let terminal = Terminal::new(router, (120, 20));
    terminal.keys(&[&format!("{PPING} top"), "Enter"]);
    terminal.wait_for("10.11.2.0/24");
    terminal.wait_for("n networks");
    terminal.keys(&["n"]);
    let screen = terminal.wait_for("AS64501 Six");
    assert!(screen.contains(" network ") && !screen.contains("10.11.2.0/24"), "{screen}");
    assert!(!screen.contains("members") && !screen.contains("t tree"), "{screen}");
    terminal.keys(&["/", "10.11.2.77", "Enter"]);
    let screen = terminal.wait_for("1 of 2 networks with 10.11.2.77");
    assert!(screen.contains(">AS64500 Four") && !screen.contains("Six"), "{screen}");
    terminal.keys(&["Escape"]);
    terminal.wait_for("AS64501 Six");
    terminal.keys(&["2"]);
    terminal.wait_for("flows, 10 to 20 s");
    terminal.wait_for("AS64500 Four");
    terminal.keys(&["1", "n"]);
    terminal.wait_for("10.11.2.0/24");
    terminal.keys(&["q"]);
    terminal.wait_for("ready-");
    interrupt(agent);
}

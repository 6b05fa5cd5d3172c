//! Columns of labels, from several sources.

use std::fs;

use pping_lab::{Signal, Topology};
use serde_json::{Value, json};

use super::{
    client::{Agent, Client, OPTIONS, SOON},
    radius::{Radius, request},
};
use crate::agent::{
    api::answer,
    http::scrape,
    monitor::{ENDING, interrupt, ok, ping, wait_until},
};

fn add(client: &mut Client, prefix: &str, source: &str, columns: &Value) -> Value {
    client.ask(&json!({"op": "add", "prefix": prefix, "label": "customer", "source": source,
        "columns": columns}))
}

fn pair(given: &str, current: &str) -> (String, String) {
    (given.to_owned(), current.to_owned())
}

#[test]
fn a_source_replaces_only_its_own_columns() {
    let mut agent = Agent::new(Some("prefix,group,site,ap\n10.11.2.0/24,customer,berlin,ap-3\n"), OPTIONS);
    let mut client = agent.connect();
    assert_eq!(add(&mut client, "10.0.0.7", "radius", &json!({"nas": "bng1"}))["change"], "added");
    assert_eq!(agent.columns("customer", "radius"), pair("nas=bng1", "site=berlin ap=ap-3 nas=bng1"));
    // The prefix has the label already.
    let change = add(&mut client, "10.0.0.7", "radius", &json!({"nas": "bng2"}));
    assert_eq!(change, json!({"ok": true, "change": "columns", "before": "customer", "now": "customer"}));
    assert_eq!(add(&mut client, "10.0.0.7", "radius", &json!({"nas": "bng2"}))["change"], "unchanged");
    let (succeeded, said) = agent.command(&["add", "10.0.0.8", "customer", "--column", "ap=ap-4"]);
    assert!(succeeded && said == "10.0.0.8/32: now customer\n", "{said}");
    let (_, said) = agent.command(&["add", "10.0.0.8", "customer", "--column", "ap=ap-5"]);
    assert_eq!(said, "10.0.0.8/32: customer, with other columns\n");
    let all = "site=berlin ap=ap-5 nas=bng2";
    assert_eq!(agent.columns("customer", "cli"), pair("ap=ap-5", all));
    assert_eq!(agent.columns("customer", "file"), pair("site=berlin ap=ap-3", all));
    let by_radius = client.ask(&json!({"op": "columns", "label": "customer", "source": "radius",
        "columns": {"nas": "bng2", "ap": "ap-6"}}));
    assert_eq!(by_radius["change"], "columns", "{by_radius}");
    let refused = client.ask(&json!({"op": "columns", "label": "customer", "source": "dhcp",
        "columns": {"ap": "x"}}));
    assert!(refused["error"].as_str().unwrap().contains("lists no prefix"), "{refused}");

    // SIGHUP reads those of the file, and a restart all of them.
    let all = "site=lund ap=ap-6 nas=bng2";
    fs::write(agent.path("groups.csv"), "prefix,group,site,ap\n10.11.2.0/24,customer,lund,ap-3\n").unwrap();
    ok(agent.process.signal(Signal::SIGHUP));
    wait_until("the new site", || agent.columns("customer", "radius").1 == all);
    wait_until("the counts of changes", || {
        let metrics = scrape(agent.topology.router());
        let labels = |source| [("source", source), ("change", "columns")];
        let changes = |source| metrics.sum("pping_group_changes_total", &labels(source));
        [changes("cli"), changes("radius")] == [Some(1.0), Some(2.0)]
    });
    let log = ok(agent.process.stderr());
    assert!(log.contains("`customer` has site=berlin ap=ap-6 nas=bng2 now (from radius)"), "{log}");
    for _ in 0..2 {
        std::thread::sleep(SOON);
        ok(agent.process.stop(Signal::SIGTERM, ENDING));
        agent.restart(OPTIONS);
        assert_eq!(agent.columns("customer", "cli"), pair("ap=ap-5", all), "the other one spoke last");
    }

    // With its last prefix a source takes its columns along.
    let mut client = agent.connect();
    let removed = client.ask(&json!({"op": "remove", "prefix": "10.0.0.7", "source": "radius"}));
    assert_eq!(removed["change"], "removed");
    assert_eq!(agent.columns("customer", "cli").1, "site=lund ap=ap-5");
    let (succeeded, said) = agent.command(&["remove", "--all"]);
    assert!(succeeded && said == "cli: 1 prefix removed\n", "{said}");
    assert_eq!(agent.columns("customer", "file").1, "site=lund ap=ap-3");
    interrupt(agent.process);
}

#[test]
fn a_replacement_has_all_columns_of_its_source() {
    let agent = Agent::new(None, OPTIONS);
    let file = agent.path("more.csv");
    let replace = |text: &str| {
        fs::write(&file, text).unwrap();
        let (succeeded, said) = agent.command(&["replace", file.to_str().unwrap()]);
        assert!(succeeded, "{said}");
        said
    };
    assert_eq!(
        replace("prefix,group,site\n10.0.0.7,a,x\n10.0.0.8,b,y\n"),
        "cli lists 2 prefixes now: 2 changed\n"
    );
    assert_eq!(
        replace("prefix,group,site\n10.0.0.7,a,\n10.0.0.8,b,y\n"),
        "cli lists 2 prefixes now: 1 changed\n"
    );
    assert_eq!(
        [agent.columns("a", "cli"), agent.columns("b", "cli")],
        [pair("", ""), pair("site=y", "site=y")]
    );
    assert_eq!(replace("prefix,group,site\n10.0.0.7,b,y\n"), "cli lists 1 prefix now: 2 changed\n");
    fs::write(&file, "group,site\na,x\n").unwrap();
    let (succeeded, said) = agent.command(&["import", file.to_str().unwrap()]);
    assert!(!succeeded && said.contains("only a file of --groups has labels without one"), "{said}");
    interrupt(agent.process);
}

#[test]
fn customers_of_radius_stand_at_the_sites_of_the_file() {
    let file = "group,site,ap\nalice,berlin,ap-3\nbob,lund,ap-1\n";
    let mut agent = Agent::new(Some(file), "--format none --roll-up site,ap");
    assert_eq!(agent.in_kernel(), 0, "labels without a prefix take no room");
    let log = ok(agent.process.stderr());
    assert!(log.contains("0 prefixes of 0 groups, and 2 labels without a prefix"), "{log}");
    assert_eq!(agent.columns("alice", "file"), pair("site=berlin ap=ap-3", "site=berlin ap=ap-3"));
    let radius = Radius::start(&agent, "");
    radius.send(&agent, &[request("Start", "1", "alice", "10.11.2.2")]);
    assert_eq!(agent.columns("alice", "radius"), pair("nas=bng1", "site=berlin ap=ap-3 nas=bng1"));
    ping(agent.topology.client(), Topology::SERVER_IPV4, "-c5 -i0.01");
    // The echoes that came in, by access point.
    let echoes = |agent: &Agent, path: &str| -> u64 {
        let nodes = answer(agent.topology.router(), "/groups?by=ap", "Groups");
        let node = nodes["groups"].as_array().unwrap().iter().find(|node| node["path"] == path).cloned();
        let series = node.map(|node| node["series"].as_array().unwrap().clone()).unwrap_or_default();
        let of_pings = series.iter().filter(|it| it["method"] == "icmp-echo" && it["matched"] == "ingress");
        of_pings.map(|it| it["rtt"]["count"].as_u64().unwrap_or(0)).sum()
    };
    wait_until("alice's pings at her access point", || echoes(&agent, "berlin/ap-3") == 5);
    radius.send(&agent, &[request("Start", "2", "bob", "10.11.2.2")]);
    ping(agent.topology.client(), Topology::SERVER_IPV4, "-c3 -i0.01");
    wait_until("bob's pings at his", || echoes(&agent, "lund/ap-1") == 3);
    assert_eq!(echoes(&agent, "berlin/ap-3"), 5);
    // The file moves bob, and names nobody else.
    fs::write(agent.path("groups.csv"), "group,site,ap\nbob,oslo,ap-9\n").unwrap();
    ok(agent.process.signal(Signal::SIGHUP));
    wait_until("the new site", || agent.columns("bob", "radius").1 == "site=oslo ap=ap-9 nas=bng1");
    ping(agent.topology.client(), Topology::SERVER_IPV4, "-c2 -i0.01");
    wait_until("pings at the new access point", || echoes(&agent, "oslo/ap-9") == 2);
    // An error keeps what there is.
    fs::write(agent.path("groups.csv"), "group,site,ap\n").unwrap();
    ok(agent.process.signal(Signal::SIGHUP));
    wait_until("an error", || {
        ok(agent.process.stderr()).contains("neither a prefix nor a label in this file")
    });
    assert_eq!(agent.columns("bob", "radius").1, "site=oslo ap=ap-9 nas=bng1");
    radius.stop();
    interrupt(agent.process);
}

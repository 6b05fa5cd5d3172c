//! `--remote-groups` of a running pping: each sample counts for the network at the other end, too.

use std::{collections::BTreeMap, fs, path::Path};

use pping_lab::{Namespace, Signal, Topology};
use serde_json::Value;

use super::{
    api::{answer, request},
    http::{LISTEN, scrape},
    monitor::{interrupt, ok, ping, topology, wait_until, watch},
};

const PINGS: u64 = 10;

/// The client's networks are inside, and those of the server outside.
const INSIDE: &str = "--inside 10.11.1.0/24,fd00:11:1::/48";

fn list(path: &Path, name_of_four: &str) {
    let text = format!(
        "network,asn,name,country\n10.11.2.0/24,64500,{name_of_four},SE\nfd00::/8,64501,Six,DE\n10.11.1.0/24,64502,Own,\n"
    );
    fs::write(path, text).unwrap();
}

/// The echoes of each network on each side, by the API.
fn echoes(router: &Namespace) -> BTreeMap<(String, String), u64> {
    let answer = answer(router, "/groups?by=network", "Groups");
    let mut echoes = BTreeMap::new();
    for group in answer["groups"].as_array().unwrap() {
        assert_eq!((&group["level"], &group["path"]), (&"network".into(), &group["group"]), "{group:#}");
        assert!(group.get("members").is_none(), "{group:#}");
        for series in group["series"].as_array().unwrap().iter().filter(|it| it["method"] == "icmp-echo") {
            let side = series["side"].as_str().unwrap_or("-").to_owned();
            let count = series["rtt"]["count"].as_u64().unwrap_or(0);
            *echoes.entry((group["group"].as_str().unwrap().to_owned(), side)).or_default() += count;
        }
    }
    echoes.retain(|_, count| *count > 0);
    echoes
}

fn expected(counts: &[(&str, &str, u64)]) -> BTreeMap<(String, String), u64> {
    counts.iter().map(|&(network, side, count)| ((network.to_owned(), side.to_owned()), count)).collect()
}

/// Sums of a metric of groups and of networks that have to be equal.
fn metrics_are_equal(router: &Namespace) -> bool {
    let metrics = scrape(router);
    [
        ("pping_rtt_seconds_count", "pping_network_rtt_seconds_count"),
        ("pping_rtt_seconds_bucket", "pping_network_rtt_seconds_bucket"),
        ("pping_group_packets_total", "pping_network_packets_total"),
        ("pping_group_bytes_total", "pping_network_bytes_total"),
    ]
    .iter()
    .all(|(of_groups, of_networks)| {
        let sum = metrics.sum(of_networks, &[]);
        sum.is_some() && sum == metrics.sum(of_groups, &[])
    })
}

fn each_sample_counts_for_its_network(attach: &str) {
    let topology = topology();
    let router = topology.router();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("asn.csv");
    list(&file, "Four");
    let records = directory.path().join("records.jsonl");
    let arguments = format!(
        "{LISTEN} {INSIDE} {attach} --rate-limit 0 --aggregate 1s --with-samples --worst 3 --worst-min-samples 1 -w {} \
         --remote-groups {}",
        records.display(),
        file.display()
    );
    let mut pping = watch(router, Topology::WAN, &arguments);
    ping(topology.client(), Topology::SERVER_IPV4, &format!("-c{PINGS} -i0.05"));
    ping(topology.client(), Topology::SERVER_IPV6, &format!("-c{PINGS} -i0.05"));
    // The server asks, and the client replies: the other end is the server all the same.
    ping(topology.server(), Topology::CLIENT_IPV4, "-c3 -i0.05");
    let all = expected(&[
        ("AS64500 Four", "outside", PINGS),
        ("AS64500 Four", "inside", 3),
        ("AS64501 Six", "outside", PINGS),
    ]);
    wait_until("all echoes", || echoes(router) == all);
    wait_until("metrics with equal sums", || metrics_are_equal(router));
    let metrics = scrape(router);
    let of_four =
        metrics.sum("pping_network_rtt_seconds_count", &[("network", "AS64500 Four"), ("side", "inside")]);
    assert_eq!(of_four, Some(3.0));

    // By an address in it, by part of its name, and as one of the worst.
    for (filter, found) in [("10.11.2.99", "AS64500 Four"), ("six", "AS64501 Six"), ("64500", "AS64500 Four")]
    {
        let answer = answer(router, &format!("/groups?by=network&filter={filter}"), "Groups");
        let groups: Vec<_> = answer["groups"].as_array().unwrap().iter().map(|it| &it["group"]).collect();
        assert_eq!(groups, [found], "{filter}");
    }
    let worst = answer(router, "/worst?level=network", "Worst");
    assert!(worst["groups"].as_array().unwrap().iter().any(|it| it["group"] == "AS64500 Four"), "{worst:#}");
    assert_eq!(answer(router, "/summary", "Summary")["networks"], true);
    let id = answer(router, "/groups?by=network&filter=six", "Groups")["groups"][0]["id"].clone();
    let detail = answer(router, &format!("/groups/{}", id.as_str().unwrap()), "GroupDetail");
    assert_eq!((&detail["group"], &detail["labels"]["asn"]), (&"AS64501 Six".into(), &"64501".into()));

    // Another name from now on, also for flows that are open.
    list(&file, "Vier");
    ok(pping.signal(Signal::SIGHUP));
    wait_until("the other name", || {
        ping(topology.client(), Topology::SERVER_IPV4, "-c1");
        echoes(router).contains_key(&("AS64500 Vier".to_owned(), "outside".to_owned()))
    });
    fs::write(&file, "network,asn\nx,1\n").unwrap();
    ok(pping.signal(Signal::SIGHUP));
    wait_until("an error", || {
        ok(pping.stderr()).contains("asn.csv:2:1: ") && ok(pping.stderr()).contains("the networks stay")
    });
    ping(topology.client(), Topology::SERVER_IPV4, "-c1");
    wait_until("metrics with equal sums", || metrics_are_equal(router));
    interrupt(pping);
    records_name_networks(&fs::read_to_string(&records).unwrap());
}

/// Checks that the records of networks have the sums of those of groups, and that those of flows have their networks.
fn records_name_networks(text: &str) {
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut sums: BTreeMap<(u64, bool), BTreeMap<String, u64>> = BTreeMap::new();
    for record in records.iter().filter(|it| it["type"] == "aggregate") {
        let key = (record["timestamp"].as_u64().unwrap(), record["level"] == "network");
        let sums = sums.entry(key).or_default();
        for name in ["count", "sent_packets", "rec_packets", "sent_bytes", "rec_bytes"] {
            let name_and_side = format!("{name} {}", record["side"]);
            *sums.entry(name_and_side).or_default() += record[name].as_u64().unwrap();
        }
    }
    assert!(sums.keys().any(|(_, is_network)| *is_network), "{text}");
    for ((timestamp, _), of_groups) in sums.iter().filter(|((_, is_network), _)| !is_network) {
        assert_eq!(sums.get(&(*timestamp, true)), Some(of_groups), "{timestamp}");
    }
    let sample = records
        .iter()
        .find(|it| it["type"] == "rtt" && it["src_ip"] == Topology::SERVER_IPV4.to_string())
        .unwrap();
    assert_eq!(
        (&sample["src_network"], &sample["dest_network"]),
        (&"AS64500 Four".into(), &"AS64502 Own".into())
    );
    let worst = records.iter().find(|it| it["type"] == "worst" && it["src_ip"].is_string()).unwrap();
    assert!(worst["src_network"].is_string(), "{worst}");
    assert!(records.iter().any(|it| it["type"] == "worst" && it["path"] == "AS64501 Six"), "{text}");
}

#[test]
fn each_sample_counts_for_its_network_at_tc() {
    each_sample_counts_for_its_network("--ingress tc");
}

#[test]
fn each_sample_counts_for_its_network_at_xdp() {
    each_sample_counts_for_its_network("--ingress xdp");
}

#[test]
fn networks_beyond_the_limit_are_other() {
    let topology = topology();
    let router = topology.router();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("asn.csv");
    list(&file, "Four");
    let arguments =
        format!("{LISTEN} {INSIDE} --rate-limit 0 --max-networks 1 --remote-groups {}", file.display());
    let pping = watch(router, Topology::WAN, &arguments);
    ping(topology.client(), Topology::SERVER_IPV4, &format!("-c{PINGS} -i0.05"));
    ping(topology.client(), Topology::SERVER_IPV6, &format!("-c{PINGS} -i0.05"));
    let all = expected(&[("AS64500 Four", "outside", PINGS), ("other", "outside", PINGS)]);
    wait_until("all echoes", || echoes(router) == all);
    wait_until("metrics with equal sums", || metrics_are_equal(router));
    interrupt(pping);
}

#[test]
fn without_the_option_there_are_no_networks() {
    let topology = topology();
    let router = topology.router();
    let pping = watch(router, Topology::WAN, LISTEN);
    let refusal = request(router, "/groups?by=network");
    let said = "by: this pping tells no networks apart; start it with --remote-groups";
    assert!(refusal.status == 400 && refusal.body.contains(said), "{}", refusal.body);
    assert!(!scrape(router).0.contains("pping_network_"), "metrics of networks");
    interrupt(pping);
}

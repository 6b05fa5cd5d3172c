//! `--residence` of a running pping: metrics, records, API and screens agree on a queue of known length.

use std::{fs, net::IpAddr, time::Duration};

use jsonschema::Validator;
use pping_lab::{
    Topology, run,
    traffic::{Behaviour, Pace, Server, send},
};
use serde_json::{Value, json};

use super::{
    formats::records,
    http::{self, LISTEN, PORT, scrape},
    monitor::{PPING, interrupt, ok, pping, repository, tool, topology, wait_until, watch},
};
use crate::schemas;

fn api_validator(schema_of: &str) -> Validator {
    let mut schema: Value =
        serde_json::from_str(&fs::read_to_string(repository("docs/schema/api.json")).unwrap()).unwrap();
    schema["$ref"] = json!(format!("#/components/schemas/{schema_of}"));
    jsonschema::validator_for(&schema).unwrap()
}

fn answer(topology: &Topology, path: &str, schema_of: &str) -> Value {
    let response = http::get(topology.router(), PORT, path, "*/*").unwrap();
    let answer: Value = serde_json::from_str(&response.body).unwrap();
    let found: Vec<_> =
        api_validator(schema_of).iter_errors(&answer).map(|error| error.to_string()).collect();
    assert!(found.is_empty(), "{found:#?}");
    answer
}

/// Puts a token bucket at the router's `wan0`, with room for a quarter of a second.
fn bucket(topology: &Topology) {
    let mut tc = topology.router().command("tc");
    let qdisc =
        format!("qdisc replace dev {} root tbf rate 1000kbps burst 100000 limit 250000", Topology::WAN);
    ok(run(tc.args(qdisc.split(' '))));
}

/// Lets the client upload through the bucket.
fn upload(topology: &Topology, to: IpAddr) {
    let server = ok(Server::start(topology.server(), 0, Behaviour::Sink));
    let pace = Pace { chunks: 40, bytes: 100_000, pause: Duration::ZERO };
    ok(send(topology.client(), (to, server.port()), pace));
}

#[test]
fn a_queue_shows_in_metrics_records_the_api_and_pping_top() {
    let topology = topology();
    let router = topology.router();
    bucket(&topology);
    let arguments = format!(
        "-i {} {LISTEN} --residence --residence-every 2 --aggregate 1s --rate-limit 10ms --format jsonl",
        Topology::LAN
    );
    let pping = watch(router, Topology::WAN, &arguments);
    upload(&topology, Topology::SERVER_IPV4.into());

    let of_wan = [("interface", Topology::WAN)];
    wait_until("the queue is in the metrics", || {
        scrape(router).sum("pping_queue_seconds_count", &of_wan).is_some_and(|count| count > 20.0)
    });
    let metrics = scrape(router);
    let sum = |name: &str, labels: &[(&str, &str)]| metrics.sum(name, labels).unwrap();
    let mean = sum("pping_queue_seconds_sum", &of_wan) / sum("pping_queue_seconds_count", &of_wan);
    assert!(mean > 0.02 && mean < 0.4, "{mean}");
    assert!(sum("pping_forwarding_seconds_count", &of_wan) > 5.0);
    assert!(sum("pping_queue_followed_packets_total", &of_wan) > 20.0);
    for reason in ["dropped", "replaced"] {
        let labels = [of_wan[0], ("reason", reason)];
        assert!(metrics.sum("pping_queue_lost_packets_total", &labels).is_some(), "{reason}");
    }
    let page = fs::read_to_string(repository("docs/metrics.md")).unwrap();
    for name in metrics.0.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()) {
        assert!(name.starts_with("process_") || page.contains(&format!("`{name}`")), "{name}");
    }

    let summary = answer(&topology, "/api/v1/summary", "Summary");
    let wan = summary["interfaces"].as_array().unwrap().iter().find(|it| it["interface"] == Topology::WAN);
    let residence = &wan.unwrap()["residence"];
    let own = &residence["beyond"];
    assert!(own["queue"].as_u64().unwrap() > 5_000_000, "{residence:#}");
    // Apart from the wire, the queue is the only delay between these hosts.
    assert!(own["share"].as_f64().unwrap() > 0.5, "{residence:#}");

    let mut top = pping_top(&topology);
    let screen = ok(run(&mut top));
    assert!(screen.contains("own queue: ") && screen.contains("inflation beyond ("), "{screen}");

    let records = records(&interrupt(pping));
    let validator = schemas::validator("record.json");
    for part in ["forwarding", "queue"] {
        let of_part = |it: &&Value| it["residence"] == part && it["interface"] == Topology::WAN;
        let of_part: Vec<_> = records.iter().filter(of_part).collect();
        assert!(of_part.iter().any(|it| it["count"].as_u64().unwrap() > 2), "{of_part:?}");
        for record in of_part {
            let errors: Vec<_> = validator.iter_errors(record).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{record}: {errors:?}");
            assert!(record.get("group").is_none() && record.get("interval").is_none(), "{record}");
        }
    }
}

#[test]
fn each_group_has_the_times_of_its_own_packets_in_the_queue() {
    let topology = topology();
    let router = topology.router();
    bucket(&topology);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("groups.csv");
    fs::write(&file, "prefix,group\n10.11.2.0/24,four\nfd00:11:2::/64,six\n").unwrap();
    let arguments = format!(
        "-i {} {LISTEN} --residence --residence-every 1 --aggregate 1s --rate-limit 10ms --format jsonl --groups {}",
        Topology::LAN,
        file.display()
    );
    let pping = watch(router, Topology::WAN, &arguments);
    let timed = |group: &str, what: &str| {
        let labels = [("interface", Topology::WAN), ("group", group)];
        scrape(router).sum(&format!("pping_group_queue_seconds_{what}"), &labels).unwrap_or(0.0)
    };
    // A group has queue times only once it has round trips, so each group uploads or pings twice. The queue is full
    // during the IPv4 upload, and nearly empty during the pings over IPv6.
    let ping = || {
        let mut ping = topology.client().command("ping");
        ok(run(ping.args(["-c20", "-i0.02", &Topology::SERVER_IPV6.to_string()])));
    };
    for _ in 0..2 {
        upload(&topology, Topology::SERVER_IPV4.into());
        ping();
        wait_until("both groups have round trips", || {
            ["four", "six"].into_iter().all(|group| {
                scrape(router).sum("pping_rtt_seconds_count", &[("group", group)]).is_some_and(|it| it > 0.0)
            })
        });
    }
    wait_until("both groups have times", || timed("four", "count") > 20.0 && timed("six", "count") >= 20.0);
    let mean = |group| timed(group, "sum") / timed(group, "count");
    assert!(mean("four") > 0.02, "{}", mean("four"));
    assert!(mean("six") < 0.01, "{}", mean("six"));

    let groups = answer(&topology, "/api/v1/groups", "Groups");
    let four = groups["groups"].as_array().unwrap().iter().find(|it| it["group"] == "four").unwrap();
    assert_eq!(four["queues"][0]["interface"], Topology::WAN, "{four:#}");
    assert!(four["queues"][0]["p95"].as_u64().unwrap() > 20_000_000, "{four:#}");
    let id = four["id"].as_str().unwrap();
    let detail = answer(&topology, &format!("/api/v1/groups/{id}"), "GroupDetail");
    assert_eq!(detail["queues"].as_array().unwrap().len(), 1, "{detail:#}");

    // Packets without a group of their own, such as neighbour discovery, count for `other`: the groups together have
    // all packets of the interface.
    let records = records(&interrupt(pping));
    let validator = schemas::validator("record.json");
    let (mut all, mut of_groups) = (0, 0);
    for record in records.iter().filter(|it| it["residence"] == "queue" && it["interface"] == Topology::WAN) {
        let errors: Vec<_> = validator.iter_errors(record).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{record}: {errors:?}");
        let count = record["count"].as_u64().unwrap();
        *(if record["group"].is_null() { &mut all } else { &mut of_groups }) += count;
    }
    assert!(all > 40 && all == of_groups, "{all} of the interface, {of_groups} of its groups");
}

fn pping_top(topology: &Topology) -> std::process::Command {
    pping(topology.router(), &format!("top --once --connect http://127.0.0.1:{PORT}"))
}

#[test]
fn check_names_tracepoints_and_captures_refuse_residence() {
    let (_, said) = tool(PPING, &["check", "-i", "lo", "--residence"]);
    assert!(said.contains("qdisc_enqueue") && said.contains("kfree_skb"), "{said}");
    let (is_ok, said) = tool(PPING, &["-r", "-", "--residence"]);
    assert!(!is_ok && said.contains("--residence"), "{said}");
    let (is_ok, said) = tool(PPING, &["-i", "lo", "--residence-every", "65537"]);
    assert!(!is_ok && said.contains("from 0 to 65536"), "{said}");
}

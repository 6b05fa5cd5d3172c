//! `--roll-up` of a running pping: at each level records, metrics and the API have the sums of the groups.

use std::{collections::BTreeMap, fs};

use pping_lab::{Signal, Topology};
use serde_json::Value;

use super::{
    api::{answer, request},
    http::{LISTEN, scrape},
    monitor::{interrupt, ok, ping, topology, wait_until, watch},
};

const PINGS: u64 = 10;

/// The echoes that came in and the packets of a group or node in an answer.
fn figures(of: &Value) -> (u64, u64) {
    let series = of["series"].as_array().unwrap();
    let packets =
        |it: &Value| it["sent"]["packets"].as_u64().unwrap() + it["received"]["packets"].as_u64().unwrap();
    let echoes = series.iter().filter(|it| it["matched"] == "ingress" && it["method"] == "icmp-echo");
    (echoes.map(|it| it["rtt"]["count"].as_u64().unwrap_or(0)).sum(), series.iter().map(packets).sum())
}

#[test]
fn each_level_has_the_sums_of_its_groups() {
    let topology = topology();
    let router = topology.router();
    let directory = tempfile::tempdir().unwrap();
    let groups = directory.path().join("groups.csv");
    let list = |header: &str| {
        let text = format!(
            "prefix,group,{header}\n10.11.2.0/24,four,berlin,ap-3\nfd00::/8,six,berlin,ap-4\n\
                     10.0.0.0/8,idle,berlin,ap-4\n"
        );
        fs::write(&groups, text).unwrap();
    };
    list("site,ap");
    let records = directory.path().join("records.jsonl");
    let arguments = format!(
        "{LISTEN} --rate-limit 0 --aggregate 1s --worst 3 --worst-min-samples 1 -w {} --groups {} --roll-up site,ap",
        records.display(),
        groups.display()
    );
    let mut pping = watch(router, Topology::WAN, &arguments);
    ping(topology.client(), Topology::SERVER_IPV4, &format!("-c{PINGS} -i0.05"));
    ping(topology.client(), Topology::SERVER_IPV6, &format!("-c{PINGS} -i0.05"));

    // All packets of pings are in the API one second after they passed.
    let found = |path: &str| -> BTreeMap<String, (u64, u64)> {
        let answer = answer(router, path, "Groups");
        let groups = answer["groups"].as_array().unwrap().iter();
        groups.map(|it| (it["group"].as_str().unwrap().to_owned(), figures(it))).collect()
    };
    let sum =
        |of: &BTreeMap<String, (u64, u64)>| of.values().fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    wait_until("all echoes", || sum(&found("/groups?under=berlin")).0 == 2 * PINGS);
    // IPv6 sends packets of its own now and then, so what is compared may be of different seconds.
    wait_until("the API has equal sums", || {
        let members = found("/groups");
        let [sites, aps] = ["/groups?by=site", "/groups?by=ap"].map(found);
        assert_eq!(sites["berlin"].0, 2 * PINGS, "{sites:?}");
        assert_eq!((aps["berlin/ap-3"].0, aps["berlin/ap-4"].0), (PINGS, PINGS), "{aps:?}");
        sum(&members) == sum(&sites) && sum(&sites) == sum(&aps)
    });
    let berlin = &answer(router, "/groups?by=site&filter=10.11.2.1", "Groups")["groups"][0];
    assert_eq!(
        (&berlin["path"], &berlin["members"], &berlin["active"], &berlin["level"]),
        (&"berlin".into(), &3.into(), &2.into(), &"site".into())
    );
    let inside = found("/groups?under=berlin/ap-3");
    assert_eq!(inside.keys().collect::<Vec<_>>(), ["four"]);
    let detail = answer(router, &format!("/groups/{}", berlin["id"].as_str().unwrap()), "GroupDetail");
    assert_eq!((&detail["path"], &detail["labels"]["site"]), (&"berlin".into(), &"berlin".into()));
    let worst = answer(router, "/worst?level=site", "Worst");
    assert!(worst["groups"].as_array().unwrap().iter().any(|it| it["group"] == "berlin"), "{worst:#}");
    assert_eq!(answer(router, "/summary", "Summary")["levels"], serde_json::json!(["site", "ap"]));
    for (path, said) in [
        ("/groups?by=city", "by: unknown level `city`, expected one of `site`, `ap`"),
        ("/groups?by=site&under=berlin", "by: `berlin` is a node of `site`"),
        ("/worst?level=city", "level: unknown level `city`, expected one of `site`, `ap`"),
    ] {
        let refusal = request(router, path);
        assert!(refusal.status == 400 && refusal.body.contains(said), "{}", refusal.body);
    }

    let refusal = request(router, "/groups?under=berlni");
    let said = "under: there is no node `berlni`; nodes: berlin, ";
    assert!(refusal.status == 404 && refusal.body.starts_with(said), "{}", refusal.body);

    wait_until("the metrics have equal sums", || {
        let metrics = scrape(router);
        [
            ("pping_rtt_seconds_count", "pping_level_rtt_seconds_count"),
            ("pping_rtt_seconds_bucket", "pping_level_rtt_seconds_bucket"),
            ("pping_group_packets_total", "pping_level_packets_total"),
            ("pping_group_bytes_total", "pping_level_bytes_total"),
        ]
        .iter()
        .all(|(of_groups, of_levels)| {
            let groups = metrics.sum(of_groups, &[]);
            ["site", "ap"].iter().all(|level| metrics.sum(of_levels, &[("level", level)]) == groups)
        })
    });

    // Without the column, the groups go on, and are in no named node.
    list("site,radio");
    ok(pping.signal(Signal::SIGHUP));
    wait_until("a warning", || {
        ok(pping.stderr()).contains("--roll-up: the groups file has no column `ap`; it has `site`, `radio`")
    });
    ping(topology.client(), Topology::SERVER_IPV4, "-c2 -i0.05");
    wait_until("the node without a name", || found("/groups?by=ap").contains_key("berlin/(none)"));
    interrupt(pping);

    records_are_sums(&fs::read_to_string(&records).unwrap());
}

/// Checks that the records of each level have the sums of those of groups, in each interval.
fn records_are_sums(text: &str) {
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let aggregates = records.iter().filter(|it| it["type"] == "aggregate");
    let mut intervals: BTreeMap<(u64, String), BTreeMap<String, u64>> = BTreeMap::new();
    for record in aggregates {
        let level = record["level"].as_str().unwrap_or("group").to_owned();
        let sums = intervals.entry((record["timestamp"].as_u64().unwrap(), level)).or_default();
        for name in ["count", "sent_packets", "rec_packets", "sent_bytes", "rec_bytes"] {
            *sums.entry(name.to_owned()).or_default() += record[name].as_u64().unwrap();
        }
        for bin in record["histogram"].as_array().unwrap() {
            *sums.entry(format!("{} {}", record["method"], bin[0])).or_default() += bin[1].as_u64().unwrap();
        }
    }
    let of_groups: Vec<_> = intervals.iter().filter(|((_, level), _)| level == "group").collect();
    assert!(!of_groups.is_empty(), "{text}");
    for ((timestamp, _), sums) in of_groups {
        for level in ["site", "ap"] {
            assert_eq!(intervals.get(&(*timestamp, level.to_owned())), Some(sums), "{timestamp} {level}");
        }
    }
    assert!(records.iter().any(|it| it["type"] == "worst" && it["path"] == "berlin"), "{text}");
}

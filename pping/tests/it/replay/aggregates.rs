//! `--aggregate`, `--flow-summary`, groups and `--exclude` with a capture.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use serde_json::{Value, json};

use super::{
    made::{
        ETHERNET, MILLISECOND, Packet, SECOND, START, connection, enhanced_packet, interface, pcap, section,
    },
    program::{Temporary, assert_fails, pping, read, rtts, samples, stderr},
};

/// The start of the second interval of ten seconds.
const NEXT: u64 = START - START % (10 * SECOND) + 10 * SECOND;

/// A connection in the first interval and the next two, and another one an hour later.
fn capture() -> Vec<u8> {
    let mut packets = connection(40_000, START, 15, 7 * MILLISECOND);
    packets.extend(connection(40_001, START + 3600 * SECOND, 2, 9 * MILLISECOND));
    pcap(&packets)
}

/// Returns the records by timestamps alone, because handshakes would be separate series.
#[track_caller]
fn records(capture: &[u8], arguments: &str) -> Vec<Value> {
    let output = read(capture, &format!("--rate-limit 0 --methods tcp-ts {arguments}"));
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn groups(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["group"].as_str().unwrap()).collect()
}

#[test]
fn intervals_are_multiples_of_their_length_since_1970() {
    let records = records(&capture(), "--aggregate 10s");
    let end = START + 3600 * SECOND + SECOND + 9 * MILLISECOND + 1;
    let expected = [
        (NEXT, NEXT - START, 4, 6),
        (NEXT + 10 * SECOND, 10 * SECOND, 10, 20),
        (NEXT + 20 * SECOND, 10 * SECOND, 2, 4),
        (end, end % (10 * SECOND), 3, 4),
    ];
    let found: Vec<_> = records
        .iter()
        .map(|record| {
            let number = |name: &str| record[name].as_u64().unwrap();
            (number("timestamp"), number("interval"), number("count"), number("sent_packets"))
        })
        .collect();
    assert_eq!(found, expected);
}

/// This pins down the whole record.
#[test]
fn an_aggregate_has_the_documented_fields() {
    let records = records(&capture(), "--aggregate 1d --group-by /24,/48");
    let end = START + 3601 * SECOND + 9 * MILLISECOND + 1;
    let unknown = json!({ "video-call": null, "game": null, "web": null });
    let server = json!({
        "schema_version": 1, "type": "aggregate", "timestamp": end, "interval": end - START,
        "group": "198.51.100.0/24", "prefix": "198.51.100.0/24", "method": "tcp-ts", "count": 17, "min": 7_000_000, "mean": 7_235_294, "p50": 7_000_000, "p90": 8_896_785,
        "p95": 8_896_785, "p99": 8_896_785, "max": 9_000_000, "histogram": [[7_164_094, 15], [9_290_680, 2]],
        "sent_packets": 17, "sent_bytes": 1500, "rec_packets": 17, "rec_bytes": 0, "sent_retransmissions": 0,
        "rec_retransmissions": 0, "sent_ce_packets": 0, "rec_ce_packets": 0, "quality": unknown
    });
    assert_eq!(records[1], server);
    let client = json!({
        "schema_version": 1, "type": "aggregate", "timestamp": end, "interval": end - START,
        "group": "192.0.2.0/24", "prefix": "192.0.2.0/24", "method": "tcp-ts", "count": 2, "min": 991_000_000, "mean": 992_000_000, "p50": 991_000_000, "p90": 991_000_000,
        "p95": 991_000_000, "p99": 991_000_000, "max": 993_000_000, "histogram": [[1_000_000_000, 2]],
        "sent_packets": 17, "sent_bytes": 0, "rec_packets": 17, "rec_bytes": 1500, "sent_retransmissions": 0,
        "rec_retransmissions": 0, "sent_ce_packets": 0, "rec_ce_packets": 0, "quality": unknown
    });
    assert_eq!(records[0], client);
    assert_eq!(records.len(), 2);
}

#[test]
fn individual_records_are_left_out_by_default() {
    assert!(records(&capture(), "--aggregate 10s").iter().all(|record| record.get("count").is_some()));
    let with = records(&capture(), "--aggregate 10s --with-samples");
    let count = |name: &str| with.iter().filter(|record| record.get(name).is_some()).count();
    assert_eq!((count("count"), count("rtt"), count("flow_event")), (4, 19, 4 + 2));
    let summaries = records(&capture(), "--flow-summary");
    assert!(summaries.iter().all(|record| record["flow_event"] == "summary"), "{summaries:?}");
}

#[test]
fn a_file_makes_groups_by_the_longest_prefix() {
    let file = Temporary::new(
        "groups.csv",
        b"prefix,group,site\n198.51.0.0/16,upstream,ffm\n198.51.100.2/32,server,berlin\n",
    );
    let arguments = format!("--aggregate 1d --with-samples --groups {}", file.path.display());
    let all = records(&capture(), &arguments);
    let aggregates: Vec<Value> = all.iter().filter(|record| record.get("count").is_some()).cloned().collect();
    assert_eq!(groups(&aggregates), ["server", "unlisted"]);
    assert_eq!(aggregates[0]["labels"], json!({ "site": "berlin" }));
    let samples: Vec<&Value> = all.iter().filter(|record| record.get("rtt").is_some()).collect();
    for sample in samples {
        let group = (sample["src_ip"] == "198.51.100.2").then_some("server");
        assert_eq!(
            sample.get("group").and_then(Value::as_str),
            group,
            "that of the host that replied: {sample}"
        );
    }
    fs::write(&file.path, "192.0.2.0/24,customers\n").unwrap();
    let all = records(&capture(), &arguments);
    let group = |rtt: u64| all.iter().find(|record| record["rtt"] == rtt).unwrap().get("group");
    assert_eq!(group(993 * MILLISECOND), Some(&json!("customers")), "what the client replied to");
    assert_eq!(group(7 * MILLISECOND), None, "the host that replied is in no group");
}

#[test]
fn groups_beyond_the_limit_are_one_and_a_warning() {
    let output = read(&capture(), "--aggregate 1d --group-by /32,/128 --max-groups 2");
    assert!(!stderr(&output).contains("--max-groups"), "{}", stderr(&output));
    let output =
        read(&crowd(), "--aggregate 1d --group-by /32,/128 --max-groups 2 --rate-limit 0 --methods tcp-ts");
    let text = String::from_utf8_lossy(&output.stdout);
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names = groups(&records);
    assert_eq!((names.len(), names.contains(&"other")), (3, true), "{names:?}");
    let count: u64 = records.iter().map(|record| record["count"].as_u64().unwrap()).sum();
    assert_eq!(count, 10, "no sample is lost");
    assert!(stderr(&output).contains("raise --max-groups"), "{}", stderr(&output));
}

/// Returns the histogram and the traffic of records together, by method and direction.
fn sums(records: &[&Value]) -> BTreeMap<String, u64> {
    const ADDED: [&str; 7] = [
        "count",
        "sent_packets",
        "sent_bytes",
        "rec_packets",
        "rec_bytes",
        "sent_retransmissions",
        "rec_retransmissions",
    ];
    let mut sums = BTreeMap::new();
    for record in records {
        let series = format!("{} {} {}", record["timestamp"], record["method"], record["match_on_egress"]);
        for name in ADDED {
            *sums.entry(format!("{series} {name}")).or_default() += record[name].as_u64().unwrap();
        }
        for bin in record["histogram"].as_array().unwrap() {
            *sums.entry(format!("{series} {}", bin[0])).or_default() += bin[1].as_u64().unwrap();
        }
    }
    sums
}

/// Returns the path of the node that a group is in.
type PathOf<'a> = &'a dyn Fn(&Value) -> String;

#[test]
fn each_level_is_the_sum_of_its_groups() {
    // Three access points, two of which have the same name, and hosts that the file does not list.
    let file = Temporary::new(
        "groups.csv",
        b"prefix,group,site,ap\n192.0.2.100/32,a,berlin,ap-1\n192.0.2.101/32,b,berlin,ap-3\n\
          192.0.2.102/31,c,lund,ap-3\n192.0.2.104/32,d,lund,\n198.51.100.0/24,server,lund,ap-3\n",
    );
    let options = format!("--rate-limit 0 --groups {} --roll-up site,ap", file.path.display());
    let output = read(&crowd(), &format!("--aggregate 10ms --worst 1 --worst-min-samples 1 {options}"));
    let text = String::from_utf8(output.stdout).unwrap();
    let all: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (aggregates, worst): (Vec<_>, Vec<_>) = all.iter().partition(|record| record["type"] == "aggregate");
    let of_groups: Vec<&Value> =
        aggregates.iter().copied().filter(|record| record.get("level").is_none()).collect();
    let site = |record: &Value| record["labels"]["site"].as_str().unwrap_or("(none)").to_owned();
    let ap =
        |record: &Value| format!("{}/{}", site(record), record["labels"]["ap"].as_str().unwrap_or("(none)"));
    let levels: [(&str, PathOf<'_>, usize); 2] = [("site", &site, 3), ("ap", &ap, 5)];
    for (level, path_of, number) in levels {
        let nodes: Vec<&Value> =
            aggregates.iter().copied().filter(|record| record["level"] == level).collect();
        let paths: BTreeSet<&str> = nodes.iter().map(|record| record["path"].as_str().unwrap()).collect();
        assert_eq!(paths.len(), number, "{paths:?}");
        for path in paths {
            let of_path: Vec<_> = nodes.iter().copied().filter(|record| record["path"] == path).collect();
            let members: Vec<_> =
                of_groups.iter().copied().filter(|record| path_of(record) == path).collect();
            assert_eq!(sums(&of_path), sums(&members), "{level} {path}");
        }
        assert_eq!(sums(&nodes), sums(&of_groups), "{level}");
        assert!(worst.iter().any(|record| record["level"] == level && record.get("group").is_none()));
    }
    // The totals at the end count each sample once.
    let without = read(&crowd(), "--rate-limit 0 --aggregate 10ms");
    let total = |output: &str| output.lines().find(|line| line.contains("samples")).map(ToOwned::to_owned);
    assert_eq!(
        total(&stderr(&read(&crowd(), &format!("--aggregate 10ms {options}")))),
        total(&stderr(&without))
    );
}

#[test]
fn a_column_that_the_groups_file_lacks_is_an_error() {
    let file = Temporary::new("groups.csv", b"prefix,group,site\n192.0.2.0/24,a,berlin\n");
    let options = format!("--aggregate 1s --groups {}", file.path.display());
    for (list, reason) in [
        ("site,ap", "--roll-up: the groups file has no column `ap`; it has `site`"),
        ("site,site", "--roll-up site,site: a column is listed twice; each level needs another one"),
        ("site,", "--roll-up site,: a level has no name; name columns of the groups file, such as `site,ap`"),
    ] {
        let output = read(&crowd(), &format!("{options} --roll-up {list}"));
        assert_eq!(output.status.code(), Some(2), "{list}");
        assert!(stderr(&output).contains(reason), "{list}: {}", stderr(&output));
    }
    let output = read(&crowd(), "--aggregate 1s --roll-up site");
    assert!(stderr(&output).contains("name their file with --groups"), "{}", stderr(&output));
}

/// Ten clients with an address each, and one server.
fn crowd() -> Vec<u8> {
    let mut packets = Vec::new();
    for client in 0..10 {
        for mut packet in connection(40_000, START + u64::from(client) * MILLISECOND, 1, MILLISECOND / 2) {
            // The client's address is the source of its packets, and the destination of packets to it.
            let offset = if packet.bytes[26] == 192 { 29 } else { 33 };
            packet.bytes[offset] = 100 + client;
            packets.push(packet);
        }
    }
    packets.sort_by_key(|packet| packet.at);
    pcap(&packets)
}

#[test]
fn traffic_of_excluded_networks_is_left_out() {
    let output = read(&crowd(), "--rate-limit 0 --exclude 192.0.2.104/30,192.0.2.100");
    assert_eq!(samples(&output).len(), 10 - 5);
    assert!(stderr(&output).contains("10 packets (excluded)"), "{}", stderr(&output));
    assert_eq!(samples(&read(&crowd(), "--exclude 198.51.100.0/24")).len(), 0, "either end");
}

#[test]
fn the_two_sides_of_a_network_are_told_apart_by_address() {
    let inside_of = |options: &str| -> BTreeMap<(String, String), u64> {
        let mut found = BTreeMap::new();
        for record in samples(&read(&crowd(), options)) {
            let name = |field: &str| record[field].as_str().unwrap_or("-").to_owned();
            let key = (name("side"), name("src_ip").split('.').next().unwrap().to_owned());
            *found.entry(key).or_default() += 1;
        }
        found
    };
    let key = |side: &str, first: &str| (side.to_owned(), first.to_owned());
    assert_eq!(inside_of("--rate-limit 0"), [(key("-", "198"), 10)].into());
    let outside = [(key("outside", "198"), 10)].into();
    assert_eq!(inside_of("--rate-limit 0 --inside 192.0.2.0/24,2001:db8::/32"), outside);
    assert_eq!(inside_of("--rate-limit 0 --inside 198.51.100.0/24"), [(key("inside", "198"), 10)].into());
    let file = Temporary::new("groups.csv", b"192.0.2.0/24,customers\n");
    let of_groups = format!("--rate-limit 0 --inside groups --groups {}", file.path.display());
    assert_eq!(inside_of(&of_groups), outside);

    let aggregates = records(&crowd(), "--aggregate 1d --inside 192.0.2.0/24");
    let counted: Vec<_> = aggregates.iter().map(|it| (it["side"].as_str(), it["count"].as_u64())).collect();
    assert!(counted.contains(&(Some("outside"), Some(10))), "{aggregates:#?}");
    // The group is that of the host inside, although those outside replied.
    for (options, group) in [
        ("--group-by /24,/48", "198.51.100.0/24"),
        ("--group-by /24,/48 --inside 192.0.2.0/24", "192.0.2.0/24"),
        ("--group-by /24,/48 --inside 198.51.100.0/24", "198.51.100.0/24"),
        ("--group-by /24,/48 --inside 203.0.113.0/24", "198.51.100.0/24"),
    ] {
        let aggregates = records(&crowd(), &format!("--aggregate 1d {options}"));
        let mut measured = aggregates.iter().filter(|it| it["count"] != 0);
        assert!(measured.all(|it| it["group"] == group), "{options}: {aggregates:#?}");
    }
    let output = read(&crowd(), "--rate-limit 0 --inside 192.0.2.0/24");
    assert!(stderr(&output).contains("tcp-handshake  outside "), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("one side: no host inside of the network replied"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_flow_is_summed_up_at_its_end() {
    let summaries = records(&capture(), "--flow-summary");
    let reasons: Vec<&str> = summaries.iter().map(|record| record["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["flow timeout", "end of observation"]);
    let first = &summaries[0];
    assert_eq!((&first["src_ip"], &first["dest_ip"]), (&json!("198.51.100.2"), &json!("192.0.2.1")));
    assert_eq!(first["start"], START);
    assert_eq!(first["end"], START + 14 * SECOND + 7 * MILLISECOND);
    assert_eq!(first["src_rtt"]["samples"], 15);
    assert_eq!((&first["sent_packets"], &first["sent_bytes"]), (&json!(15), &json!(1400)));
    assert_eq!(first["dest_rtt"]["p50"], 993_000_000);
    assert!(first.get("src_side").is_none() && first.get("dest_side").is_none(), "{first}");
    let sides = &records(&capture(), "--flow-summary --inside 192.0.2.0/24")[0];
    assert_eq!([&sides["src_side"], &sides["dest_side"]], ["outside", "inside"]);
}

#[test]
fn captures_that_go_back_in_time_lose_no_sample() {
    let mut packets = connection(40_000, START, 5, MILLISECOND);
    packets.extend(connection(40_001, START - 7200 * SECOND, 5, MILLISECOND));
    let found = records(&pcap(&packets), "--aggregate 10s --with-samples");
    let aggregated: u64 = found.iter().filter_map(|record| record["count"].as_u64()).sum();
    assert_eq!(aggregated, 12);
    let ends: Vec<u64> = found
        .iter()
        .filter(|record| record.get("count").is_some())
        .map(|record| record["timestamp"].as_u64().unwrap())
        .collect();
    assert!(ends.first() > ends.last() && ends.iter().all(|end| *end > START - 7200 * SECOND), "{ends:?}");
}

#[test]
fn times_of_all_kinds_do_no_harm() {
    /// The latest time that is taken for one, in ns since 1970.
    const LATEST: u64 = (1 << 63) - 2;
    let mut file = section();
    file.extend(interface(ETHERNET as u16, "eth0"));
    let ends = [0, u64::MAX, 1, LATEST, START, 1 << 63, START + 1, LATEST + 1, LATEST - 1];
    let segments = connection(40_000, START, 40, MILLISECOND);
    let mut possible = 0;
    for (number, packet) in segments.into_iter().enumerate() {
        let at = ends[(number * 5 + number / 7) % ends.len()];
        possible += u64::from(at <= LATEST);
        file.extend(enhanced_packet(0, &Packet { at, ..packet }, 1 + number as u32 % 2));
    }
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    for arguments in ["--aggregate 10ms", "--aggregate 500years", "--aggregate 1s --group-timeout 1ns"] {
        let more =
            format!("--flow-summary --with-samples --group-by /32,/128,both --hdr-log {}", log.display());
        let records = records(&file, &format!("{arguments} {more}"));
        let samples = records.iter().filter(|record| record.get("rtt").is_some()).count() as u64;
        let aggregated: u64 = records.iter().filter_map(|record| record["count"].as_u64()).sum();
        assert_eq!(aggregated, samples, "{arguments}");
        let packets: u64 = records
            .iter()
            .filter_map(|record| record["sent_packets"].as_u64().filter(|_| record.get("count").is_some()))
            .sum();
        assert_eq!(packets, possible, "{arguments}");
    }
    let impossible = format!("left out: {} packets without a time", 80 - possible);
    assert!(stderr(&read(&file, "")).contains(&impossible), "no {impossible}");
}

#[test]
fn the_summary_at_the_end_is_of_the_same_samples() {
    let capture = capture();
    let common = "--rate-limit 0 --methods tcp-ts";
    let output = read(&capture, common);
    assert_eq!(rtts(&samples(&output)).len(), 19);
    for arguments in ["", "--format none", "--aggregate 1s --format none"] {
        let arguments = format!("{common} {arguments}");
        let arguments = arguments.trim_end();
        let message = stderr(&read(&capture, arguments));
        assert!(message.contains("19 samples  p50 7.000 ms  p90 957.603 ms"), "{arguments}: {message}");
    }
}

#[test]
fn a_log_that_cannot_be_written_is_named() {
    let output = pping("-r /dev/null --hdr-log /nowhere/log").output().unwrap();
    assert_fails(&output, 2, &["--hdr-log /nowhere/log", "No such file"]);
}

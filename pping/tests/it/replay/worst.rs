//! `--worst` on captures, compared with all samples and aggregates of the same run.

use std::collections::{BTreeSet, HashMap};

use pping_common::{hist, pool::BINS_PER_BLOCK};
use serde_json::Value;

use super::{
    captures::captures,
    made::{MILLISECOND, Packet, START, connection, connection_to, pcap},
    program::{Temporary, assert_fails, pping},
};
use crate::schemas::validator;

const BY: [&str; 4] = ["rtt", "inflation", "retransmissions", "bytes"];

/// More than any interval has.
const ALL: usize = 1000;

fn lines(arguments: &str) -> Vec<Value> {
    let output = pping(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns what identifies a flow direction.
fn flow(record: &Value) -> String {
    let fields = ["src_ip", "src_port", "dest_ip", "dest_port", "protocol", "match_on_egress", "interface"];
    fields.map(|field| record[field].to_string()).join(" ")
}

/// Returns what identifies a series.
fn series(record: &Value) -> String {
    ["group", "method", "match_on_egress", "interface"].map(|field| record[field].to_string()).join(" ")
}

fn value(record: &Value, by: &str) -> f64 {
    let field = match by {
        "rtt" if record["src_ip"].is_null() => "ranked_rtt",
        "rtt" => "smoothed_rtt",
        "retransmissions" => "retransmission_ratio",
        other => other,
    };
    record[field].as_f64().unwrap_or_else(|| panic!("no {field} in {record}"))
}

/// The samples of a series in an interval: the replying host and the RTT.
type Replies = Vec<(String, u64)>;

/// Returns the estimate for this many hosts, if each sets a bit of its own among 64.
fn estimate(hosts: usize) -> u64 {
    (-64.0 * (1.0 - hosts as f64 / 64.0).ln()).round() as u64
}

/// Asserts that a group's rank is the RTT that enough hosts had, according to all samples. Returns whether each host
/// had its own bit. If hosts share bits, the estimate is too low.
fn assert_hosts(what: &str, record: &Value, replies: &Replies) -> bool {
    let octave = |rtt: u64| hist::bin(rtt) / BINS_PER_BLOCK;
    let from = |lowest: usize| -> BTreeSet<&String> {
        replies.iter().filter(|(_, rtt)| octave(*rtt) >= lowest).map(|(host, _)| host).collect()
    };
    let all = from(0).len();
    assert_eq!(record["count"], replies.len(), "{what}: {record}");
    let found = record["hosts"].as_u64().unwrap_or(0);
    if all > 60 || found != estimate(all) {
        assert!(found > 0 && (all > 30 || found < estimate(all)), "{what}: {all} hosts in {record}");
        return false;
    }
    if record["ranked_rtt"].is_u64() {
        let enough = all.min(2).max(estimate(all) as usize / 20);
        let highest = (0..=octave(u64::MAX)).rev().find(|&lowest| from(lowest).len() >= enough).unwrap();
        let end = hist::upper_bound(((highest + 1) * BINS_PER_BLOCK).min(hist::BINS) - 1);
        let expected = record["p95"].as_u64().unwrap().min(end);
        assert_eq!(record["ranked_rtt"], expected, "{what}: {record}");
    }
    true
}

/// Asserts that the records of an interval agree with the samples and aggregates before them. Returns the number of
/// flows.
fn assert_interval(
    what: &str,
    records: &[Value],
    samples: &HashMap<String, (Value, bool)>,
    aggregates: &HashMap<String, Value>,
) -> usize {
    for by in BY {
        let ranked: Vec<&Value> = records.iter().filter(|it| it["worst"] == by).collect();
        let (flows, groups): (Vec<&Value>, Vec<&Value>) =
            ranked.into_iter().partition(|it| it["src_ip"].is_string());
        for all in [&flows, &groups] {
            for (index, pair) in all.windows(2).enumerate() {
                assert!(value(pair[0], by) >= value(pair[1], by), "{what}, {by}: {index}: {pair:#?}");
            }
            for (record, rank) in all.iter().zip(1_u64..) {
                assert!(record["rank"] == rank && value(record, by) > 0.0, "{what}: {record}");
            }
        }
        for record in &flows {
            if let Some((sample, _)) = samples.get(&flow(record))
                && record["method"] != "quic-spin"
                && sample["smoothed_rtt"] != 0
            {
                let rtts = ["smoothed_rtt", "min_rtt"].map(|field| (&record[field], &sample[field]));
                assert!(rtts.iter().all(|(one, other)| one == other), "{what}: {record} after {sample}");
            }
        }
        if by == "rtt" {
            let found: Vec<String> = flows.iter().map(|it| flow(it)).collect();
            for (known, (sample, is_new)) in samples {
                let is_missing = *is_new && sample["smoothed_rtt"] != 0 && !found.contains(known);
                assert!(!is_missing, "{what}: {sample} is not among the worst of all");
            }
        }
        for record in &groups {
            let aggregate = &aggregates[&series(record)];
            let bytes = ["sent_bytes", "rec_bytes"].map(|field| aggregate[field].as_u64().unwrap());
            assert_eq!(record["bytes"], bytes.iter().sum::<u64>(), "{what}: {record}");
            assert_eq!(record["count"], aggregate["count"], "{what}: {record}");
            if let Some(p95) = record.get("p95") {
                let above = (value(record, "rtt") - aggregate["min"].as_f64().unwrap()).max(0.0);
                assert_eq!((p95, value(record, "inflation")), (&aggregate["p95"], above), "{what}: {record}");
                assert!(value(record, "rtt") <= p95.as_f64().unwrap(), "{what}: {record}");
            }
        }
    }
    records.iter().filter(|it| it["worst"] == "rtt" && it["src_ip"].is_string()).count()
}

#[test]
fn worst_agree_with_samples_and_aggregates() {
    let schema = validator("record.json");
    let mut flows = 0;
    // How many series have hosts that share bits, and how many do not.
    let mut series_with = [0; 2];
    for capture in captures() {
        let what = capture.display().to_string();
        let run = |worst: usize| {
            lines(&format!(
                "-r {what} --rate-limit 0 --aggregate 10s --with-samples --group-by /24,/48 --worst {worst} --worst-min-samples 1"
            ))
        };
        let all = run(ALL);
        let (mut samples, mut aggregates, mut worst) = (HashMap::new(), HashMap::new(), Vec::new());
        let mut replies: HashMap<String, Replies> = HashMap::new();
        let mut at_end = |samples: &mut HashMap<_, (Value, bool)>,
                          aggregates: &mut HashMap<_, _>,
                          replies: &mut HashMap<String, Replies>,
                          worst: &mut Vec<Value>| {
            flows += assert_interval(&what, worst, samples, aggregates);
            let groups = worst.iter().filter(|it| it["src_ip"].is_null() && it["count"] != 0);
            for record in groups {
                series_with[usize::from(assert_hosts(&what, record, &replies[&series(record)]))] += 1;
            }
            replies.clear();
            for (_, is_new) in samples.values_mut() {
                *is_new = false;
            }
            aggregates.clear();
            worst.clear();
        };
        for record in &all {
            let is_sample = record["rtt"].is_u64() && record["flow_event"].is_null();
            if record["worst"].is_null() && !worst.is_empty() {
                at_end(&mut samples, &mut aggregates, &mut replies, &mut worst);
            }
            if is_sample {
                let reply = (record["src_ip"].to_string(), record["rtt"].as_u64().unwrap());
                replies.entry(series(record)).or_default().push(reply);
            }
            if record["worst"].is_string() {
                assert!(schema.is_valid(record), "{record}");
                worst.push(record.clone());
            } else if record["interval"].is_u64() {
                aggregates.insert(series(record), record.clone());
            } else if is_sample
                && !["dns", "quic-spin", "quic-handshake"].contains(&record["method"].as_str().unwrap())
            {
                samples.insert(flow(record), (record.clone(), true));
            }
        }
        at_end(&mut samples, &mut aggregates, &mut replies, &mut worst);
        // A smaller `--worst` gives the first ranks of the same list.
        let is_first = |record: &&Value| record["rank"].as_u64().is_none_or(|rank| rank <= 2);
        assert!(run(2).iter().eq(all.iter().filter(is_first)), "{what}");
    }
    assert!(flows == 0 || flows > 100, "{flows}");
    let [shared, own] = series_with;
    assert!(10 * shared <= own, "hosts of {shared} series share bits, those of {own} do not");
}

#[test]
fn one_busy_slow_host_does_not_make_its_group_the_worst() {
    // In one of two groups of 20 hosts, one host with a long RTT has nearly all samples.
    let to = |network: [u8; 3], host: u8, connections: u16, rtt: u64| -> Vec<Packet> {
        let [a, b, c] = network;
        let ports = (0..connections).map(|number| 40_000 + 100 * number + u16::from(host));
        let gap = 900 * MILLISECOND;
        ports.flat_map(|port| connection_to([a, b, c, host], port, (START, gap), 10, rtt)).collect()
    };
    let (busy, steady) = ([198, 51, 100], [203, 0, 113]);
    let run = |slow: u8| {
        let mut packets: Vec<Packet> =
            (1..=slow).flat_map(|host| to(busy, host, 40, 500 * MILLISECOND)).collect();
        packets.extend((slow + 1..=20).flat_map(|host| to(busy, host, 1, 20 * MILLISECOND)));
        packets
            .extend((1..=20).flat_map(|host| to(steady, host, 1, (50 + 2 * u64::from(host)) * MILLISECOND)));
        packets.sort_by_key(|packet| packet.at);
        let capture = Temporary::new("trace.pcap", &pcap(&packets));
        let options = "--rate-limit 0 --methods tcp-ts --aggregate 60s --group-by /24,/48 --worst 5";
        lines(&format!("-r {} {options}", capture.path.display()))
    };
    let ranks = |records: &[Value], by: &str| {
        let groups = records.iter().filter(|it| it["worst"] == by && it["src_ip"].is_null());
        let all: Vec<Value> = groups.cloned().collect();
        ["198.51.100.0/24", "203.0.113.0/24"]
            .map(|group| all.iter().find(|it| it["group"] == group).unwrap().clone())
    };
    let records = run(1);
    for by in ["rtt", "inflation"] {
        let [busy, steady] = ranks(&records, by);
        assert!(busy["rank"].as_u64() > steady["rank"].as_u64(), "{by}: {busy} before {steady}");
        let [p95, ranked, inflation] =
            ["p95", "ranked_rtt", "inflation"].map(|it| busy[it].as_u64().unwrap());
        assert!(p95 > 450 * MILLISECOND && ranked < 30 * MILLISECOND, "{busy}");
        assert_eq!(inflation, ranked - 20 * MILLISECOND, "{busy}");
        assert_eq!(steady["p95"], steady["ranked_rtt"], "{steady}");
        for group in [&busy, &steady] {
            let hosts = group["hosts"].as_u64().unwrap();
            assert!((14..=24).contains(&hosts), "{hosts} of 20");
        }
    }
    // If more than one host has the long RTT, the group has it.
    let [busy, steady] = ranks(&run(3), "rtt");
    assert_eq!(busy["p95"], busy["ranked_rtt"], "{busy}");
    assert!(busy["rank"].as_u64() < steady["rank"].as_u64(), "{steady} before {busy}");
}

#[test]
fn what_is_expected_of_a_group_is_what_it_is_compared_with() {
    let capture = Temporary::new("trace.pcap", &pcap(&connection(40_000, START, 30, 30 * MILLISECOND)));
    let groups = |expected: &str| {
        format!("prefix,group,expected_rtt\n0.0.0.0/0,sat,{expected}\n::/0,sat,{expected}\n")
    };
    let run = |expected: &str| {
        let file = Temporary::new("groups.csv", groups(expected).as_bytes());
        let (capture, file) = (capture.path.display(), file.path.display());
        let all = lines(&format!(
            "-r {capture} --rate-limit 0 --aggregate 10s --groups {file} --worst 5 --worst-min-samples 1"
        ));
        all.into_iter().find(|it| it["worst"] == "rtt" && it["src_ip"].is_null()).unwrap()
    };
    let record = run("20ms");
    assert_eq!(record["baseline"], 20_000_000, "{record}");
    let [ranked, inflation] = ["ranked_rtt", "inflation"].map(|field| record[field].as_u64().unwrap());
    assert_eq!(inflation, ranked - 20_000_000, "{record}");
    let record = run("2s");
    assert_eq!(
        (&record["baseline"], &record["inflation"]),
        (&2_000_000_000_u64.into(), &0.into()),
        "{record}"
    );
    let file = Temporary::new("groups.csv", groups("soon").as_bytes());
    let arguments = format!("-r {} --aggregate 10s --groups {}", capture.path.display(), file.path.display());
    refused(&arguments, &format!("{}:2:15: `soon` is not a time", file.path.display()));
}

#[test]
fn the_worst_take_an_interval() {
    refused("-r /dev/null --worst 5", "--worst 5: the worst are ranked for each interval");
    refused("-r /dev/null --aggregate 1s --worst 0", "1 to 1000");
    refused("-r /dev/null --aggregate 1s --worst 5 --worst-min-samples 0", "1 or more");
}

#[track_caller]
fn refused(arguments: &str, part: &str) {
    assert_fails(&pping(arguments).output().unwrap(), 2, &[part]);
}

//! Records of a capture in `ClickHouse`: its answers equal those of jq on the same lines.

use std::sync::LazyLock;

use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value, json};

use super::{
    made::{ETHERNET, MILLISECOND, Packet, SECOND, enhanced_packet, interface, section},
    program::{Temporary, read, stderr},
};
use crate::{
    clickhouse::{Engine, Parameters, QUESTIONS, assert_same_rows, jq, statements},
    frames::{Ip, UDP, dns, echo, v4, v6},
};

/// Values of the flags option of packets in pcapng.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// How many days ago the traffic was: recent enough for the tables to keep the records.
const DAYS_AGO: u64 = 3;

/// Returns the start of the traffic's day in ns since 1970. The value stays the same if the run passes midnight.
fn midnight() -> u64 {
    static MIDNIGHT: LazyLock<u64> = LazyLock::new(|| {
        let now = Timestamp::now().as_nanosecond() as u64;
        now - now % DAY - DAYS_AGO * DAY
    });
    *MIDNIGHT
}

/// Formats a time for `ClickHouse` and jq.
fn text(at: u64, format: &str) -> String {
    let time = Timestamp::from_nanosecond(i128::from(at)).unwrap();
    time.to_zoned(TimeZone::UTC).strftime(format).to_string()
}

fn time(at: u64) -> String {
    text(at, "%Y-%m-%d %H:%M:%S")
}

/// An exchange of two packets: when it began, how long the answer took, request and response.
type Exchange = (u64, u64, Vec<u8>, Vec<u8>);

/// Pings from 192.0.2.1 and its IPv6 counterpart to three hosts from 19:00 to 20:00. One host is slower from 19:30 on.
/// It was also pinged at noon of the day before, over a shorter path. Queries go to two resolvers. One of them is
/// silent from 19:20 to 19:40, and sometimes takes more than a second to answer. All this passes `wan0`. At `lan0`,
/// another host pings the slower one over a short path.
fn capture() -> Vec<u8> {
    let evening = midnight() + 19 * HOUR;
    let mut exchanges: Vec<Exchange> = Vec::new();
    for number in 0..360 {
        let at = evening + number * 10 * SECOND + 7;
        let slower = if number < 180 { 1 } else { 4 };
        // Some exchanges take longer, so that no two of the percentiles fall into one bin.
        let longer = [(64, 9), (16, 3)]
            .into_iter()
            .find(|(every, _)| number % every == every - 1)
            .map_or(1, |it| it.1);
        for (client, server, rtt) in [
            (v4(1), v4(2), 10 * MILLISECOND + number % 7 * 300_000),
            (v4(1), v4(3), (20 + number % 5) * MILLISECOND * slower),
            (v6(1), v6(2), 15 * MILLISECOND + number % 11 * 100_000),
        ] {
            let packet = |from, to, is_reply| echo(from, to, 7, number as u16, is_reply);
            exchanges.push((at, rtt * longer, packet(client, server, false), packet(server, client, true)));
        }
    }
    for number in 0..10 {
        let at = midnight() - 12 * HOUR + number * SECOND;
        let packet = |from, to, is_reply| echo(from, to, 8, number as u16, is_reply);
        exchanges.push((at, 12 * MILLISECOND, packet(v4(1), v4(3), false), packet(v4(3), v4(1), true)));
    }
    for number in 0..180 {
        let at = evening + number * 20 * SECOND + 11;
        let is_silent = (60..120).contains(&number);
        for (client, resolver, rtt, is_answered) in [
            (v4(1), v4(53), 12 * MILLISECOND + number * 10_000, true),
            (v6(1), v6(53), if number % 4 == 0 { 1300 } else { 9 } * MILLISECOND, !is_silent),
        ] {
            let packet = |from, to, ports, flags| {
                Ip::between(from, to).frame(UDP, &dns(ports, number as u16, flags, 12))
            };
            let query = packet(client, resolver, (4000, 53), [1, 0]);
            let response = packet(resolver, client, (53, 4000), [0x81, 0x80]);
            exchanges.push((at, rtt, query, if is_answered { response } else { Vec::new() }));
        }
    }
    let near: Vec<Exchange> = (0..360)
        .map(|number| {
            let packet = |from, to, is_reply| echo(from, to, 9, number as u16, is_reply);
            let at = evening + number * 10 * SECOND + 3;
            (at, 30_000 + number * 10, packet(v4(9), v4(3), false), packet(v4(3), v4(9), true))
        })
        .collect();
    let mut packets: Vec<(Packet, u32, u32)> = Vec::new();
    for (number, exchanges) in [(0, exchanges), (1, near)] {
        for (at, rtt, request, response) in exchanges {
            packets.push((Packet { at, bytes: request }, number, OUTBOUND));
            if !response.is_empty() {
                packets.push((Packet { at: at + rtt, bytes: response }, number, INBOUND));
            }
        }
    }
    packets.sort_by_key(|(packet, ..)| packet.at);
    let interfaces = ["wan0", "lan0"].into_iter().flat_map(|name| interface(ETHERNET as u16, name));
    let blocks = packets.iter().flat_map(|(packet, number, flags)| enhanced_packet(*number, packet, *flags));
    section().into_iter().chain(interfaces).chain(blocks).collect()
}

/// Returns records of all kinds as lines of JSON.
fn records() -> Vec<u8> {
    let output = read(
        &capture(),
        "--format jsonl --rate-limit 0 --aggregate 1m --with-samples --flow-summary --group-by /32,/128",
    );
    assert!(output.status.success(), "{}", stderr(&output));
    output.stdout
}

/// Returns the records as they come from the box `gw1`, with a field that only a later version knows.
fn as_loaded(lines: &[u8]) -> Vec<u8> {
    let lines = String::from_utf8(lines.to_vec()).unwrap();
    let lines =
        lines.lines().map(|line| line.replacen('{', r#"{"host":"gw1","colour":{"hue":[1,null]},"#, 1) + "\n");
    lines.collect::<String>().into_bytes()
}

#[test]
fn clickhouse_agrees_with_jq_on_a_capture() {
    let lines = records();
    let file = Temporary::new("records.jsonl", &lines);
    let engine = Engine::with_tables(None);
    engine.load(&as_loaded(&lines)).unwrap();
    let none = Parameters::new();
    let agree = |query: &str, filter: &str| {
        let found = engine.rows(query, &none);
        let expected = jq(filter, &none, &file.path);
        assert!(!found.is_empty(), "{query}");
        assert_same_rows(query, &found, expected.as_array().unwrap());
    };

    // Each record is in the table of its kind, with its values.
    agree(
        "SELECT replaceOne(toString(src_ip), '::ffff:', '') AS ip, interface, method, match_on_egress, count() AS records,
            sum(rtt) AS rtts, min(min_rtt) AS least, uniqExact(dns_id) AS queries
        FROM pping.samples WHERE host = 'gw1' GROUP BY ALL ORDER BY ip, interface, method",
        "[map(select(.rtt)) | group_by([.src_ip, .interface, .method])[] | {ip: .[0].src_ip, interface: .[0].interface,
            method: .[0].method, match_on_egress: .[0].match_on_egress, records: length, rtts: (map(.rtt) | add),
            least: (map(.min_rtt) | min), queries: (map(.dns_id | values) | unique | length)}]",
    );
    agree(
        "SELECT flow_event, reason, triggered_by, count() AS records FROM pping.flow_events GROUP BY ALL ORDER BY ALL",
        "[map(select(.triggered_by)) | group_by([.flow_event, .reason, .triggered_by])[] | {flow_event: .[0].flow_event,
            reason: .[0].reason, triggered_by: .[0].triggered_by, records: length}]",
    );
    agree(
        "SELECT replaceOne(toString(src_ip), '::ffff:', '') AS ip, reason, sum(sent_packets) AS packets,
            sum(src_rtt.samples) AS samples, max(src_rtt.p99) AS p99, sum(dest_rtt.samples) AS others,
            sum(toUnixTimestamp(end) - toUnixTimestamp(start)) AS seconds
        FROM pping.flow_summaries GROUP BY ALL ORDER BY ip, reason",
        r#"[map(select(.flow_event == "summary")) | group_by([.src_ip, .reason])[] | {ip: .[0].src_ip,
            reason: .[0].reason, packets: (map(.sent_packets) | add), samples: (map(.src_rtt.samples // 0) | add),
            p99: (map(.src_rtt.p99 // 0) | max), others: (map(.dest_rtt.samples // 0) | add),
            seconds: (map((.end / 1e9 | floor) - (.start / 1e9 | floor)) | add)}]"#,
    );
    // The engine computes the same from a histogram as pping does.
    agree(
        "SELECT group, method, sum(count) AS samples, round(max(p999) / 1e6, 3) AS p999 FROM pping.aggregates
        GROUP BY ALL ORDER BY group, method",
        "[aggregates | group_by([.group, .method])[] | {group: .[0].group, method: .[0].method, samples: samples,
            p999: (map([.] | select(.[0].count > 0) | quantile(0.999)) | max // 0)}]",
    );
    for (part, column) in [("0.5", "p50"), ("0.9", "p90"), ("0.95", "p95"), ("0.99", "p99")] {
        let quantile = format!("ppingQuantile({part}, (histogram.upper, histogram.samples), min, max)");
        let query = format!(
            "SELECT count() > 100 AS are_many, countIf(abs(toInt64({quantile}) - toInt64({column})) > 1) AS others
            FROM pping.aggregates"
        );
        assert_eq!(engine.rows(&query, &none), [json!({ "are_many": 1, "others": 0 })], "{column}");
    }
    agree(
        "SELECT toUnixTimestamp(hour) AS hour, group, interface, matched, count, round(p50 / 1e6, 3) AS p50,
            round(p95 / 1e6, 3) AS p95, round(p99 / 1e6, 3) AS p99, sent_packets
        FROM pping.hours WHERE method = 'icmp-echo' ORDER BY hour, group, interface, matched",
        r#"[aggregates | map(select(.method == "icmp-echo")) | group_by([hour, .group, .interface, matched])[] | {hour: (.[0] | hour * 3600),
            group: .[0].group, interface: .[0].interface, matched: (.[0] | matched), count: samples, p50: quantile(0.5), p95: quantile(0.95),
            p99: quantile(0.99), sent_packets: (map(.sent_packets) | add)}]"#,
    );

    let evening = midnight() + 19 * HOUR;
    let parameters = Parameters::from([
        ("night", text(midnight(), "%Y-%m-%d")),
        ("hours", "6".to_owned()),
        ("least", "5".to_owned()),
        ("customer", "192.0.2.3/32".to_owned()),
        ("month", text(midnight(), "%Y-%m-%d")),
        ("change", time(evening + 30 * MINUTE)),
        ("from", time(evening)),
        ("until", time(evening + HOUR)),
        ("times", "2".to_owned()),
        ("host", "gw1".to_owned()),
    ]);
    engine.assert_answers(&QUESTIONS, &parameters, &file.path);
    // The traffic was made for these answers.
    let answer = |question: &str| jq(&format!("{question}($ask)"), &parameters, &file.path);
    let worst = &answer("worst_prefixes")[0];
    assert_eq!((&worst["group"], &worst["baseline_ms"]), (&json!("192.0.2.3/32"), &json!(12)), "{worst}");
    // The same group has a short path at the other interface, and neither hides in the percentiles of both.
    let rows = engine.rows(&statements("queries.sql")[0], &parameters);
    let p95 = |interface: &str| {
        let row = rows.iter().find(|row| row["interface"] == interface && row["group"] == "192.0.2.3/32");
        row.and_then(|row| row["p95_ms"].as_f64()).unwrap()
    };
    assert!(p95("wan0") > 80.0 && p95("lan0") < 0.04, "{rows:?}");
    let resolver = &answer("failing_resolvers")[0];
    assert_eq!(resolver["resolver"], "2001:db8::35/128", "{resolver}");
    assert!(resolver["longest_silence_s"].as_f64() > Some(1100.0), "{resolver}");
    let inflated: Value = answer("start_of_inflation");
    assert_eq!(inflated.as_array().map(Vec::len), Some(1), "{inflated}");
    assert_eq!(inflated[0]["since"], time(evening + 31 * MINUTE), "{inflated}");
}

#[test]
fn what_is_no_record_is_refused_and_loads_nothing() {
    let engine = Engine::with_tables(None);
    let whole = records();
    let torn = &whole[..whole.len() - 7];
    let refusal = engine.load(torn).unwrap_err();
    let is_of_torn = ["INCORRECT_DATA", "PARSE", "READ_AFTER_EOF"].iter().any(|it| refusal.contains(it));
    assert!(is_of_torn, "{refusal}");
    let lines = String::from_utf8(whole).unwrap();
    let sample = lines.lines().find(|line| line.contains("\"rtt\":")).unwrap();
    let wrong = sample.replace("\"rtt\":", "\"rtt\":\"soon\",\"was\":");
    assert!(engine.load(wrong.as_bytes()).is_err(), "{wrong}");
    let file = Temporary::new("records.jsonl", lines.as_bytes());
    engine.load(lines.as_bytes()).unwrap();
    let count = |table: &str| engine.run(&format!("SELECT count() FROM pping.{table}"), &Parameters::new());
    let samples = jq("map(select(.rtt)) | length", &Parameters::new(), &file.path);
    assert_eq!(count("samples").trim(), samples.to_string());
}

//! `quality` in aggregates, compared with the formula of draft-ietf-ippm-qoo, section 6, applied here to the fields of
//! the record.

use std::fs;

use serde_json::{Value, json};

use super::{
    captures::captures,
    made::{MILLISECOND, START, connection, pcap},
    program::{Temporary, assert_fails, pping, read, stderr},
};

/// Two profiles that use every part. Aggregates with few samples get a score too.
const PROFILE: &str = r#"
[[profile]]
name = "both"
latency = [
    { percentile = 50, optimal = "1ms", unacceptable = "200ms" },
    { percentile = 95, optimal = "5ms", unacceptable = "400ms" },
]
loss = { optimal = "0%", unacceptable = "20%" }
samples = 1

[[profile]]
name = "busy"
latency = [{ percentile = 99.9, optimal = "10ms", unacceptable = "1s" }]
throughput = "100kbit/s"
samples = 5
"#;

fn number(record: &Value, name: &str) -> f64 {
    record[name].as_f64().unwrap()
}

/// Returns the upper bound of the bin with a percentile, or the longest time of all.
fn percentile(record: &Value, percentile: f64) -> f64 {
    let bins = record["histogram"].as_array().unwrap();
    let rank = (percentile / 100.0 * number(record, "count") - 1e-6).ceil().max(1.0);
    let mut seen = 0.0;
    let bin = bins.iter().find(|bin| {
        seen += bin[1].as_f64().unwrap();
        seen >= rank
    });
    bin.unwrap()[0].as_f64().unwrap().min(number(record, "max"))
}

fn part(value: f64, optimal: f64, unacceptable: f64) -> f64 {
    (1.0 - (value - optimal) / (unacceptable - optimal)).clamp(0.0, 1.0)
}

/// Returns what the record should say about both profiles.
fn expected(record: &Value) -> Value {
    let (count, method) = (number(record, "count"), record["method"].as_str().unwrap());
    if count == 0.0 || method == "quic-spin" {
        return json!({ "both": null, "busy": null });
    }
    let ms = MILLISECOND as f64;
    let lost = |side: &str| {
        number(record, &format!("{side}_retransmissions"))
            / number(record, &format!("{side}_packets")).max(1.0)
    };
    let loss = if method.starts_with("tcp") { part(lost("sent").max(lost("rec")), 0.0, 0.2) } else { 1.0 };
    let both = part(percentile(record, 50.0), ms, 200.0 * ms)
        .min(part(percentile(record, 95.0), 5.0 * ms, 400.0 * ms))
        .min(loss);
    let bits =
        8e9 * number(record, "sent_bytes").max(number(record, "rec_bytes")) / number(record, "interval");
    // A method whose flows' packets count for another method has no throughput.
    let has_packets = number(record, "sent_packets") + number(record, "rec_packets") > 0.0;
    let is_too_slow = has_packets && bits < 1e5;
    let busy = if is_too_slow { 0.0 } else { part(percentile(record, 99.9), 10.0 * ms, 1000.0 * ms) };
    let score = |value: f64| (100.0 * value).round() as u64;
    json!({ "both": score(both), "busy": (count >= 5.0).then(|| score(busy)) })
}

#[test]
fn scores_of_captures_are_those_of_the_formula() {
    let profiles = Temporary::new("quality.toml", PROFILE.as_bytes());
    let mut scores = Vec::new();
    for capture in captures() {
        let capture = capture.display();
        let arguments =
            format!("-r {capture} --rate-limit 0 --aggregate 10s --quality {}", profiles.path.display());
        let output = pping(&arguments).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        for record in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            assert_eq!(record["quality"], expected(&record), "{capture}: {record}");
            scores.extend(record["quality"]["both"].as_u64());
        }
    }
    let between = scores.iter().filter(|score| (1..100).contains(*score)).count();
    assert!(scores.is_empty() || between > 10, "hardly any score between 0 and 100: {scores:?}");
}

#[test]
fn default_profiles_are_three_and_none_gives_no_scores() {
    let capture = pcap(&connection(40_000, START, 120, 7 * MILLISECOND));
    let of = |arguments: &str| {
        let output = read(&capture, &format!("--rate-limit 0 --aggregate 1d --methods tcp-ts {arguments}"));
        assert!(output.status.success(), "{}", stderr(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        serde_json::from_str::<Value>(text.lines().last().unwrap()).unwrap()
    };
    // The client answers once a second, the server within 7 ms.
    assert_eq!(of("")["quality"], json!({ "video-call": 100, "game": 100, "web": 100 }));
    let none = Temporary::new("none.toml", b"");
    assert_eq!(of(&format!("--quality {}", none.path.display())).get("quality"), None);
}

#[test]
fn an_error_in_profiles_is_reported_with_its_position() {
    let file = Temporary::new("quality.toml", b"[[profile]]\nname = \"call\"\nlatency = \"200ms\"\n");
    let arguments = format!("-r /dev/null --aggregate 1s --quality {}", file.path.display());
    assert_fails(
        &pping(&arguments).output().unwrap(),
        2,
        &["--quality ", "quality.toml:3:11: ", "not a list"],
    );
    let named = Temporary::new(
        "pping.toml",
        format!("interface = \"lo\"\naggregate = \"1s\"\nquality = {:?}\n", file.path).as_bytes(),
    );
    let check = pping(&format!("config check {}", named.path.display())).output().unwrap();
    assert_fails(&check, 2, &["pping.toml:3:11:", "quality.toml:3:11: "]);
    fs::remove_file(&file.path).unwrap();
    assert_fails(&pping(&arguments).output().unwrap(), 2, &["--quality ", "No such file"]);
}

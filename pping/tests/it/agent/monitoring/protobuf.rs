//! Protobuf pages have the same values as text pages, and native histograms of the same samples. The reader here is
//! independent of pping's writer: it knows only the wire format and Prometheus' field numbers.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant, SystemTime},
};

use pping::{
    http::{Access, Contents, Readiness, Server},
    metrics::{Fill, Metrics},
    recent::{self, RecentHistory},
    snapshot::{InterfaceCounters, Place, Snapshot},
};
use pping_common::{abi::Counters, parse::Direction};
use pping_lab::Namespace;

use super::{
    agents::counts_of,
    pages::{PORT, PROTOBUF, scrape},
};
use crate::agent::monitor::ok;

/// A field of a message.
enum Field<'a> {
    Number(u64),
    Double(f64),
    Bytes(&'a [u8]),
}

/// The fields of a message by number, in their order (<https://protobuf.dev/programming-guides/encoding/>).
struct Message<'a>(Vec<(u64, Field<'a>)>);

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (first, rest) = bytes.split_first().expect("a varint that is cut short");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        shift += 7;
        if first & 0x80 == 0 {
            return value;
        }
    }
}

fn zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Reads a length and the bytes that it delimits.
fn delimited<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let length = varint(bytes) as usize;
    let (delimited, rest) = bytes.split_at(length);
    *bytes = rest;
    delimited
}

impl<'a> Message<'a> {
    fn new(mut bytes: &'a [u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let field = match key & 7 {
                0 => Field::Number(varint(&mut bytes)),
                1 => {
                    let (number, rest) = bytes.split_first_chunk().unwrap();
                    bytes = rest;
                    Field::Double(f64::from_le_bytes(*number))
                }
                2 => Field::Bytes(delimited(&mut bytes)),
                other => panic!("wire type {other}"),
            };
            fields.push((key >> 3, field));
        }
        Self(fields)
    }

    fn all(&self, number: u64) -> impl Iterator<Item = &Field<'a>> {
        self.0.iter().filter(move |(it, _)| *it == number).map(|(_, field)| field)
    }

    /// Returns an integer field, or 0 if it is absent.
    fn number(&self, number: u64) -> u64 {
        self.all(number).last().map_or(0, |field| match field {
            Field::Number(value) => *value,
            _ => panic!("field {number} is no integer"),
        })
    }

    fn double(&self, number: u64) -> f64 {
        self.all(number).last().map_or(0.0, |field| match field {
            Field::Double(value) => *value,
            _ => panic!("field {number} is no double"),
        })
    }

    fn bytes(&self, number: u64) -> impl Iterator<Item = &'a [u8]> {
        self.all(number).map(move |field| match field {
            Field::Bytes(bytes) => *bytes,
            _ => panic!("field {number} is no text or message"),
        })
    }

    fn text(&self, number: u64) -> String {
        self.bytes(number).last().map_or(String::new(), |bytes| String::from_utf8(bytes.to_vec()).unwrap())
    }

    fn messages(&self, number: u64) -> impl Iterator<Item = Message<'a>> {
        self.bytes(number).map(Message::new)
    }
}

/// Name and labels of a series, the labels sorted.
type SeriesKey = (String, BTreeMap<String, String>);

/// A native histogram.
#[derive(Debug)]
struct Native {
    schema: i64,
    count: u64,
    zero: u64,
    zero_threshold: f64,
    /// Counts by index, without empty buckets.
    buckets: BTreeMap<i64, i64>,
    since: Duration,
}

/// The content of a page: values by series as in the text format, types, help texts and native histograms.
#[derive(Default)]
struct Decoded {
    values: BTreeMap<SeriesKey, f64>,
    described: BTreeMap<String, (&'static str, String)>,
    native: BTreeMap<SeriesKey, Native>,
}

/// Reads `io.prometheus.client.MetricFamily` messages, each preceded by its length.
fn decoded(mut page: &[u8]) -> Decoded {
    let mut decoded = Decoded::default();
    while !page.is_empty() {
        let family = Message::new(delimited(&mut page));
        let name = family.text(1);
        let kind = match family.number(3) {
            0 => "counter",
            1 => "gauge",
            2 => "summary",
            4 => "histogram",
            other => panic!("{name}: type {other}"),
        };
        assert!(decoded.described.insert(name.clone(), (kind, family.text(2))).is_none(), "{name} twice");
        assert!(family.bytes(4).next().is_some(), "{name} has no series");
        for metric in family.messages(4) {
            let labels: BTreeMap<_, _> =
                metric.messages(1).map(|pair| (pair.text(1), pair.text(2))).collect();
            let mut put = |suffix: &str, le: Option<f64>, value: f64| {
                let mut labels = labels.clone();
                labels.extend(le.map(|le| ("le".to_owned(), le.to_string())));
                let earlier = decoded.values.insert((format!("{name}{suffix}"), labels), value);
                assert!(earlier.is_none(), "{name}: a series twice");
            };
            match kind {
                "gauge" => put("", None, metric.messages(2).next().expect("a gauge").double(1)),
                "counter" => put("", None, metric.messages(3).next().expect("a counter").double(1)),
                "summary" => {
                    let summary = metric.messages(4).next().expect("a summary");
                    put("_count", None, summary.number(1) as f64);
                    put("_sum", None, summary.double(2));
                }
                _ => {
                    let histogram = metric.messages(7).next().expect("a histogram");
                    put("_count", None, histogram.number(1) as f64);
                    put("_sum", None, histogram.double(2));
                    for bucket in histogram.messages(3) {
                        put("_bucket", Some(bucket.double(2)), bucket.number(1) as f64);
                    }
                    decoded.native.insert((name.clone(), labels.clone()), native(&histogram));
                }
            }
        }
    }
    decoded
}

fn native(histogram: &Message<'_>) -> Native {
    let mut deltas = Vec::new();
    for mut packed in histogram.bytes(13) {
        while !packed.is_empty() {
            deltas.push(zigzag(varint(&mut packed)));
        }
    }
    let (mut index, mut count, mut deltas) = (0, 0, deltas.into_iter());
    let mut buckets = BTreeMap::new();
    for span in histogram.messages(12) {
        index += zigzag(span.number(1));
        for _ in 0..span.number(2) {
            count += deltas.next().expect("a delta for each bucket");
            buckets.insert(index, count);
            index += 1;
        }
    }
    assert_eq!(deltas.next(), None, "a bucket for each delta");
    buckets.retain(|_, count| *count != 0);
    let created = histogram.messages(15).next().expect("a timestamp of creation");
    Native {
        schema: zigzag(histogram.number(5)),
        count: histogram.number(1),
        zero: histogram.number(7),
        zero_threshold: histogram.double(6),
        buckets,
        since: Duration::new(created.number(1), created.number(2) as u32),
    }
}

/// Parses the values of a text page.
fn parsed(page: &str) -> BTreeMap<SeriesKey, f64> {
    let series = page.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let labels = labels.strip_suffix("\"}").unwrap_or_default().split("\",");
        let labels = labels.filter_map(|label| label.split_once("=\"")).map(|(name, value)| {
            let bound = (name == "le").then(|| value.parse::<f64>().unwrap().to_string());
            let text = || value.replace("\\\"", "\"").replace("\\\\", "\\");
            (name.to_owned(), bound.unwrap_or_else(text))
        });
        ((name.to_owned(), labels.collect()), value.parse().unwrap())
    });
    series.collect()
}

/// Returns the RTTs of each group, in ns: short and long ones, and some below and above all octaves.
fn groups() -> BTreeMap<String, Vec<u64>> {
    let spread = |number: u64| (1..=40).map(|step| 200_000 + number * step * step * 37_123).collect();
    let mut groups: BTreeMap<_, Vec<u64>> =
        (0..50).map(|number| (format!("10.0.{number}.0/24"), spread(number))).collect();
    groups.insert(
        "extremes".to_owned(),
        vec![1, 953, 954, 1_000_000_000, 64_000_000_000, 64_000_000_001, 1 << 40],
    );
    groups
}

#[test]
fn it_has_the_values_of_the_text_and_the_bins_of_the_samples() {
    let begin = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let host = ok(Namespace::new("monitor"));
    let metrics = Metrics::new(100, Duration::from_mins(10));
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    let _server = ok(host.enter(|| {
        Server::start(
            address,
            Access::default(),
            Contents::new(metrics.clone(), RecentHistory::new(recent::MEMORY), Readiness::default()),
        )
    }))
    .unwrap();
    let site = [("site", "a \"b\" \\ é")];
    for _ in 0..3 {
        let all_counts: Vec<_> =
            groups().iter().map(|(group, rtts)| counts_of(group, &site, Direction::Egress, rtts)).collect();
        metrics.add(&all_counts, Instant::now());
    }
    let mut counters = Counters::ZERO;
    counters.traffic[0][2].bytes = 123_456_789;
    (counters.timed_packets[1], counters.timed_ns[1]) = (12, 3_456);
    let interface = InterfaceCounters {
        name: "wan0".into(),
        attach_points: vec!["tcx"],
        is_up: true,
        counters,
        place: Place::Alone,
    };
    metrics
        .set_counters(Snapshot { interfaces: vec![interface] }, Fill { max_flows: 1000, ..Fill::default() });

    let text = String::from_utf8(scrape(&host, "text/plain", "identity").1).unwrap();
    for encoding in ["identity", "gzip"] {
        let (head, page) = scrape(&host, PROTOBUF, encoding);
        assert!(head.contains(&format!("content-type: {}", PROTOBUF.to_lowercase())), "{head}");
        let page = decoded(&page);
        // The process metrics change from page to page.
        let without_process = |values: BTreeMap<SeriesKey, f64>| -> BTreeMap<_, _> {
            values.into_iter().filter(|((name, _), _)| !name.starts_with("process_")).collect()
        };
        let (found, expected) = (without_process(page.values), without_process(parsed(&text)));
        assert!(expected.len() > 51 * 38, "{}", expected.len());
        for (series, value) in &expected {
            assert_eq!(found.get(series), Some(value), "{series:?}");
        }
        assert_eq!(found.len(), expected.len());
        for (name, (kind, help)) in &page.described {
            assert!(
                text.contains(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n")),
                "{name} {help} {kind}"
            );
        }

        assert_eq!(page.native.len(), groups().len());
        for ((name, labels), native) in &page.native {
            assert_eq!((name.as_str(), native.schema), ("pping_rtt_seconds", 3));
            let rtts = &groups()[&labels["group"]];
            let (mut zero, mut buckets) = (0, BTreeMap::new());
            for rtt in rtts.iter().map(|&rtt| rtt as f64 / 1e9) {
                match rtt {
                    rtt if rtt <= native.zero_threshold => zero += 3,
                    rtt if rtt > 64.0 => *buckets.entry(49).or_default() += 3,
                    rtt => *buckets.entry((rtt.log2() * 8.0).ceil() as i64).or_default() += 3,
                }
            }
            assert_eq!((native.zero, &native.buckets), (zero, &buckets), "{labels:?}");
            assert_eq!(native.count, 3 * rtts.len() as u64);
            assert_eq!(native.count, native.zero + native.buckets.values().sum::<i64>() as u64);
            assert!((native.zero_threshold * f64::from(1 << 20) - 1.0).abs() < f64::EPSILON);
            assert!(begin <= native.since && native.since <= SystemTime::UNIX_EPOCH.elapsed().unwrap());
        }
    }
}

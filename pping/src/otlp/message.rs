//! Requests of OTLP: metrics as protobuf, compressed.
//!
//! A name follows from that in Prometheus by the rules of OpenTelemetry: `pping_` becomes a namespace, units are
//! separate, and `_total` is left out. A receiver that converts names for Prometheus restores those of `/metrics`.

use std::{
    io::Write as _,
    time::{SystemTime, UNIX_EPOCH},
};

use flate2::{Compression, write::GzEncoder};
use hyper::body::Bytes;
use opentelemetry_proto::tonic::{
    collector::metrics::v1::ExportMetricsServiceRequest,
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value},
    metrics::v1::{
        AggregationTemporality, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram,
        HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
        exponential_histogram_data_point::Buckets, metric::Data, number_data_point::Value,
    },
    resource::v1::Resource,
};
use pping_common::hist::{FIRST_OCTAVE, SCHEMA, UNDERFLOW};
use prost::Message as _;

use crate::{
    config::Temporality,
    metrics::{Attributes, Distribution, Export, Family, Kind, Point, Points, TimeSum},
};

/// The most data points of a request, about 1 MB before compression. A collector accepts 20 MB by default.
const MAX_POINTS: usize = 5_000;

/// The index of the bin after [`UNDERFLOW`]. In OpenTelemetry an index is the exponent of the lower bound.
const FIRST_INDEX: i32 = FIRST_OCTAVE << SCHEMA;

/// Describes this pping.
pub(super) fn resource(instance: String) -> Resource {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let attributes = [
        ("service.name", "pping".to_owned()),
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id", instance),
        ("host.name", host),
    ];
    let attributes = attributes.into_iter().map(|(key, value)| attribute(key, value)).collect();
    Resource { attributes, ..Resource::default() }
}

/// Returns the requests for an export, compressed.
pub(super) fn requests(export: Export, resource: &Resource) -> Vec<Bytes> {
    let Export { at, temporality, families } = export;
    let (mut requests, mut metrics, mut points) = (Vec::new(), Vec::new(), 0);
    for family in families {
        let mut rest = metric(family, temporality, at);
        while let Some(metric) = rest {
            let (metric, after) = split(metric, MAX_POINTS - points);
            points += len(&metric);
            metrics.push(metric);
            rest = after;
            if points >= MAX_POINTS {
                requests.push(request(std::mem::take(&mut metrics), resource));
                points = 0;
            }
        }
    }
    if !metrics.is_empty() {
        requests.push(request(metrics, resource));
    }
    requests
}

/// Returns a request without metrics, which a receiver answers like any other.
pub(super) fn empty() -> Bytes {
    compressed(&ExportMetricsServiceRequest::default())
}

fn request(metrics: Vec<Metric>, resource: &Resource) -> Bytes {
    let scope = InstrumentationScope {
        name: "pping".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let scope_metrics = ScopeMetrics { scope: Some(scope), metrics, schema_url: String::new() };
    let resource_metrics = ResourceMetrics {
        resource: Some(resource.clone()),
        scope_metrics: vec![scope_metrics],
        schema_url: String::new(),
    };
    compressed(&ExportMetricsServiceRequest { resource_metrics: vec![resource_metrics] })
}

fn compressed(request: &ExportMetricsServiceRequest) -> Bytes {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory does not fail.
    gzip.write_all(&request.encode_to_vec()).ok();
    gzip.finish().unwrap_or_default().into()
}

/// Converts a metric; `None` if it has no points.
fn metric(Family { metric, points }: Family, temporality: Temporality, at: SystemTime) -> Option<Metric> {
    let aggregation_temporality = match temporality {
        Temporality::Cumulative => AggregationTemporality::Cumulative,
        Temporality::Delta => AggregationTemporality::Delta,
    };
    let aggregation_temporality = aggregation_temporality.into();
    let counter = |data_points| Data::Sum(Sum { data_points, aggregation_temporality, is_monotonic: true });
    let integer = |value| Value::AsInt(value as i64);
    let data = match points {
        Points::Counts(points) => counter(numbers(points, at, integer)),
        Points::Times(points) => counter(numbers(points, at, Value::AsDouble)),
        // OpenTelemetry defines levels of a process as sums (semantic conventions, "OS process metrics").
        Points::Levels(points) if metric.name.starts_with("process.") => {
            let data_points = numbers(points, at, integer);
            let aggregation_temporality = AggregationTemporality::Cumulative.into();
            Data::Sum(Sum { data_points, aggregation_temporality, is_monotonic: false })
        }
        Points::Levels(points) => Data::Gauge(Gauge { data_points: gauges(points, at, integer) }),
        Points::Numbers(points) => Data::Gauge(Gauge { data_points: gauges(points, at, Value::AsDouble) }),
        Points::Summaries(points) => {
            let data_points = points.into_iter().map(|point| summary(point, at)).collect();
            Data::Histogram(Histogram { data_points, aggregation_temporality })
        }
        Points::Distributions(points) => {
            let data_points = points.into_iter().map(|point| histogram(point, at)).collect();
            Data::ExponentialHistogram(ExponentialHistogram { data_points, aggregation_temporality })
        }
    };
    let suffix = if metric.kind == Kind::Info { "_info" } else { "" };
    let metric = Metric {
        name: metric.name.replacen("pping_", "pping.", 1) + suffix,
        description: format!("{}.", metric.help),
        unit: metric.unit.to_owned(),
        metadata: Vec::new(),
        data: Some(data),
    };
    (len(&metric) > 0).then_some(metric)
}

fn numbers<T>(points: Vec<Point<T>>, at: SystemTime, value: impl Fn(T) -> Value) -> Vec<NumberDataPoint> {
    let number = |point: Point<T>| NumberDataPoint {
        attributes: attributes(point.attributes),
        start_time_unix_nano: nanoseconds(point.since),
        time_unix_nano: nanoseconds(at),
        value: Some(value(point.value)),
        ..NumberDataPoint::default()
    };
    points.into_iter().map(number).collect()
}

/// Like [`numbers`], for values that have no start time.
fn gauges<T>(points: Vec<Point<T>>, at: SystemTime, value: impl Fn(T) -> Value) -> Vec<NumberDataPoint> {
    let mut gauges = numbers(points, at, value);
    for gauge in &mut gauges {
        gauge.start_time_unix_nano = 0;
    }
    gauges
}

/// Converts a histogram, bin by bin.
///
/// Times up to 2^-20 s count as zero, and times above 64 s count in the first bucket above that: every bucket of
/// OpenTelemetry has an upper bound, and the buckets together must count every sample.
fn histogram(point: Point<Box<Distribution>>, at: SystemTime) -> ExponentialHistogramDataPoint {
    let Point { attributes: labels, since, value } = point;
    let Distribution { bins, sum, range } = *value;
    let buckets = &bins[UNDERFLOW + 1..];
    let first = buckets.iter().position(|&count| count > 0);
    let last = buckets.iter().rposition(|&count| count > 0);
    let positive = first.zip(last).map(|(first, last)| Buckets {
        offset: FIRST_INDEX + first as i32,
        bucket_counts: buckets[first..=last].to_vec(),
    });
    let seconds = |ns: u64| ns as f64 / 1e9;
    ExponentialHistogramDataPoint {
        attributes: attributes(labels),
        start_time_unix_nano: nanoseconds(since),
        time_unix_nano: nanoseconds(at),
        count: bins.iter().sum(),
        sum: Some(sum as f64 / 1e9),
        scale: SCHEMA,
        zero_count: bins[UNDERFLOW],
        positive,
        min: range.map(|(min, _)| seconds(min)),
        max: range.map(|(_, max)| seconds(max)),
        zero_threshold: 2_f64.powi(FIRST_OCTAVE),
        ..ExponentialHistogramDataPoint::default()
    }
}

/// Converts a summary to a histogram without buckets. OTLP's own type of that name is for data from other formats, and
/// has no deltas.
fn summary(point: Point<TimeSum>, at: SystemTime) -> HistogramDataPoint {
    let Point { attributes: labels, since, value: TimeSum { count, sum } } = point;
    HistogramDataPoint {
        attributes: attributes(labels),
        start_time_unix_nano: nanoseconds(since),
        time_unix_nano: nanoseconds(at),
        count,
        sum: Some(sum),
        ..HistogramDataPoint::default()
    }
}

fn attributes(attributes: Attributes) -> Vec<KeyValue> {
    attributes.into_iter().map(|(key, value)| attribute(&key, value.as_ref().to_owned())).collect()
}

fn attribute(key: &str, value: String) -> KeyValue {
    let value = Some(AnyValue { value: Some(any_value::Value::StringValue(value)) });
    KeyValue { key: key.to_owned(), value, ..KeyValue::default() }
}

fn nanoseconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}

/// Returns the number of points.
fn len(metric: &Metric) -> usize {
    match &metric.data {
        Some(Data::Gauge(it)) => it.data_points.len(),
        Some(Data::Sum(it)) => it.data_points.len(),
        Some(Data::Histogram(it)) => it.data_points.len(),
        Some(Data::ExponentialHistogram(it)) => it.data_points.len(),
        _ => 0,
    }
}

/// Returns the metric with its first `most` points, and a metric with the rest.
fn split(mut metric: Metric, most: usize) -> (Metric, Option<Metric>) {
    if len(&metric) <= most {
        return (metric, None);
    }
    let data = match &mut metric.data {
        Some(Data::Gauge(it)) => Data::Gauge(Gauge { data_points: it.data_points.split_off(most) }),
        Some(Data::Sum(it)) => Data::Sum(Sum { data_points: it.data_points.split_off(most), ..*it }),
        Some(Data::Histogram(it)) => {
            Data::Histogram(Histogram { data_points: it.data_points.split_off(most), ..*it })
        }
        Some(Data::ExponentialHistogram(it)) => {
            let data_points = it.data_points.split_off(most);
            Data::ExponentialHistogram(ExponentialHistogram { data_points, ..*it })
        }
        // This file makes no other kind.
        _ => return (metric, None),
    };
    let Metric { name, description, unit, .. } = &metric;
    let (name, description, unit) = (name.clone(), description.clone(), unit.clone());
    let rest = Metric { name, description, unit, metadata: Vec::new(), data: Some(data) };
    (metric, Some(rest))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use pping_common::{hist::BINS, series::SeriesCounts};
    use proptest::prelude::*;

    use super::*;
    use crate::metrics::Metric as Described;

    const fn described(kind: Kind, name: &'static str) -> Described {
        Described { name, unit: "", kind, help: "" }
    }

    static PACKETS: Described = described(Kind::Counter, "pping_packets");
    static FLOWS: Described = described(Kind::Gauge, "pping_flows");
    static MAP_ENTRIES: Described = described(Kind::Gauge, "pping_map_entries");

    fn distribution(rtts: &[u64]) -> Box<Distribution> {
        let mut counts = SeriesCounts::EMPTY;
        for &rtt in rtts {
            counts.sample(rtt, 0);
        }
        let mut distribution = Box::new(Distribution { bins: [0; BINS], sum: 0, range: None });
        distribution.add(&counts);
        distribution
    }

    fn point(rtts: &[u64]) -> Point<Box<Distribution>> {
        Point { attributes: Vec::new(), since: UNIX_EPOCH, value: distribution(rtts) }
    }

    /// Whether a time in ns is above 2^(k/8) s, with a margin for the rounding of a double.
    fn is_above(rtt: u64, k: i32) -> bool {
        rtt as f64 / 1e9 > 2_f64.powf(f64::from(k) / 8.0) * (1.0 - 1e-9)
    }

    proptest! {
        #[test]
        fn each_sample_is_in_the_bucket_of_its_bounds(rtt in 954_u64..64_000_000_000) {
            let point = histogram(point(&[rtt]), SystemTime::now());
            let Buckets { offset, bucket_counts } = point.positive.unwrap();
            prop_assert_eq!((bucket_counts, point.scale, point.zero_count), (vec![1], 3, 0));
            prop_assert!(is_above(rtt, offset) && !is_above(rtt - 1, offset + 1), "{rtt} in {offset}");
        }

        #[test]
        fn the_buckets_count_all_samples(rtts in prop::collection::vec(0_u64..200_000_000_000, 1..100)) {
            let point = histogram(point(&rtts), SystemTime::now());
            let buckets = point.positive.map_or(0, |it| it.bucket_counts.iter().sum());
            prop_assert_eq!(point.count, rtts.len() as u64);
            prop_assert_eq!(buckets + point.zero_count, point.count);
            let seconds = |ns: Option<&u64>| ns.map(|&ns| ns as f64 / 1e9);
            prop_assert_eq!((point.min, point.max), (seconds(rtts.iter().min()), seconds(rtts.iter().max())));
        }
    }

    #[test]
    fn the_shortest_count_as_zero_and_the_longest_above_64_s() {
        let long = 3_600_000_000_000;
        let point = histogram(point(&[0, 953, 64_000_000_000, 64_000_000_001, long]), SystemTime::now());
        assert_eq!((point.count, point.zero_count, point.max), (5, 2, Some(3600.0)));
        assert!((point.zero_threshold - 0.5_f64.powi(20)).abs() < f64::EPSILON);
        let Buckets { offset, bucket_counts } = point.positive.unwrap();
        // 2^(47/8) to 2^(48/8) s, then the rest.
        assert_eq!((offset, bucket_counts), (47, vec![1, 2]));
    }

    #[test]
    fn many_points_make_several_requests_with_all_of_them() {
        let points = |count: u64| {
            let point = |value| Point { attributes: Vec::new(), since: UNIX_EPOCH, value };
            (0..count).map(point).collect::<Vec<_>>()
        };
        let families = vec![
            Family { metric: &PACKETS, points: Points::Counts(points(3_000)) },
            Family { metric: &FLOWS, points: Points::Levels(points(11_000)) },
            Family { metric: &MAP_ENTRIES, points: Points::Levels(Vec::new()) },
        ];
        let export = Export { at: SystemTime::now(), temporality: Temporality::Cumulative, families };
        let requests = requests(export, &resource("1".to_owned()));
        let mut values = Vec::new();
        for request in &requests {
            let mut bytes = Vec::new();
            GzDecoder::new(&request[..]).read_to_end(&mut bytes).unwrap();
            let request = ExportMetricsServiceRequest::decode(&bytes[..]).unwrap();
            let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
            assert!(metrics.iter().map(len).sum::<usize>() <= MAX_POINTS);
            for metric in metrics {
                let points = match metric.data.as_ref().unwrap() {
                    Data::Sum(it) => &it.data_points,
                    Data::Gauge(it) => &it.data_points,
                    other => panic!("{other:?}"),
                };
                values.extend(points.iter().map(|point| (metric.name.clone(), point.value.unwrap())));
            }
        }
        let expected = (0..3_000).map(|it| ("pping.packets".to_owned(), Value::AsInt(it)));
        let expected = expected.chain((0..11_000).map(|it| ("pping.flows".to_owned(), Value::AsInt(it))));
        assert_eq!(values, expected.collect::<Vec<_>>());
        assert_eq!(requests.len(), 3);
    }
}

//! The protobuf format of Prometheus: messages `MetricFamily` of package `io.prometheus.client`
//! (<https://github.com/prometheus/client_model/blob/master/io/prometheus/client/metrics.proto>), each after its length as a varint.
//!
//! It has everything that the text formats have. Its histograms are also native ones, with bins of [`hist::SCHEMA`]
//! where text has octaves.

use std::time::UNIX_EPOCH;

use pping_common::{abi::BUCKETS, hist};
use prost::{
    Message,
    encoding::{WireType, encode_key, encode_varint},
};

use super::{
    exposition::{Exposition, Prefix, Value},
    histogram::{Counted, RttHistogram},
    labels::{self, FormattedLabels},
    metric::{Kind, Metric as Described},
    page::{Body, CHUNK, Encoding, Page},
};

/// The number of the field `metric` of `MetricFamily`.
const METRIC: u32 = 4;

/// `MetricFamily` without its metrics, which are appended in their encoded form.
#[derive(Clone, PartialEq, Message)]
struct FamilyMessage {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    help: String,
    #[prost(enumeration = "MetricType", tag = "3")]
    kind: i32,
    #[prost(string, tag = "5")]
    unit: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
enum MetricType {
    Counter = 0,
    Gauge = 1,
    Summary = 2,
    Histogram = 4,
}

/// `Metric` without its labels, which are encoded already.
#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(message, optional, tag = "2")]
    gauge: Option<Number>,
    #[prost(message, optional, tag = "3")]
    counter: Option<Number>,
    #[prost(message, optional, tag = "4")]
    summary: Option<Summary>,
    #[prost(message, optional, tag = "7")]
    histogram: Option<Histogram>,
}

/// `Gauge`, and `Counter`, whose first field is the same.
#[derive(Clone, Copy, PartialEq, Message)]
struct Number {
    #[prost(double, tag = "1")]
    value: f64,
}

/// `Summary`, without quantiles.
#[derive(Clone, Copy, PartialEq, Message)]
struct Summary {
    #[prost(uint64, tag = "1")]
    sample_count: u64,
    #[prost(double, tag = "2")]
    sample_sum: f64,
}

#[derive(Clone, PartialEq, Message)]
struct Histogram {
    #[prost(uint64, tag = "1")]
    sample_count: u64,
    #[prost(double, tag = "2")]
    sample_sum: f64,
    #[prost(message, repeated, tag = "3")]
    bucket: Vec<Bucket>,
    #[prost(sint32, tag = "5")]
    schema: i32,
    #[prost(double, tag = "6")]
    zero_threshold: f64,
    #[prost(uint64, tag = "7")]
    zero_count: u64,
    #[prost(message, repeated, tag = "12")]
    positive_span: Vec<BucketSpan>,
    #[prost(sint64, repeated, tag = "13")]
    positive_delta: Vec<i64>,
    #[prost(message, optional, tag = "15")]
    start_timestamp: Option<Timestamp>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Bucket {
    #[prost(uint64, tag = "1")]
    cumulative_count: u64,
    #[prost(double, tag = "2")]
    upper_bound: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct BucketSpan {
    /// The index of the first bucket, or the number of buckets left out since the last span.
    #[prost(sint32, tag = "1")]
    offset: i32,
    #[prost(uint32, tag = "2")]
    length: u32,
}

/// `google.protobuf.Timestamp`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct Timestamp {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

/// A page in protobuf.
pub(super) struct Protobuf {
    body: Body,
    family: FamilyMessage,
    /// The metrics of the family so far. The family's length precedes it, and is known only when all metrics are.
    metrics: Vec<Vec<u8>>,
    /// The metric in progress.
    metric: Metric,
}

impl Protobuf {
    pub(super) fn new(encoding: Encoding) -> Self {
        Self {
            body: Body::new(encoding),
            family: FamilyMessage::default(),
            metrics: Vec::new(),
            metric: Metric::default(),
        }
    }

    /// Appends the metric in progress to the family.
    fn end_metric(&mut self, prefix: &[u8], labels: &FormattedLabels) {
        if self.metrics.last().is_none_or(|chunk| chunk.len() >= CHUNK) {
            // Most families are small.
            let room = if self.metrics.is_empty() { 0 } else { CHUNK + CHUNK / 8 };
            self.metrics.push(Vec::with_capacity(room));
        }
        let Some(chunk) = self.metrics.last_mut() else { return };
        // An encoded message may consist of concatenated parts; the labels are encoded already.
        let length = prefix.len() + labels.protobuf.len() + self.metric.encoded_len();
        encode_key(METRIC, WireType::LengthDelimited, chunk);
        encode_varint(length as u64, chunk);
        chunk.extend_from_slice(prefix);
        chunk.extend_from_slice(&labels.protobuf);
        self.metric.encode_raw(chunk);
    }

    /// Writes the family, unless it has no metrics.
    fn end_family(&mut self) {
        let metrics = std::mem::take(&mut self.metrics);
        if metrics.is_empty() {
            return;
        }
        let length = self.family.encoded_len() + metrics.iter().map(Vec::len).sum::<usize>();
        let end = self.body.end();
        encode_varint(length as u64, end);
        self.family.encode_raw(end);
        for chunk in metrics {
            self.body.append(chunk);
        }
    }
}

impl Exposition for Protobuf {
    fn family(&mut self, metric: &Described) {
        self.end_family();
        let (suffix, kind) = match metric.kind {
            Kind::Counter => ("_total", MetricType::Counter),
            Kind::Gauge => ("", MetricType::Gauge),
            Kind::Info => ("_info", MetricType::Gauge),
            Kind::Histogram => ("", MetricType::Histogram),
            Kind::Summary => ("", MetricType::Summary),
        };
        self.family = FamilyMessage {
            name: metric.name_on_pages() + suffix,
            help: format!("{}.", metric.help),
            kind: kind.into(),
            unit: metric.unit_on_pages().unwrap_or_default().to_owned(),
        };
        self.metric = Metric::default();
    }

    fn prefix(&self, labels: &[(&str, &str)]) -> Prefix {
        Prefix(labels::protobuf(labels))
    }

    fn value(&mut self, prefix: &Prefix, labels: &FormattedLabels, value: Value) {
        let value = match value {
            Value::Integer(value) => value as f64,
            Value::Nanoseconds(value) => seconds(value),
            Value::Float(value) => value,
        };
        let number = Some(Number { value });
        if self.family.kind() == MetricType::Counter {
            self.metric.counter = number;
        } else {
            self.metric.gauge = number;
        }
        self.end_metric(&prefix.0, labels);
    }

    fn histogram(&mut self, labels: &FormattedLabels, histogram: &RttHistogram) {
        let counted = histogram.counted();
        let message = self.metric.histogram.get_or_insert_default();
        fill(message, counted);
        // Without samples of this process there is no histogram yet, rather than an empty one with other bounds.
        if message.sample_count > 0 {
            self.end_metric(&[], labels);
        }
    }

    fn summary(&mut self, labels: &FormattedLabels, count: u64, sum: u64) {
        self.metric.summary = Some(Summary { sample_count: count, sample_sum: seconds(sum.into()) });
        self.end_metric(&[], labels);
    }

    fn finish(mut self: Box<Self>) -> Page {
        self.end_family();
        self.body.finish()
    }
}

/// Replaces the content of a histogram, and reuses its memory.
fn fill(message: &mut Histogram, counted: Counted<'_>) {
    let cumulative = counted.cumulative();
    message.sample_count = cumulative[BUCKETS - 1];
    message.sample_sum = seconds(counted.sum());
    message.bucket.clear();
    message.bucket.extend(cumulative.into_iter().enumerate().map(|(bucket, cumulative_count)| {
        let is_last = bucket == BUCKETS - 1;
        let upper_bound =
            if is_last { f64::INFINITY } else { 2_f64.powi(hist::FIRST_OCTAVE + bucket as i32) };
        Bucket { cumulative_count, upper_bound }
    }));
    message.schema = hist::SCHEMA;
    message.zero_threshold = 2_f64.powi(hist::FIRST_OCTAVE);
    message.zero_count = counted.underflow();
    message.start_timestamp = counted
        .since()
        .duration_since(UNIX_EPOCH)
        .ok()
        .map(|since| Timestamp { seconds: since.as_secs() as i64, nanos: since.subsec_nanos() as i32 });
    spans(message, counted.bins());
}

/// Replaces spans and deltas.
fn spans(message: &mut Histogram, bins: impl Iterator<Item = (i32, u64)>) {
    /// The bins of a gap of up to this many are written, since a span takes as many bytes.
    const GAP: i32 = 3;
    let Histogram { positive_span: spans, positive_delta: deltas, .. } = message;
    spans.clear();
    deltas.clear();
    // The bin after the last one, and the count of the last one.
    let (mut next, mut last) = (0, 0);
    for (index, count) in bins {
        match spans.last_mut() {
            Some(span) if index - next <= GAP => {
                for _ in next..index {
                    deltas.push(-last);
                    last = 0;
                }
                span.length += (index - next + 1) as u32;
            }
            _ => spans.push(BucketSpan { offset: index - next, length: 1 }),
        }
        deltas.push(count as i64 - last);
        (next, last) = (index + 1, count as i64);
    }
}

fn seconds(nanoseconds: u128) -> f64 {
    nanoseconds as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn spans_and_deltas_are_the_bins(bins in prop::collection::btree_map(-159_i32..50, 1_u64..1 << 62, 0..60)) {
            let mut message = Histogram::default();
            // The bins of the series before are gone.
            spans(&mut message, [(3, 9), (7, 1)].into_iter());
            spans(&mut message, bins.clone().into_iter());
            let (mut index, mut count, mut deltas) = (0, 0, message.positive_delta.iter());
            let mut found = BTreeMap::new();
            for (position, span) in message.positive_span.iter().enumerate() {
                prop_assert!(position == 0 || span.offset > 0);
                index += span.offset;
                for _ in 0..span.length {
                    count += deltas.next().unwrap();
                    found.insert(index, count as u64);
                    index += 1;
                }
            }
            prop_assert_eq!(deltas.next(), None);
            found.retain(|_, count| *count > 0);
            prop_assert_eq!(found, bins);
        }
    }
}

//! The series that pping serves of groups, written by the client library (prometheus-client): docs/lab/client-library.md.

use std::{
    fmt::{self, Write},
    hint::black_box,
};

use anyhow::Result;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabel as _, EncodeLabelSet, LabelSetEncoder, NoLabelSet, text},
    metrics::MetricType,
    registry::{Registry, Unit},
};

/// Bounds of buckets, s, and a count for each.
const BUCKETS: i32 = 28;

/// The size of a chunk, bytes, as in pping's own pages.
const CHUNK: usize = 256 << 10;

/// The metrics of groups, which have a series each.
#[derive(Debug)]
struct Groups(Vec<String>);

/// The labels of a group's series.
struct Labels<'a>(&'a str);

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        let labels = [("interface", "eth0"), ("method", "tcp-ts"), ("matched", "ingress"), ("group", self.0)];
        labels.iter().try_for_each(|label| label.encode(encoder.encode_label()))
    }
}

impl Collector for Groups {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (seconds, ratio) = (Unit::Seconds, Unit::Ratios);
        let buckets: Vec<_> = (0..BUCKETS)
            .map(|bucket| if bucket == BUCKETS - 1 { f64::INFINITY } else { 2_f64.powi(bucket - 20) })
            .map(|bound| (bound, 3))
            .collect();
        let help = "Round-trip times between this host and the host that replied.";
        let mut rtt = encoder.encode_descriptor("pping_rtt", help, Some(&seconds), MetricType::Histogram)?;
        for group in &self.0 {
            let count = 3 * BUCKETS as u64;
            rtt.encode_family(&Labels(group))?.encode_histogram::<NoLabelSet>(1.25, count, &buckets, None)?;
        }
        let gauges =
            [("pping_min_rtt", &seconds), ("pping_rtt_baseline", &seconds), ("pping_quality", &ratio)];
        for (name, unit) in gauges {
            let mut gauge = encoder.encode_descriptor(name, "A gauge.", Some(unit), MetricType::Gauge)?;
            for group in &self.0 {
                gauge.encode_family(&Labels(group))?.encode_gauge(&0.012_345_678)?;
            }
        }
        let name = "pping_rtt_inflation";
        let mut gauge = encoder.encode_descriptor(name, "A gauge.", Some(&seconds), MetricType::Gauge)?;
        for group in &self.0 {
            for percentile in ["50", "95"] {
                let labels = ([("percentile", percentile)], Labels(group));
                gauge.encode_family(&labels)?.encode_gauge(&0.012_345_678)?;
            }
        }
        for name in ["pping_group_packets", "pping_group_bytes", "pping_group_tcp_retransmissions"] {
            let mut counter = encoder.encode_descriptor(name, "A counter.", None, MetricType::Counter)?;
            for group in &self.0 {
                for sender in ["timed", "replying"] {
                    let labels = ([("sender", sender)], Labels(group));
                    counter
                        .encode_family(&labels)?
                        .encode_counter::<NoLabelSet, _, f64>(&123_456_u64, None)?;
                }
            }
        }
        Ok(())
    }
}

/// Collects text in chunks.
struct Chunks {
    done: Vec<Vec<u8>>,
    chunk: Vec<u8>,
}

impl Write for Chunks {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.chunk.len() + text.len() > CHUNK {
            let next = Vec::with_capacity(CHUNK);
            self.done.push(std::mem::replace(&mut self.chunk, next));
        }
        self.chunk.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// Returns a registry with the metrics of these groups.
pub(crate) fn registry(groups: Vec<String>) -> Registry {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Groups(groups)));
    registry
}

/// Writes a page in `OpenMetrics`.
pub(crate) fn write(registry: &Registry) -> Result<()> {
    let mut page = Chunks { done: Vec::new(), chunk: Vec::with_capacity(CHUNK) };
    text::encode(&mut page, registry)?;
    black_box((page.done, page.chunk));
    Ok(())
}

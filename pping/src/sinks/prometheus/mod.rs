//! Metrics for Prometheus, by the names and labels of the project's contract.

mod classic;
mod kernel;
mod process;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

pub use classic::to_classic;
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, text},
    metrics::{family::Family, gauge::ConstGauge, histogram::Histogram, info::Info},
    registry::{Registry, Unit},
};

use crate::{
    aggregate::Minimum,
    record::{RttRecord, hook_name, method_name},
    source::counters::Snapshot,
};

/// How long `pping_min_rtt_seconds` remembers, at least.
const MINIMUM_WINDOW: Duration = Duration::from_mins(1);

/// Bounds of the RTT histogram: 2^0 to 2^24 microseconds, which is 16.8 s.
fn bounds() -> impl Iterator<Item = f64> {
    (0..=24).map(|octave| f64::from(1 << octave) / 1e6)
}

/// What a distribution of RTTs is kept by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RttLabels {
    interface: String,
    method: &'static str,
    matched: &'static str,
    /// Groups of hosts are not told apart yet: there is one.
    group: &'static str,
}

/// What the kernel and the agent lost, and how full the maps are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    /// Lines that the writer had no room for.
    pub lines_lost: u64,
    /// Flows per address family that there is room for.
    pub max_flows: u32,
}

type Minima = Arc<Mutex<HashMap<RttLabels, Minimum>>>;
type State = Arc<Mutex<(Snapshot, Fill)>>;

/// All metrics. Cloning gives another handle to the same ones.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    rtt: Family<RttLabels, Histogram, fn() -> Histogram>,
    minima: Minima,
    state: State,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let histogram: fn() -> Histogram = || Histogram::new(bounds());
        let rtt = Family::new_with_constructor(histogram);
        registry.register_with_unit(
            "pping_rtt",
            "Round-trip times between this host and the one that replied",
            Unit::Seconds,
            rtt.clone(),
        );
        let minima = Minima::default();
        registry.register_collector(Box::new(MinimumCollector(minima.clone())));
        let state = State::default();
        registry.register_collector(Box::new(kernel::KernelCollector(state.clone())));
        registry.register_collector(Box::new(process::ProcessCollector));
        registry.register(
            "pping_build",
            "Version of the running pping",
            Info::new([("version", env!("CARGO_PKG_VERSION")), ("revision", env!("PPING_REVISION"))]),
        );
        Self { registry: Arc::new(registry), rtt, minima, state }
    }
}

impl Metrics {
    /// Takes a sample.
    pub fn sample(&self, record: &RttRecord) {
        let labels = RttLabels {
            interface: record.interface.as_deref().unwrap_or_default().to_owned(),
            method: method_name(record.method),
            matched: record.matched.map_or("", hook_name),
            group: "all",
        };
        self.rtt.get_or_create(&labels).observe(record.rtt as f64 / 1e9);
        let now = Instant::now();
        lock(&self.minima)
            .entry(labels)
            .or_insert_with(|| Minimum::new(MINIMUM_WINDOW, now))
            .take(record.rtt, now);
    }

    /// Takes what the kernel programs have counted.
    pub fn counted(&self, snapshot: Snapshot, fill: Fill) {
        *lock(&self.state) = (snapshot, fill);
    }

    /// The exposition in the `OpenMetrics` text format.
    ///
    /// # Errors
    /// When a metric cannot be written as text, which would be a defect.
    pub fn openmetrics(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// The lowest RTT of the last window.
#[derive(Debug)]
struct MinimumCollector(Minima);

impl prometheus_client::collector::Collector for MinimumCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let now = Instant::now();
        let mut metric = encoder.encode_descriptor(
            "pping_min_rtt",
            "Lowest round-trip time of the last one to two minutes",
            Some(&Unit::Seconds),
            prometheus_client::metrics::MetricType::Gauge,
        )?;
        for (labels, minimum) in lock(&self.0).iter_mut() {
            if let Some(lowest) = minimum.lowest(now) {
                ConstGauge::new(lowest as f64 / 1e9).encode(metric.encode_family(labels)?)?;
            }
        }
        Ok(())
    }
}

/// A panic elsewhere does not make numbers wrong that are replaced as a whole.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

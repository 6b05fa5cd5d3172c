//! The standard `process_*` metrics.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

/// Reads `/proc/self` at every scrape.
#[derive(Debug)]
pub(super) struct ProcessCollector;

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // Better a page without these metrics than no page.
        let Ok(process) = procfs::process::Process::myself() else { return Ok(()) };
        let Ok(stat) = process.stat() else { return Ok(()) };
        let mut gauge = |name, help, value: f64| {
            ConstGauge::new(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
        };
        gauge(
            "process_resident_memory_bytes",
            "Resident memory size in bytes",
            (stat.rss * procfs::page_size()) as f64,
        )?;
        gauge("process_virtual_memory_bytes", "Virtual memory size in bytes", stat.vsize as f64)?;
        gauge("process_threads", "Number of threads", stat.num_threads as f64)?;
        if let Ok(open) = process.fd_count() {
            gauge("process_open_fds", "Number of open file descriptors", open as f64)?;
        }
        let booted = procfs::boot_time_secs().unwrap_or(0) as f64;
        let ticks = procfs::ticks_per_second() as f64;
        gauge(
            "process_start_time_seconds",
            "Start time of the process since the Unix epoch in seconds",
            booted + stat.starttime as f64 / ticks,
        )?;
        let cpu = ConstCounter::new((stat.utime + stat.stime) as f64 / ticks);
        cpu.encode(encoder.encode_descriptor(
            "process_cpu_seconds",
            "Total user and system CPU time spent in seconds",
            None,
            MetricType::Counter,
        )?)
    }
}

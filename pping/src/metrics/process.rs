//! The standard metrics of processes: those of Prometheus on pages, those of OpenTelemetry in exports.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

use super::family::MetricFamily;

/// What `/proc/self` says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    /// Resident and virtual memory, bytes.
    resident: u64,
    virtual_memory: u64,
    threads: u64,
    /// Open file descriptors, if they can be counted.
    descriptors: Option<u64>,
    /// The start, s since the Unix epoch.
    started: f64,
    /// The time in user and kernel space, s.
    pub(super) cpu_seconds: f64,
}

impl Process {
    pub(super) const CPU_TIME: &str = "Total user and system CPU time spent in seconds";

    /// Reads it; `None` if it cannot be read.
    pub(super) fn read() -> Option<Self> {
        let process = procfs::process::Process::myself().ok()?;
        let stat = process.stat().ok()?;
        let ticks = procfs::ticks_per_second() as f64;
        let booted = procfs::boot_time_secs().unwrap_or(0) as f64;
        Some(Self {
            resident: stat.rss * procfs::page_size(),
            virtual_memory: stat.vsize,
            threads: stat.num_threads as u64,
            descriptors: process.fd_count().ok().map(|count| count as u64),
            started: booted + stat.starttime as f64 / ticks,
            cpu_seconds: (stat.utime + stat.stime) as f64 / ticks,
        })
    }

    /// The levels by the names of OpenTelemetry's semantic conventions ("OS process metrics").
    pub(super) fn levels(&self) -> Vec<MetricFamily> {
        let level = |name, help, value| MetricFamily {
            name,
            help,
            kind: MetricType::Gauge,
            series: vec![(Vec::new(), value)],
        };
        let mut levels = vec![
            level("process.memory.usage", "Resident memory size in bytes", self.resident),
            level("process.memory.virtual", "Virtual memory size in bytes", self.virtual_memory),
            level("process.thread.count", "Number of threads", self.threads),
        ];
        let name = "process.unix.file_descriptor.count";
        levels.extend(self.descriptors.map(|count| level(name, "Number of open file descriptors", count)));
        levels
    }
}

/// Reads `/proc/self` at every scrape.
#[derive(Debug)]
pub(super) struct ProcessCollector;

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // Better a page without these metrics than no page.
        let Some(process) = Process::read() else { return Ok(()) };
        let mut gauge = |name, help, value: f64| {
            ConstGauge::new(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
        };
        gauge("process_resident_memory_bytes", "Resident memory size in bytes", process.resident as f64)?;
        gauge("process_virtual_memory_bytes", "Virtual memory size in bytes", process.virtual_memory as f64)?;
        gauge("process_threads", "Number of threads", process.threads as f64)?;
        if let Some(open) = process.descriptors {
            gauge("process_open_fds", "Number of open file descriptors", open as f64)?;
        }
        gauge(
            "process_start_time_seconds",
            "Start time of the process since the Unix epoch in seconds",
            process.started,
        )?;
        let cpu = ConstCounter::new(process.cpu_seconds);
        cpu.encode(encoder.encode_descriptor(
            "process_cpu_seconds",
            Process::CPU_TIME,
            None,
            MetricType::Counter,
        )?)
    }
}

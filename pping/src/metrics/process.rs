//! The standard metrics of processes: those of Prometheus on pages, those of OpenTelemetry in exports.

use super::{
    exposition::{Exposition, Kind, MetricFamily, Value},
    family::IntegerFamily,
    labels::Labels,
};

/// The values from `/proc/self`.
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

    /// Reads `/proc/self`; `None` if it cannot be read.
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

    /// Returns the levels by the names of OpenTelemetry's semantic conventions ("OS process metrics").
    pub(super) fn levels(&self) -> Vec<IntegerFamily> {
        let level = |name, help, value| IntegerFamily {
            name,
            help,
            kind: Kind::Gauge,
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

/// Writes the metrics of the process. Reads `/proc/self` at every scrape.
pub(super) fn write(page: &mut dyn Exposition) {
    // Better a page without these metrics than no page.
    let Some(process) = Process::read() else { return };
    let mut metric = |name, help, kind, value: Value| {
        page.family(&MetricFamily { name, unit: None, kind, help });
        let prefix = page.prefix(&[]);
        page.value(&prefix, &Labels::default(), value);
    };
    let mut gauge = |name, help, value| metric(name, help, Kind::Gauge, value);
    gauge("process_resident_memory_bytes", "Resident memory size in bytes", Value::Integer(process.resident));
    gauge(
        "process_virtual_memory_bytes",
        "Virtual memory size in bytes",
        Value::Integer(process.virtual_memory),
    );
    gauge("process_threads", "Number of threads", Value::Integer(process.threads));
    if let Some(open) = process.descriptors {
        gauge("process_open_fds", "Number of open file descriptors", Value::Integer(open));
    }
    gauge(
        "process_start_time_seconds",
        "Start time of the process since the Unix epoch in seconds",
        Value::Float(process.started),
    );
    metric("process_cpu_seconds", Process::CPU_TIME, Kind::Counter, Value::Float(process.cpu_seconds));
}

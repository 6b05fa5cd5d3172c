//! The standard metrics of processes: those of Prometheus on pages, those of OpenTelemetry in exports.

use super::{
    exposition::{Exposition, Value},
    labels::FormattedLabels,
    metric::{IntegerFamily, Metric},
};

/// A metric, and how it is read; `None` if it cannot be.
type Row<T> = (Metric, fn(&Process) -> Option<T>);

/// The metrics of Prometheus ("Writing client libraries", process metrics).
static ON_PAGES: [Row<Value>; 6] = [
    (Metric::gauge("process_resident_memory_bytes", "By", "Resident memory size in bytes"), |process| {
        Some(Value::Integer(process.resident))
    }),
    (Metric::gauge("process_virtual_memory_bytes", "By", "Virtual memory size in bytes"), |process| {
        Some(Value::Integer(process.virtual_memory))
    }),
    (Metric::gauge("process_threads", "{thread}", "Number of threads"), |process| {
        Some(Value::Integer(process.threads))
    }),
    (Metric::gauge("process_open_fds", "{file_descriptor}", "Number of open file descriptors"), |process| {
        process.descriptors.map(Value::Integer)
    }),
    (
        Metric::gauge(
            "process_start_time_seconds",
            "",
            "Start time of the process since the Unix epoch in seconds",
        ),
        |process| Some(Value::Float(process.started)),
    ),
    (
        Metric::counter("process_cpu_seconds", "", "Total user and system CPU time spent in seconds"),
        |process| Some(Value::Float(process.cpu_seconds)),
    ),
];

/// Those of OpenTelemetry (semantic conventions, "OS process metrics"); times in ns.
static PUSHED: [Row<u64>; 5] = [
    (Metric::gauge("process.memory.usage", "By", "Resident memory size in bytes"), |process| {
        Some(process.resident)
    }),
    (Metric::gauge("process.memory.virtual", "By", "Virtual memory size in bytes"), |process| {
        Some(process.virtual_memory)
    }),
    (Metric::gauge("process.thread.count", "{thread}", "Number of threads"), |process| Some(process.threads)),
    (
        Metric::gauge(
            "process.unix.file_descriptor.count",
            "{file_descriptor}",
            "Number of open file descriptors",
        ),
        |process| process.descriptors,
    ),
    (
        Metric::counter("process.cpu.time", "s", "Total user and system CPU time spent in seconds"),
        |process| Some((process.cpu_seconds * 1e9) as u64),
    ),
];

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
    cpu_seconds: f64,
}

impl Process {
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

    /// Returns the metrics of OpenTelemetry.
    pub(super) fn families(&self) -> impl Iterator<Item = IntegerFamily> {
        PUSHED.iter().filter_map(|(metric, read)| {
            Some(IntegerFamily { metric, series: vec![(Vec::new(), read(self)?)] })
        })
    }
}

/// Writes the metrics of the process. Reads `/proc/self` at every scrape.
pub(super) fn write(page: &mut dyn Exposition) {
    // Better a page without these metrics than no page.
    let Some(process) = Process::read() else { return };
    for (metric, read) in &ON_PAGES {
        if let Some(value) = read(&process) {
            page.family(metric);
            let prefix = page.prefix(&[]);
            page.value(&prefix, &FormattedLabels::default(), value);
        }
    }
}

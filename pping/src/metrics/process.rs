//! The standard metrics of processes: those of Prometheus on pages, those of OpenTelemetry in exports.

use super::{
    exposition::{Exposition, Value},
    labels::FormattedLabels,
    metric::{IntegerFamily, Metric},
};

/// The metrics of Prometheus ("Writing client libraries", process metrics).
static PAGE: [Metric; 6] = [
    Metric::gauge("process_resident_memory_bytes", "By", "Resident memory size in bytes"),
    Metric::gauge("process_virtual_memory_bytes", "By", "Virtual memory size in bytes"),
    Metric::gauge("process_threads", "{thread}", "Number of threads"),
    Metric::gauge("process_open_fds", "{file_descriptor}", "Number of open file descriptors"),
    Metric::gauge(
        "process_start_time_seconds",
        "",
        "Start time of the process since the Unix epoch in seconds",
    ),
    Metric::counter("process_cpu_seconds", "", "Total user and system CPU time spent in seconds"),
];

/// Those of OpenTelemetry (semantic conventions, "OS process metrics"). The last one is in ns, as times are in exports.
static EXPORT: [Metric; 5] = [
    Metric::gauge("process.memory.usage", "By", "Resident memory size in bytes"),
    Metric::gauge("process.memory.virtual", "By", "Virtual memory size in bytes"),
    Metric::gauge("process.thread.count", "{thread}", "Number of threads"),
    Metric::gauge(
        "process.unix.file_descriptor.count",
        "{file_descriptor}",
        "Number of open file descriptors",
    ),
    Metric::counter("process.cpu.time", "s", "Total user and system CPU time spent in seconds"),
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
        let Self { resident, virtual_memory, threads, descriptors, cpu_seconds, .. } = *self;
        let cpu_time = (cpu_seconds * 1e9) as u64;
        let values = [Some(resident), Some(virtual_memory), Some(threads), descriptors, Some(cpu_time)];
        let families = EXPORT.iter().zip(values);
        families
            .filter_map(|(metric, value)| Some(IntegerFamily { metric, series: vec![(Vec::new(), value?)] }))
    }
}

/// Writes the metrics of the process. Reads `/proc/self` at every scrape.
pub(super) fn write(page: &mut dyn Exposition) {
    // Better a page without these metrics than no page.
    let Some(process) = Process::read() else { return };
    let values = [
        Some(Value::Integer(process.resident)),
        Some(Value::Integer(process.virtual_memory)),
        Some(Value::Integer(process.threads)),
        process.descriptors.map(Value::Integer),
        Some(Value::Float(process.started)),
        Some(Value::Float(process.cpu_seconds)),
    ];
    for (metric, value) in PAGE.iter().zip(values) {
        if let Some(value) = value {
            page.family(metric);
            let prefix = page.prefix(&[]);
            page.value(&prefix, &FormattedLabels::default(), value);
        }
    }
}

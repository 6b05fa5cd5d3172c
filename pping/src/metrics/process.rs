//! The standard `process_*` metrics.

use super::{
    exposition::{Exposition, Kind, MetricFamily, Value},
    labels::Labels,
};

/// Reads `/proc/self`, at every scrape.
pub(super) fn write(page: &mut dyn Exposition) {
    // Better a page without these metrics than no page.
    let Ok(process) = procfs::process::Process::myself() else { return };
    let Ok(stat) = process.stat() else { return };
    let mut metric = |name, help, kind, value: Value| {
        page.family(&MetricFamily { name, unit: None, kind, help });
        let prefix = page.prefix(&[]);
        page.value(&prefix, &Labels::default(), value);
    };
    let mut gauge = |name, help, value| metric(name, help, Kind::Gauge, value);
    let resident = Value::Integer(stat.rss * procfs::page_size());
    gauge("process_resident_memory_bytes", "Resident memory size in bytes", resident);
    gauge("process_virtual_memory_bytes", "Virtual memory size in bytes", Value::Integer(stat.vsize));
    gauge("process_threads", "Number of threads", Value::Integer(stat.num_threads.unsigned_abs()));
    if let Ok(open) = process.fd_count() {
        gauge("process_open_fds", "Number of open file descriptors", Value::Integer(open as u64));
    }
    let booted = procfs::boot_time_secs().unwrap_or(0) as f64;
    let ticks = procfs::ticks_per_second() as f64;
    gauge(
        "process_start_time_seconds",
        "Start time of the process since the Unix epoch in seconds",
        Value::Float(booted + stat.starttime as f64 / ticks),
    );
    metric(
        "process_cpu_seconds",
        "Total user and system CPU time spent in seconds",
        Kind::Counter,
        Value::Float((stat.utime + stat.stime) as f64 / ticks),
    );
}

//! Where one machine ends: agents scraped by Prometheus, kept by `VictoriaMetrics`, shown by Grafana. The programs are
//! those of the distribution, on loopback, in a namespace of their own.

mod agents;
mod dashboard;
mod merged;
mod pages;
pub(super) mod stack;

//! Agents scraped by Prometheus, stored by `VictoriaMetrics` and shown by Grafana. The programs are the distribution's;
//! they run on loopback, in a separate network namespace.

mod agents;
mod dashboard;
mod history_dashboard;
mod merged;
mod pages;
mod protobuf;
pub(super) mod stack;

//! Agents that Prometheus scrapes, `VictoriaMetrics` stores and Grafana shows. The programs are those of the
//! distribution, on loopback, in a network namespace of their own.

mod agents;
mod dashboard;
mod merged;
mod pages;
mod protobuf;
pub(super) mod stack;

//! The names of flows, and their lives.

mod idle;
mod key;
mod latest;
mod lifecycle;
mod properties;
mod rtt;

//! Tests of flow keys, and of the life of a flow.

mod idle;
mod key;
mod latest;
mod lifecycle;
mod properties;
mod rtt;
